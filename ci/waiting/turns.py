"""Whose turn is it to wake a runner for a job that all processes heard of? One's, lest all of them look for it."""

from __future__ import annotations

import time
import zlib
from typing import Any

import psycopg

NAME = "forge hub"  # of a hub's session
# Should none of the first one's runners take it, the others' may.
OUT_OF_TURN_SECONDS = 0.02
_HUBS = """
    SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name = %s
    ORDER BY backend_start, pid
"""


class Turns:
    """Of one hub among all that listen to the same database."""

    def __init__(self) -> None:
        self._place, self._count = 0, 1

    async def count(self, connection: psycopg.AsyncConnection[Any]) -> None:
        """Find the hub's place, by its session, in an order that all of them see."""
        cursor = await connection.execute(_HUBS, [NAME])
        hubs = [pid for (pid,) in await cursor.fetchall()]
        own = connection.info.backend_pid
        self._place, self._count = (hubs.index(own), len(hubs)) if own in hubs else (0, 1)

    def is_mine(self, notify: psycopg.Notify) -> bool:
        """The same hub's in all of them, and another's at another time. Where their clocks or counts differ none or
        two wake somebody, which costs a moment or a look."""
        heard = f"{notify.pid}:{notify.payload}:{int(time.time())}"
        return zlib.crc32(heard.encode()) % self._count == self._place
