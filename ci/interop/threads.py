"""How do the raw ASGI applications of this room reach the database and the storage? In few threads of their own."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from django.db import close_old_connections

P = ParamSpec("P")
R = TypeVar("R")

# Each holds a database connection. Bytes have others, which hold none: a slow disk does not keep rows waiting.
_rows = ThreadPoolExecutor(8, thread_name_prefix="interop-rows")
_bytes = ThreadPoolExecutor(8, thread_name_prefix="interop-bytes")


async def in_database(work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Work that asks the database, with a connection that is known to work. It goes on where the caller gives up."""
    call = functools.partial(_with_fresh_connection, work, args, kwargs)
    return await asyncio.get_running_loop().run_in_executor(_rows, call)


async def with_files(work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Work that only reads or writes files."""
    return await asyncio.get_running_loop().run_in_executor(_bytes, functools.partial(work, *args, **kwargs))


def _with_fresh_connection(work: Callable[..., R], args: tuple[object, ...], kwargs: dict[str, object]) -> R:
    close_old_connections()
    try:
        return work(*args, **kwargs)
    finally:
        close_old_connections()
