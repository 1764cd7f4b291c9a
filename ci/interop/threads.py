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

# Apart from each other, so that nothing waits behind what is slower: the storage may be a bucket far away.
_rows = ThreadPoolExecutor(8, thread_name_prefix="interop-rows")
_storing = ThreadPoolExecutor(8, thread_name_prefix="interop-storing")
_fetching = ThreadPoolExecutor(8, thread_name_prefix="interop-fetching")
_packing = ThreadPoolExecutor(2, thread_name_prefix="interop-packing")
_local = ThreadPoolExecutor(4, thread_name_prefix="interop-local")


async def in_database(work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Work that asks the database, with a connection that is known to work. It goes on where the caller gives up."""
    call = functools.partial(_with_fresh_connection, work, args, kwargs)
    return await asyncio.get_running_loop().run_in_executor(_rows, call)


async def to_storage(work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """As `in_database`, for work that also writes to the storage."""
    call = functools.partial(_with_fresh_connection, work, args, kwargs)
    return await asyncio.get_running_loop().run_in_executor(_storing, call)


async def from_storage(work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Work that reads from the storage, and has no use for a database."""
    return await asyncio.get_running_loop().run_in_executor(_fetching, functools.partial(work, *args, **kwargs))


async def packing(work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """As `in_database`, for work that reads from the storage and takes the processor for long: few at a time."""
    call = functools.partial(_with_fresh_connection, work, args, kwargs)
    return await asyncio.get_running_loop().run_in_executor(_packing, call)


async def locally(work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Work on files of this machine, or that takes the processor for a moment."""
    return await asyncio.get_running_loop().run_in_executor(_local, functools.partial(work, *args, **kwargs))


def _with_fresh_connection(work: Callable[..., R], args: tuple[object, ...], kwargs: dict[str, object]) -> R:
    close_old_connections()
    try:
        return work(*args, **kwargs)
    finally:
        close_old_connections()
