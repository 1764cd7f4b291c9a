"""When is a repository packed? After pushes, one at a time, at low priority, when git thinks it is due."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal

from forge.git.program import environment
from forge.models import Repository

_log = logging.getLogger(__name__)
_DEADLINE = 3600.0  # seconds
_running: dict[int, asyncio.Task[None]] = {}


def tidy(repository: Repository) -> None:
    """Start `git gc --auto` for a repository, unless it runs already. Nobody waits for it."""
    key = repository.pk
    if key not in _running:
        _running[key] = asyncio.create_task(_collect(repository))
        _running[key].add_done_callback(lambda _: _running.pop(key, None))


async def _collect(repository: Repository) -> None:
    process = await asyncio.create_subprocess_exec(
        "nice",
        "git",
        f"--git-dir={repository.path}",
        "gc",
        "--auto",
        "--quiet",
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        cwd="/",
        env=environment(),
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(_DEADLINE):
            status = await process.wait()
        if status != 0:
            _log.warning("git gc of repository %s ended with status %s", repository.pk, status)
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
