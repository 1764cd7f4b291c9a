"""Which log files belong to no job any more? Rows and files cannot be deleted as one, so some files stay behind."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from django.core.files.storage import default_storage
from django.utils import timezone

from ci.models import Log

# A merge that is under way has its name recorded before its file appears; this is for clocks that differ.
UNTOUCHED_FOR = timedelta(hours=1)
_FOLDER = "logs"
_BATCH = 500
_UNFINISHED = ".part"


def remove_orphans(*, most: int = 10_000) -> int:
    """Delete files that no log names, at most `most` at once; how many there were. Safe to repeat and to kill."""
    removed = 0
    for folder in _folders():
        names = [f"{folder}/{name}" for name in default_storage.listdir(folder)[1]]
        for start in range(0, len(names), _BATCH):
            for name in _unnamed(names[start : start + _BATCH]):
                if removed >= most:
                    return removed
                removed += _remove(name)
    return removed


def _folders() -> Iterator[str]:
    try:
        folders, _ = default_storage.listdir(_FOLDER)
    except FileNotFoundError:
        return  # no log was merged yet
    for folder in sorted(folders):
        yield f"{_FOLDER}/{folder}"


def _unnamed(names: list[str]) -> list[str]:
    recorded = [*names, *(name + _UNFINISHED for name in names)]
    named = {
        blob.removesuffix(_UNFINISHED) for blob in Log.objects.filter(blob__in=recorded).values_list("blob", flat=True)
    }
    return [name for name in names if name not in named]


def _remove(name: str) -> int:
    try:
        if default_storage.get_modified_time(name) > timezone.now() - UNTOUCHED_FOR:
            return 0
    except FileNotFoundError:
        return 0  # another sweep was faster
    default_storage.delete(name)
    return 1
