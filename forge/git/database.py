"""How does the event loop ask the database? In a few threads of its own, each with a connection, with a deadline."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from django.db import InterfaceError, OperationalError, close_old_connections

P = ParamSpec("P")
R = TypeVar("R")

DEADLINE = 60.0  # seconds
# What a database that is gone, full or overloaded looks like.
UNREACHABLE = (OperationalError, InterfaceError, TimeoutError)

_work = ThreadPoolExecutor(8, thread_name_prefix="git")
# Code of another app runs here: when it hangs, git still gets its answers.
_reports = ThreadPoolExecutor(4, thread_name_prefix="git-report")


async def in_database(work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Run `work` in a thread. Raises what it raises, and TimeoutError: it then goes on unwatched."""
    return await _in_thread(_work, DEADLINE, functools.partial(work, *args, **kwargs))


async def report(work: Callable[[], R], *, deadline: float) -> R:
    """As `in_database`, in threads that may be lost."""
    return await _in_thread(_reports, deadline, work)


async def _in_thread(threads: ThreadPoolExecutor, deadline: float, work: Callable[[], R]) -> R:
    running = asyncio.get_running_loop().run_in_executor(threads, _with_fresh_connection, work)
    async with asyncio.timeout(deadline):
        return await running


def _with_fresh_connection(work: Callable[[], R]) -> R:
    close_old_connections()
    try:
        return work()
    finally:
        close_old_connections()
