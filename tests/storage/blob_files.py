"""How do the tests of blobs put bytes, read them back, and see what lies in the storage?"""

from __future__ import annotations

import io
import os
import time
from datetime import timedelta
from pathlib import Path

from django.utils import timezone

from ci.models import Blob, BlobPart
from ci.storage import blobs


def put(blob: Blob, block_id: str, data: bytes) -> BlobPart:
    return blobs.put_part(blob=blob, block_id=block_id, source=io.BytesIO(data), size=len(data))


def committed(*parts: bytes) -> Blob:
    blob = blobs.create()
    names = [f"block-{number}" for number in range(len(parts))]
    for name, data in zip(names, parts, strict=True):
        put(blob, name, data)
    return blobs.commit(blob=blob, block_ids=names)


def content(blob: Blob, **stretch: int) -> bytes:
    return b"".join(blobs.read(blob, **stretch))


def stored(folder: Path) -> list[bytes]:
    """What the files hold, sorted."""
    return sorted(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def age_files(folder: Path, seconds: int = 7200) -> None:
    earlier = time.time() - seconds
    for path in folder.rglob("*"):
        if path.is_file():
            os.utime(path, (earlier, earlier))


def age_rows(**by: int) -> None:
    """Every blob and part came that much earlier."""
    earlier = timezone.now() - timedelta(**by)
    Blob.objects.update(created_at=earlier)
    Blob.objects.filter(committed_at__isnull=False).update(committed_at=earlier)
    BlobPart.objects.update(created_at=earlier)
