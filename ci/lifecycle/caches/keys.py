"""What may a cache be called? The limits of GitHub's clients, held on the server too."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ci.lifecycle.errors import InvalidInput
from ci.workflow.storable import UNSTORABLE

MAX_KEY = 512  # characters
MAX_KEYS = 10
_VERSION = re.compile(r"[\x21-\x7e]{1,100}")


def check_key(key: str) -> None:
    """Raises InvalidInput."""
    _refuse("key", _fault(key))


def check_keys(keys: Sequence[str]) -> None:
    """Of a look-up: the key itself, then what it may begin with instead. Raises InvalidInput."""
    if not keys:
        _refuse("keys", "Give at least one key.")
    if len(keys) > MAX_KEYS:
        _refuse("keys", f"At most {MAX_KEYS} keys can be looked for at once; these are {len(keys)}.")
    for key in keys:
        _refuse("keys", _fault(key))


def check_version(version: str) -> None:
    """Raises InvalidInput."""
    if not _VERSION.fullmatch(version):
        _refuse("version", "A version is 1 to 100 printable ASCII characters without spaces, as clients make it.")


def _fault(key: str) -> str:
    if not key:
        return "A key must not be empty."
    if len(key) > MAX_KEY:
        return f"A key has at most {MAX_KEY} characters; this one has {len(key)}."
    if "," in key:
        return "A key must not contain a comma, which separates keys."
    if UNSTORABLE.search(key):
        return "A key must not contain a NUL character or half of a surrogate pair."
    return ""


def _refuse(field: str, fault: str) -> None:
    if fault:
        raise InvalidInput({field: fault})
