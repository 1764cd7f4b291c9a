"""Who makes the calls that may hang? Threads, few for each set and kind of call, so that one hanging holds up no other.

A thread for each call: its database connection goes with it, and a call that never ends does not keep the process.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Hashable

from django.db import connection

logger = logging.getLogger(__name__)

AT_ONCE = 24
IN_A_LANE = 4


class Workers:
    """`submit` returns at once. Calls of one lane wait for each other beyond IN_A_LANE, all calls beyond AT_ONCE."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: dict[tuple[Hashable, Hashable], threading.Thread] = {}
        self._waiting: dict[tuple[Hashable, Hashable], Callable[[], None]] = {}

    def submit(self, lane: Hashable, key: Hashable, call: Callable[[], None]) -> None:
        """Have `call` made, unless one of this lane and key is going on or waits already."""
        with self._lock:
            if (lane, key) in self._running or (lane, key) in self._waiting:
                return
            self._waiting[lane, key] = call
        self._begin_some()

    def is_busy(self, lane: Hashable, key: Hashable) -> bool:
        """Whether this call is going on."""
        with self._lock:
            return (lane, key) in self._running

    def close(self, seconds: float) -> None:
        """Begin no more calls, and wait for those that are going on, this long at most for all of them."""
        with self._lock:
            self._waiting.clear()
            running = list(self._running.values())
        for thread in running:
            thread.join(max(0.0, seconds / len(running)))

    def _begin_some(self) -> None:
        with self._lock:
            for (lane, key), call in list(self._waiting.items()):
                if len(self._running) >= AT_ONCE:
                    return
                if sum(1 for other, _ in self._running if other == lane) >= IN_A_LANE:
                    continue
                del self._waiting[lane, key]
                thread = threading.Thread(target=self._make, args=(lane, key, call), name=f"{lane} {key}", daemon=True)
                self._running[lane, key] = thread
                thread.start()

    def _make(self, lane: Hashable, key: Hashable, call: Callable[[], None]) -> None:
        try:
            call()
        except Exception:  # whatever is wrong with this call, the others are not to blame
            logger.exception("%s %s failed", lane, key)
        finally:
            connection.close()
            with self._lock:
                del self._running[lane, key]
            self._begin_some()
