"""How do logs, artifacts and caches lie in a bucket? As Django's storage, which FORGE_S3_BUCKET chooses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, cast

import obstore
from django.core.files.base import File
from django.core.files.storage import Storage
from django.utils.deconstruct import deconstructible
from obstore.store import S3Store

from ci.storage.files import PIECE

# Up to this a file travels in one request and sits in memory for it; larger ones in parts of this size.
_PART_BYTES = 8 * 1024 * 1024
_PARTS_AT_ONCE = 2
_READ_AHEAD = 256 * 1024


@deconstructible
class S3(Storage):
    """Amazon's S3, and what speaks its protocol: MinIO, Ceph, Garage, SeaweedFS and others.

    Names are used as they are and must be new: files of one name replace each other. What fails raises
    FileNotFoundError or obstore.exceptions.BaseError.
    """

    def __init__(
        self, *, bucket: str, endpoint: str = "", region: str = "", access_key: str = "", secret_key: str = ""
    ) -> None:
        self.bucket = bucket
        given = {
            "endpoint": endpoint,
            "region": region,
            "access_key_id": access_key,
            "secret_access_key": secret_key,
        }
        self._given = {name: value for name, value in given.items() if value}

    @cached_property
    def _store(self) -> S3Store:
        # Made when it is first used: its threads would not survive the fork of the task workers.
        return S3Store(
            self.bucket,
            **cast(Any, self._given),
            client_options={
                "allow_http": self._given.get("endpoint", "").startswith("http://"),
                "connect_timeout": "10s",
                "read_timeout": "60s",
                "timeout": "15m",
            },
            retry_config={"max_retries": 3, "retry_timeout": timedelta(seconds=60)},
        )

    def read_range(self, name: str, start: int, end: int) -> Iterator[bytes]:
        """The bytes from `start` to before `end`; no others travel. Raises FileNotFoundError."""
        found = obstore.get(self._store, name, options={"range": (start, end)})
        for piece in found.stream(min_chunk_size=PIECE):
            yield bytes(piece)

    def delete(self, name: str) -> None:
        self.delete_all([name])

    def delete_all(self, names: Sequence[str]) -> None:
        """Many in one call; those that are not there count as deleted."""
        if names:
            obstore.delete(self._store, list(names))

    def exists(self, name: str) -> bool:
        try:
            obstore.head(self._store, name)
        except FileNotFoundError:
            return False
        return True

    def listdir(self, path: str) -> tuple[list[str], list[str]]:
        found = obstore.list_with_delimiter(self._store, path)
        return (
            [folder.rpartition("/")[2] for folder in found["common_prefixes"]],
            # Some servers show an empty folder as an object in itself.
            [one["path"].rpartition("/")[2] for one in found["objects"] if one["path"] != path],
        )

    def size(self, name: str) -> int:
        return obstore.head(self._store, name)["size"]

    def get_modified_time(self, name: str) -> datetime:
        return obstore.head(self._store, name)["last_modified"]

    def get_available_name(self, name: str, max_length: int | None = None) -> str:
        return name  # ours are random, and asking costs a request

    def _open(self, name: str, mode: str = "rb") -> File[bytes]:
        if mode != "rb":
            raise ValueError("Files in a bucket are opened to read bytes.")
        return File(cast(Any, obstore.open_reader(self._store, name, buffer_size=_READ_AHEAD)), name)

    def _save(self, name: str, content: File[bytes]) -> str:
        content.seek(0)
        obstore.put(self._store, name, cast(Any, content.file), chunk_size=_PART_BYTES, max_concurrency=_PARTS_AT_ONCE)
        return name
