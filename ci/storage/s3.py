"""How do logs, artifacts and caches lie in a bucket? As Django's storage, which FORGE_S3_BUCKET chooses."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from datetime import datetime
from types import SimpleNamespace
from typing import Any

from botocore.config import Config
from botocore.exceptions import ClientError
from django.core.files.base import File
from storages.backends.s3 import S3Storage
from storages.utils import clean_name

from ci.storage.files import PIECE

_MOST_DELETED_AT_ONCE = 1000  # S3's own limit


class S3(S3Storage):
    """Amazon's S3, and what speaks its protocol: MinIO, Ceph, Garage and others."""

    def __init__(self, **options: Any) -> None:
        # Servers at an address of their own seldom have a name for each bucket, and not all know the newest checksums.
        style = "path" if options.get("endpoint_url") else "auto"
        config = Config(
            s3={"addressing_style": style},
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
            retries={"max_attempts": 4, "mode": "standard"},
            connect_timeout=10,
            read_timeout=60,
            max_pool_connections=32,
        )
        # Whole files are read by readers of logs only: from the disk, when they are large.
        super().__init__(**{"client_config": config, "max_memory_size": 1024 * 1024, **options})
        # boto's clients may be shared by threads; one for each, as the base class has it, costs memory and a start.
        self._connections = SimpleNamespace()

    def read_range(self, name: str, start: int, end: int) -> Iterator[bytes]:
        """The bytes from `start` to before `end`, and no others travel. Raises FileNotFoundError."""
        with _missing_is_not_found(name):
            answer = self._client.get_object(Range=f"bytes={start}-{end - 1}", **self._place(name))
        with contextlib.closing(answer["Body"]) as body:
            yield from body.iter_chunks(PIECE)

    def delete_all(self, names: Sequence[str]) -> None:
        """Many in one call; those that are not there count as deleted. Raises OSError naming the first that failed."""
        for first in range(0, len(names), _MOST_DELETED_AT_ONCE):
            keys = [{"Key": self._place(name)["Key"]} for name in names[first : first + _MOST_DELETED_AT_ONCE]]
            answer = self._client.delete_objects(Bucket=self.bucket_name, Delete={"Objects": keys, "Quiet": True})
            for failed in answer.get("Errors", []):
                raise OSError(f"{failed.get('Key')}: {failed.get('Code')}")

    def get_modified_time(self, name: str) -> datetime:
        """Raises FileNotFoundError."""
        with _missing_is_not_found(name):
            modified: datetime = super().get_modified_time(name)
            return modified

    def _save(self, name: str, content: File[bytes]) -> str:
        # In one call, which our files are small enough for: an upload in parts that is killed leaves its parts behind.
        content.seek(0)
        parameters = self._get_write_parameters(name, content)
        self._client.put_object(Body=content.file, **self._place(name), **parameters)
        stored: str = clean_name(name)
        return stored

    @property
    def _client(self) -> Any:
        return self.connection.meta.client

    def _place(self, name: str) -> dict[str, str]:
        return {"Bucket": self.bucket_name, "Key": self._normalize_name(clean_name(name))}


@contextlib.contextmanager
def _missing_is_not_found(name: str) -> Iterator[None]:
    try:
        yield
    except ClientError as error:
        if error.response["ResponseMetadata"]["HTTPStatusCode"] == 404:
            raise FileNotFoundError(f"There is no file {name} in the bucket.") from error
        raise
