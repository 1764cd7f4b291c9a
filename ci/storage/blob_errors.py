"""What can keep a blob from being written or read? Each in a sentence; callers give it the name their protocol has."""

from __future__ import annotations

from collections.abc import Sequence


class BlobError(Exception):
    """Nothing was changed."""


class BlobMissing(BlobError):
    def __init__(self) -> None:
        super().__init__("There is no such blob, or it is not complete yet.")


class BlobCommitted(BlobError):
    def __init__(self) -> None:
        super().__init__("The blob is complete and does not change any more; start a new upload.")


class BlobTooLarge(BlobError):
    """`limit` in bytes, or in blocks."""

    def __init__(self, what: str, limit: int) -> None:
        super().__init__(f"The {what} is larger than {limit}, which is the limit here.")
        self.limit = limit


class BlockMissing(BlobError):
    """`block_ids` are those that the blob lacks."""

    def __init__(self, block_ids: Sequence[str]) -> None:
        shown = ", ".join(block_ids[:5]) + (" …" if len(block_ids) > 5 else "")
        super().__init__(f"Blocks were not uploaded: {shown}. Upload them, then commit again.")
        self.block_ids = list(block_ids)


class BlockRepeated(BlobError):
    def __init__(self) -> None:
        super().__init__("The list names a block twice.")


class SizeDiffers(BlobError):
    """`expected` and `found` in bytes."""

    def __init__(self, *, expected: int, found: int) -> None:
        super().__init__(f"The upload has {found} bytes, and not {expected}.")
        self.expected = expected
        self.found = found


class PutTooSlow(BlobError):
    def __init__(self) -> None:
        super().__init__("Storing the block took too long; upload it again.")


class BlobLost(BlobError):
    """The storage does not have what a row names."""


class DigestBusy(BlobError):
    def __init__(self) -> None:
        super().__init__("The bytes that arrived are being read to compare them; try again in a moment.")
