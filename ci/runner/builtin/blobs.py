"""How do bytes get to a signed address, in blocks that travel side by side?

Source of the calls: Azure's Put Block, Put Block List and Put Blob, which GitHub's clients use."""

from __future__ import annotations

import base64
import hashlib
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote

from ci.runner.builtin import step
from ci.runner.builtin.transfers import Refused, Slice, Transfers, reason

BLOCK = 8 * 1024 * 1024
PARALLEL = 5
MOST_BLOCKS = 50_000
SINGLE = 128 * 1024 * 1024
LARGE_BLOCK = 64 * 1024 * 1024


class Blocks:
    """The blocks of one blob. `put` returns as soon as one of the few places is free."""

    def __init__(self, transfers: Transfers, url: str, *, content_type: str) -> None:
        self.sent = 0
        self._transfers = transfers
        self._url = url
        self._content_type = content_type
        self._places = threading.BoundedSemaphore(PARALLEL)
        self._pool = ThreadPoolExecutor(PARALLEL)
        self._waiting: list[Future[None]] = []
        self._ids: list[str] = []
        self._lock = threading.Lock()
        self._problem: BaseException | None = None

    def put(self, content: bytes | Slice) -> None:
        """Raises Refused, Exhausted: also those of blocks before this one."""
        if len(self._ids) >= MOST_BLOCKS:
            raise step.Failure(f"A blob has at most {MOST_BLOCKS} blocks; this one would have more.")
        self._places.acquire()
        self._check()
        name = base64.b64encode(f"{len(self._ids):032d}".encode()).decode()
        self._ids.append(name)
        self._waiting.append(self._pool.submit(self._carry, name, content))

    def _carry(self, name: str, content: bytes | Slice) -> None:
        try:
            url = f"{self._url}&comp=block&blockid={quote(name, safe='')}"
            headers = {"Content-Type": "application/octet-stream"}
            put(self._transfers, url, content, headers)
            with self._lock:
                self.sent += len(content)
                step.info(f"Uploaded bytes {self.sent}")
        except BaseException as problem:
            self._problem = self._problem or problem
        finally:
            self._places.release()

    def _check(self) -> None:
        if self._problem is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            raise self._problem

    def join(self) -> None:
        """Wait for all blocks, then make them the blob. Raises Refused, Exhausted."""
        self._pool.shutdown(wait=True)
        self._check()
        names = "".join(f"<Latest>{name}</Latest>" for name in self._ids)
        content = f'<?xml version="1.0" encoding="utf-8"?><BlockList>{names}</BlockList>'.encode()
        headers = {"Content-Type": "application/xml", "x-ms-blob-content-type": self._content_type}
        put(self._transfers, f"{self._url}&comp=blocklist", content, headers)


class Sink:
    """A file to write a blob to, of which no more than a few blocks are in memory at once."""

    def __init__(self, blocks: Blocks) -> None:
        self.size = 0
        self._blocks = blocks
        self._digest = hashlib.sha256()
        self._pending = bytearray()

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()

    def write(self, data: bytes) -> int:
        """Raises Refused, Exhausted."""
        self._digest.update(data)
        self._pending += data
        while len(self._pending) >= BLOCK:
            self._blocks.put(bytes(self._pending[:BLOCK]))
            del self._pending[:BLOCK]
        self.size += len(data)
        return len(data)

    def flush(self) -> None:
        """Blocks leave when they are full."""

    def finish(self) -> None:
        """Raises Refused, Exhausted."""
        if self._pending:
            self._blocks.put(bytes(self._pending))
        self._blocks.join()


def upload(transfers: Transfers, url: str, *, content_type: str, write: Callable[[Sink], None]) -> Sink:
    """Send what `write` writes. Raises what it raises, Refused, Exhausted."""
    sink = Sink(Blocks(transfers, url, content_type=content_type))
    write(sink)
    sink.finish()
    return sink


def upload_file(transfers: Transfers, url: str, file: Path, *, block: int = LARGE_BLOCK) -> None:
    """Send a file: small ones in one call, others in blocks. Raises Refused, Exhausted."""
    size = file.stat().st_size
    if size <= SINGLE:
        headers = {"Content-Type": "application/octet-stream", "x-ms-blob-type": "BlockBlob"}
        put(transfers, url, Slice(file, 0, size), headers)
        return
    blocks = Blocks(transfers, url, content_type="application/octet-stream")
    for start in range(0, size, block):
        blocks.put(Slice(file, start, min(block, size - start)))
    blocks.join()


def put(transfers: Transfers, url: str, content: bytes | Slice, headers: dict[str, str]) -> None:
    """Raises Refused, Exhausted."""

    def attempt() -> None:
        answer = transfers.send("PUT", url, content=content, headers=headers)
        if not 200 <= answer.status < 300:
            said = answer.content[:2000].decode("utf-8", "replace")
            raise Refused(f"The upload was refused: {reason(answer.status)} {said}".strip(), status=answer.status)

    transfers.repeat(attempt)
