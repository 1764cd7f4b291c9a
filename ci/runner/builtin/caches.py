"""How is a cache restored and saved without Node.js?

Source of rules and words: actions/cache and @actions/cache; the version of an entry is computed as there, so that both
find each other's entries."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ci.runner.builtin import step, tars
from ci.runner.builtin.blobs import LARGE_BLOCK, SINGLE, upload_file
from ci.runner.builtin.globs import Globber
from ci.runner.builtin.results import Results
from ci.runner.builtin.step import Failure
from ci.runner.builtin.transfers import Transfers

SERVICE = "CacheService"
SALT = "1.0"
LONGEST_KEY = 512
MOST_KEYS = 10
SMALLEST_BLOCK = 1024 * 1024
MIB = 1024 * 1024


class Invalid(Failure):
    """The inputs cannot be meant; unlike other faults of a cache this fails the step."""


@dataclass(frozen=True)
class Hit:
    """An entry that was found."""

    key: str
    url: str
    compression: str


def version(paths: Sequence[str], compression: str) -> str:
    """What entries must have in common beside their key."""
    return hashlib.sha256("|".join([*paths, compression, SALT]).encode("utf-8", "replace")).hexdigest()


def same_key(key: str, other: str) -> bool:
    return key.casefold() == other.casefold()


def check(paths: Sequence[str], keys: Sequence[str]) -> None:
    """Raises Invalid."""
    if not paths:
        raise Invalid("Path Validation Error: At least one directory or file path is required")
    if len(keys) > MOST_KEYS:
        raise Invalid(f"Key Validation Error: Keys are limited to a maximum of {MOST_KEYS}.")
    for key in keys:
        if len(key) > LONGEST_KEY:
            raise Invalid(f"Key Validation Error: {key} cannot be larger than {LONGEST_KEY} characters.")
        if "," in key:
            raise Invalid(f"Key Validation Error: {key} cannot contain commas.")


class Caches:
    """The caches that this job may read and write."""

    def __init__(self) -> None:
        """Raises Failure."""
        self._transfers = Transfers()
        self._results = Results(self._transfers)
        self._workspace = Path(os.environ.get("GITHUB_WORKSPACE") or Path.cwd())

    def find(self, paths: Sequence[str], keys: Sequence[str]) -> Hit | None:
        """The entry of the first key, else the newest that one of the keys begins, in their order. An archive that this
        machine would compress in another way is found too where it can be read. Raises Failure."""
        close: Hit | None = None
        for compression in tars.readable_methods():
            body = {"key": keys[0], "restore_keys": list(keys[1:]), "version": version(paths, compression)}
            said = self._results.call(SERVICE, "GetCacheEntryDownloadURL", body)
            if not said.get("ok"):
                continue
            hit = Hit(str(said["matched_key"]), str(said["signed_download_url"]), compression)
            if hit.key == keys[0]:
                return hit
            close = close or hit
        return close

    def restore(self, hit: Hit, paths: Sequence[str]) -> None:
        """Raises Failure, OSError."""
        with tempfile.TemporaryDirectory(dir=os.environ.get("RUNNER_TEMP")) as folder:
            file = Path(folder, "cache")
            size = self._transfers.download(hit.url, file).size
            step.info(f"Cache Size: ~{round(size / MIB)} MB ({size} B)")
            roots = self._globber(paths).search_paths()
            tars.extract(file, workspace=self._workspace, roots=roots, compression=hit.compression)

    def save(self, paths: Sequence[str], key: str, *, block: int) -> bool:
        """Whether there is a new entry now. Raises Failure, OSError."""
        found = sorted({path for path, _ in self._globber(paths).find(descendants=False)})
        if not found:
            raise Invalid(
                "Path Validation Error: Path(s) specified in the action for caching do(es) not exist, hence no cache "
                "is being saved."
            )
        compression = tars.method()
        body = {"key": key, "version": version(paths, compression)}
        with tempfile.TemporaryDirectory(dir=os.environ.get("RUNNER_TEMP")) as folder:
            file = Path(folder, "cache")
            tars.create(file, found, workspace=self._workspace, compression=compression)
            size = file.stat().st_size
            url = self._reserve(key, body)
            if not url:
                return False
            upload_file(self._transfers, url, file, block=block)
        step.info(f"Sent {size} of {size} (100.0%)")
        said = self._results.call(SERVICE, "FinalizeCacheEntryUpload", {**body, "size_bytes": str(size)})
        if not said.get("ok"):
            raise Failure(
                str(said.get("message") or "")
                or f"Unable to finalize cache with key {key}, another job may be finalizing this cache."
            )
        return True

    def _reserve(self, key: str, body: dict[str, str]) -> str:
        """The address to upload to, '' where somebody else has the key."""
        try:
            said = self._results.call(SERVICE, "CreateCacheEntry", body)
            if said.get("ok"):
                return str(said["signed_upload_url"])
            if said.get("message"):
                step.warning(f"Cache reservation failed: {said['message']}")
        except Failure as problem:
            step.debug(f"Failed to reserve cache: {problem}")
        step.info(f"Failed to save: Unable to reserve cache with key {key}, another job may be creating this cache.")
        return ""

    def _globber(self, paths: Sequence[str]) -> Globber:
        return Globber(paths, cwd=Path.cwd(), home=Path.home())


def block_size() -> int:
    """`upload-chunk-size` within what the forge takes."""
    given = step.text("upload-chunk-size")
    return min(SINGLE, max(SMALLEST_BLOCK, int(given))) if given.isdecimal() and len(given) < 12 else LARGE_BLOCK
