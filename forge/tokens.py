"""How are bearer tokens made, stored and found again? Random, shown once, kept as SHA-256."""

from __future__ import annotations

import hashlib
import secrets

PREFIXES = {"access": "frp_", "registration": "frg_", "runner": "frr_", "job": "frj_"}


def new_token(kind: str) -> str:
    """A new token of `kind` (a key of PREFIXES) with 256 random bits."""
    return PREFIXES[kind] + secrets.token_urlsafe(32)


def hash_token(token: str) -> str:
    """SHA-256 in hex. Look-ups go by it: of 256 random bits, how long a look-up takes tells nothing."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def same_token(stored_hash: str | None, token: str) -> bool:
    """Whether `token` is the one behind `stored_hash`, in constant time."""
    return stored_hash is not None and secrets.compare_digest(stored_hash, hash_token(token))
