"""What is the digest of a blob? Read once, a large one by few threads at a time, and then kept."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from ci.models import Blob
from ci.storage.blob_errors import DigestBusy
from ci.storage.blobs import read

# Threads of pages and calls do it, which are few.
AT_ONCE = 2
# So many bytes are read in a moment, and need no place.
SMALL = 32 * 1024 * 1024
SECONDS = 3.0  # that one waits for a place

_places = threading.BoundedSemaphore(AT_ONCE)
_being_read: set[int] = set()
_guard = threading.Lock()


def digest(blob: Blob) -> str:
    """`sha256:<hex>` of all bytes of a committed blob. Raises DigestBusy, and what `read` does."""
    known = Blob.objects.filter(pk=blob.pk).values_list("digest", flat=True).first()
    if known:
        return known
    pieces = read(blob)
    found = hashlib.sha256()
    with _place(blob):
        for piece in pieces:
            found.update(piece)
        named = f"sha256:{found.hexdigest()}"
        # A client that gave up waiting asks again: then it is known.
        Blob.objects.filter(pk=blob.pk).update(digest=named)
    return named


@contextmanager
def _place(blob: Blob) -> Iterator[None]:
    if (blob.size or 0) <= SMALL:
        yield
        return
    with _guard:
        if blob.pk in _being_read:
            raise DigestBusy
        _being_read.add(blob.pk)
    try:
        if not _places.acquire(timeout=SECONDS):
            raise DigestBusy
        try:
            yield
        finally:
            _places.release()
    finally:
        with _guard:
            _being_read.discard(blob.pk)
