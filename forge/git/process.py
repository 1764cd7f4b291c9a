"""How does a git process serve one request? Started bare, fed and drained piece by piece, ended whole."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Self

from forge.git.bodies import PIECE, ClientGone, RequestBody
from forge.git.program import environment

_KEPT_ERRORS = 4096  # bytes, the last ones
_GOODBYE = 5.0  # seconds between asking a process to end and ending it


class GitProcess:
    """One git program and its children; an asynchronous context manager that leaves none of them behind."""

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        path: Path,
        config: Sequence[tuple[str, str]] = (),
        protocol: str = "",
        keep_open: Sequence[int] = (),
    ) -> None:
        self._command = ["git", *arguments, str(path)]
        self._environment = environment(config, protocol=protocol)
        self._keep_open = tuple(keep_open)
        self._errors = bytearray()
        self._process: asyncio.subprocess.Process | None = None
        self._listening: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        pipe = asyncio.subprocess.PIPE
        self._process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            cwd="/",
            env=self._environment,
            start_new_session=True,  # so that one signal reaches git and all it started
            pass_fds=self._keep_open,
        )
        self._listening = asyncio.create_task(self._keep_errors())
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await asyncio.shield(self._end())

    @property
    def errors(self) -> str:
        """What git last wrote to its standard error."""
        return self._errors.decode("utf-8", "replace").strip()

    async def exchange(
        self,
        body: RequestBody,
        write: Callable[[bytes], Awaitable[None]],
        *,
        first: bytes = b"",
        outlives_client: bool = False,
    ) -> int:
        """Give `first` and the body to git, and its output to `write`; git's exit status.

        A client that leaves ends git, unless the body is whole and git `outlives_client`.
        Raises ClientGone, BadBody, and what `write` raises.
        """
        feeding = asyncio.create_task(self._feed(body, first))
        draining = asyncio.create_task(self._drain(write))
        watching: set[asyncio.Task[None]] = set()
        try:
            await asyncio.wait({feeding, draining}, return_when=asyncio.FIRST_COMPLETED)
            if feeding.done():
                feeding.result()
                if not outlives_client:
                    watching = {asyncio.create_task(body.disconnect())}
                await asyncio.wait({draining} | watching, return_when=asyncio.FIRST_COMPLETED)
                if not draining.done():
                    raise ClientGone
            draining.result()
            # A push that git ended early is still on its way, and its client listens only afterwards.
            if outlives_client:
                await feeding
            return await self._running.wait()
        finally:
            for task in {feeding, draining} | watching:
                task.cancel()
            await asyncio.gather(feeding, draining, *watching, return_exceptions=True)

    @property
    def _running(self) -> asyncio.subprocess.Process:
        assert self._process is not None
        return self._process

    async def _feed(self, body: RequestBody, first: bytes) -> None:
        stdin = self._running.stdin
        assert stdin is not None
        deaf = not await self._write(stdin, first)
        async for piece in body:
            deaf = deaf or not await self._write(stdin, piece)
        with contextlib.suppress(OSError, RuntimeError):
            stdin.close()

    @staticmethod
    async def _write(stdin: asyncio.StreamWriter, data: bytes) -> bool:
        try:
            stdin.write(data)
            await stdin.drain()
        except (OSError, RuntimeError):  # git has ended or closed its end; its output says why
            return False
        return True

    async def _drain(self, write: Callable[[bytes], Awaitable[None]]) -> None:
        stdout = self._running.stdout
        assert stdout is not None
        while chunk := await stdout.read(PIECE):
            await write(chunk)

    async def _keep_errors(self) -> None:
        stderr = self._running.stderr
        assert stderr is not None
        while chunk := await stderr.read(PIECE):
            self._errors += chunk
            del self._errors[:-_KEPT_ERRORS]

    async def _end(self) -> None:
        process = self._running
        if process.stdin is not None:
            with contextlib.suppress(OSError, RuntimeError):
                process.stdin.close()
        if process.returncode is None:
            # First the signal at which git removes its lock files.
            self._signal(signal.SIGTERM)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_GOODBYE):
                    await process.wait()
            self._signal(signal.SIGKILL)
            await process.wait()
        if self._listening is not None:
            self._listening.cancel()

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._running.pid, number)
