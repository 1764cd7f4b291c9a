"""How are many blobs sent as one zip that is stored nowhere? Written, as it is sent, to a stream that cannot seek."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Generator, Iterable, Iterator

from ci.models import Blob
from ci.storage import blobs

# The same blobs always make the same zip; this is the earliest time that a zip can say.
_TIME = (1980, 1, 1, 0, 0, 0)
_PERMISSIONS = 0o644 << 16


class _Pipe(io.RawIOBase):
    """What was written since it was last taken. It cannot seek, so the zip is written from its start to its end."""

    def __init__(self) -> None:
        self._written: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: object, /) -> int:
        piece = bytes(data)  # type: ignore[call-overload]
        self._written.append(piece)
        return len(piece)

    def take(self) -> bytes:
        taken, self._written = b"".join(self._written), []
        return taken


def zipped(files: Iterable[tuple[str, Blob]], *, most: int) -> Generator[bytes, None, None]:
    """A zip of the blobs under these paths, compressed; a blob that is stored as gzip is unpacked for it.

    `most`: bytes of all files together, unpacked. Raises BlobMissing, BlobLost, BlobTooLarge, zlib.error, while
    iterating.
    """
    left = most
    pipe = _Pipe()
    with zipfile.ZipFile(pipe, "w", zipfile.ZIP_DEFLATED) as made:
        for path, blob in files:
            entry = zipfile.ZipInfo(path, _TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = _PERMISSIONS
            with made.open(entry, "w", force_zip64=_may_be_large(blob)) as target:
                for piece in _plain(blob):
                    left -= len(piece)
                    if left < 0:
                        raise blobs.BlobTooLarge("folder", most)
                    target.write(piece)
                    if taken := pipe.take():
                        yield taken
    yield pipe.take()


def _may_be_large(blob: Blob) -> bool:
    """Whether it may have more than 2 GiB, as far as the plain form of zip is safe; packed ones may become anything."""
    return bool(blob.content_encoding) or (blob.size or 0) > 2**30


def _plain(blob: Blob) -> Iterator[bytes]:
    if blob.content_encoding != "gzip":
        yield from blobs.read(blob)
        return
    unpacking = zlib.decompressobj(wbits=31)
    for piece in blobs.read(blob):
        while piece:
            yield unpacking.decompress(piece, 1024 * 1024)  # a few bytes may stand for very many
            piece = unpacking.unconsumed_tail
    yield unpacking.flush()
