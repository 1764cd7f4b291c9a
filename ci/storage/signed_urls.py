"""Who may put or get bytes without an account? Who was given an address that is signed for just that."""

from __future__ import annotations

import hmac
import re
import time
from urllib.parse import quote, urlencode
from uuid import UUID

from django.conf import settings
from django.utils.crypto import salted_hmac

from ci.models import Artifact, Blob

PREFIX = "/_blobs/"
UPLOAD_SECONDS = 6 * 3600
DOWNLOAD_SECONDS = 600
# Ten digits last until the year 2286.
_EXPIRY = re.compile(r"[0-9]{1,10}")
_UPLOAD, _DOWNLOAD, _FOLDER = "upload", "download", "folder"


class SignatureInvalid(Exception):
    """The address was not made here, was changed, or its time is over."""


def upload_url(blob: Blob, *, seconds: int = UPLOAD_SECONDS) -> str:
    """Where whoever has it may PUT the blob's blocks and commit them. Clients add to its query."""
    return _url(blob.key, _UPLOAD, "", seconds)


def download_url(blob: Blob, *, filename: str, seconds: int = DOWNLOAD_SECONDS) -> str:
    """Where whoever has it may GET the blob, under this name; signed, so that nobody can suggest another one."""
    return _url(blob.key, _DOWNLOAD, filename, seconds)


def folder_url(artifact: Artifact, *, filename: str, seconds: int = DOWNLOAD_SECONDS) -> str:
    """Where whoever has it may GET the files of an artifact of protocol v3 as one zip, under this name."""
    return _url(artifact.pk, _FOLDER, filename, seconds)


def check_upload(*, key: UUID, expires: str, signature: str) -> None:
    """`expires` and `signature` are `se` and `sig` of the query. Raises SignatureInvalid."""
    _check(key, _UPLOAD, "", expires, signature)


def check_download(*, key: UUID, filename: str, expires: str, signature: str) -> None:
    """As `check_upload`; `filename` as it is, not quoted. Raises SignatureInvalid."""
    _check(key, _DOWNLOAD, filename, expires, signature)


def check_folder(*, artifact_id: int, filename: str, expires: str, signature: str) -> None:
    """As `check_download`. Raises SignatureInvalid."""
    _check(artifact_id, _FOLDER, filename, expires, signature)


def _url(key: UUID | int, purpose: str, filename: str, seconds: int) -> str:
    expires = str(int(time.time()) + seconds)
    query = urlencode({"se": expires, "sig": _signature(key, purpose, filename, expires)})
    # The client of Azure's storage wants three segments of path at a host that is an IP address.
    path = f"{PREFIX}{purpose}/{key}" + (f"/{quote(filename, safe='')}" if filename else "")
    return f"{settings.SERVER_URL}{path}?{query}"


def _check(key: UUID | int, purpose: str, filename: str, expires: str, signature: str) -> None:
    known = _signature(key, purpose, filename, expires)
    # Compared first: whoever forges one shall not learn anything else.
    if not hmac.compare_digest(known.encode(), signature.encode("utf-8", "surrogatepass")):
        raise SignatureInvalid("The signature does not fit this address.")
    if not _EXPIRY.fullmatch(expires) or int(expires) < time.time():
        raise SignatureInvalid("The time of this address is over; ask for a new one.")


def _signature(key: UUID | int, purpose: str, filename: str, expires: str) -> str:
    # The name comes last, for it may hold anything.
    text = f"{purpose}\n{key}\n{expires}\n{filename}"
    return salted_hmac("ci.storage.signed_urls", text.encode("utf-8", "surrogatepass"), algorithm="sha256").hexdigest()
