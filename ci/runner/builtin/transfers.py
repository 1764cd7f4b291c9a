"""How do calls and bytes travel between a built-in action and the forge, through faults and restarts?

Source of the numbers: the toolkit's clients: 5 attempts, 3 s between the first two and half as long again each time."""

from __future__ import annotations

import hashlib
import os
import random
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import TypeVar
from urllib.parse import unquote, urlsplit

from ci.runner import VERSION
from ci.runner.builtin import step
from ci.runner.wire import Answer, Wire, WireError

ATTEMPTS = 5
FIRST_PAUSE = 3.0
GROWTH = 1.5
RETRYABLE = frozenset({429, 500, 502, 503, 504})
# The longest silence: the forge reads an artifact's bytes once more before it takes them.
SILENCE_SECONDS = 180.0
PIECE = 1024 * 1024

Result = TypeVar("Result")


class Passing(Exception):
    """A fault that another attempt may not meet."""


class Refused(step.Failure):
    """The forge said no, with this status; the text is its own."""

    def __init__(self, message: str, *, status: int) -> None:
        super().__init__(message)
        self.status = status


class Exhausted(step.Failure):
    """No attempt succeeded."""


@dataclass(frozen=True)
class Slice:
    """Bytes of a file that are read again for each attempt."""

    path: Path
    start: int
    size: int

    def __iter__(self) -> Iterator[bytes]:
        with self.path.open("rb") as stream:
            stream.seek(self.start)
            left = self.size
            while left > 0 and (piece := stream.read(min(PIECE, left))):
                left -= len(piece)
                yield piece

    def __len__(self) -> int:
        return self.size


class Transfers:
    """The calls of one action. Safe to use from several threads."""

    def __init__(self, *, sleep: Callable[[float], None] = time.sleep) -> None:
        self._wires: dict[str, Wire] = {}
        self._sleep = sleep

    def repeat(self, attempt: Callable[[], Result]) -> Result:
        """What an attempt that raises no Passing returns. Raises Exhausted."""
        number = 1
        while True:
            try:
                return attempt()
            except Passing as problem:
                if number == ATTEMPTS:
                    raise Exhausted(f"Failed to make request after {ATTEMPTS} attempts: {problem}") from problem
                pause = FIRST_PAUSE * GROWTH ** (number - 1) * (1 if number == 1 else random.uniform(1, GROWTH))
                step.info(
                    f"Attempt {number} of {ATTEMPTS} failed with error: {problem}. "
                    f"Retrying request in {pause * 1000:.0f} ms..."
                )
            self._sleep(pause)
            number += 1

    def send(
        self, method: str, url: str, *, content: bytes | Slice | None = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """One attempt: the answer, whatever its status but one that passes. Raises Passing."""
        wire, target = self._wire(url)
        given = {"User-Agent": f"forge-ci-runner/{VERSION}", **(headers or {})}
        if content is not None:
            given["Content-Length"] = str(len(content))
        try:
            answer = wire.call(method, target, content=content, headers=given, seconds=SILENCE_SECONDS)
        except (WireError, OSError) as problem:
            raise Passing(str(problem)) from problem
        if answer.status in RETRYABLE:
            raise Passing(reason(answer.status))
        return answer

    def download(self, url: str, file: Path) -> Downloaded:
        """Fetch into the file; where the connection breaks, go on from there. Raises Refused, Exhausted."""
        file.write_bytes(b"")
        return self.repeat(lambda: self._fetch(url, file))

    def _fetch(self, url: str, file: Path) -> Downloaded:
        wire, target = self._wire(url)
        have = file.stat().st_size
        headers = {"User-Agent": f"forge-ci-runner/{VERSION}", "Accept-Encoding": "identity"}
        if have:
            headers["Range"] = f"bytes={have}-"
        try:
            with wire.open("GET", target, headers=headers, seconds=SILENCE_SECONDS) as response:
                if response.status in RETRYABLE:
                    raise Passing(reason(response.status))
                if response.status not in (200, 206):
                    message = f"Unexpected HTTP response from blob storage: {reason(response.status)}"
                    raise Refused(message, status=response.status)
                with file.open("ab" if response.status == 206 else "wb") as stream:
                    while piece := _read(response):
                        stream.write(piece)
                if response.length:
                    raise Passing("the connection broke off")
                found = response.headers
        except WireError as problem:
            raise Passing(str(problem)) from problem
        return Downloaded(
            size=file.stat().st_size,
            content_type=found.get_content_type(),
            encoding=found.get("Content-Encoding", "").lower(),
            file_name=_file_name(found.get("Content-Disposition", "")),
        )

    def _wire(self, url: str) -> tuple[Wire, str]:
        parts = urlsplit(url)
        origin = f"{parts.scheme}://{parts.netloc}"
        # Two threads that meet here make one wire too many, which costs a connection.
        wire = self._wires.setdefault(origin, Wire(origin)) if origin not in self._wires else self._wires[origin]
        return wire, f"{parts.path}?{parts.query}" if parts.query else parts.path


@dataclass(frozen=True)
class Downloaded:
    """What came with the bytes."""

    size: int
    content_type: str
    encoding: str
    file_name: str


def _read(response: HTTPResponse) -> bytes:
    """Raises Passing."""
    try:
        return response.read(PIECE)
    except (OSError, HTTPException) as problem:
        raise Passing(str(problem) or type(problem).__name__) from problem


def _file_name(disposition: str) -> str:
    """RFC 6266: `filename*` before `filename`, and never more than a name."""
    found = re.search(r"filename\*\s*=\s*UTF-8''([^;\s]*)", disposition, re.IGNORECASE) or re.search(
        r"""(?<!\*)filename\s*=\s*['"]?([^;\r\n"']*)""", disposition, re.IGNORECASE
    )
    name = os.path.basename(unquote(found[1].strip())) if found else ""
    return "" if name in (".", "..") or "\0" in name else name


def reason(status: int) -> str:
    """`503 Service Unavailable`."""
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


def sha256(file: Path) -> str:
    """Hex."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
