"""How does whoever may read an artifact get it? By a signed address, or, a folder of files, as a zip made now."""

from __future__ import annotations

from collections.abc import Iterator

from django.utils.http import content_disposition_header

from ci.lifecycle.artifacts import ZIP
from ci.lifecycle.errors import Expired
from ci.models import Artifact
from ci.storage import signed_urls
from ci.storage.folder_zips import zipped

# What clients have said of a zip: those before version 6 say "zip".
_ZIPS = ("", "zip", ZIP, "application/x-zip-compressed", "application/zip-compressed")
_EXPIRED = "This artifact has expired: its bytes are gone. Run the workflow again to make a new one."


def is_folder(artifact: Artifact) -> bool:
    """Whether it is of protocol v3: there is no address of it as a whole, `folder_zip` makes a zip."""
    return artifact.blob_id is None


def filename(artifact: Artifact) -> str:
    """Under which name it is saved."""
    kind = artifact.blob.content_type.lower() if artifact.blob is not None else ZIP
    if kind not in _ZIPS or artifact.name.lower().endswith(".zip"):
        return artifact.name
    return f"{artifact.name}.zip"


def disposition(artifact: Artifact) -> str:
    """The Content-Disposition of its zip."""
    return content_disposition_header(as_attachment=True, filename=filename(artifact)) or "attachment"


def address(artifact: Artifact) -> str:
    """Where it can be downloaded without further proof, for ten minutes. Raises Expired."""
    if artifact.blob is None or artifact.is_expired:
        raise Expired(_EXPIRED)
    return signed_urls.download_url(artifact.blob, filename=filename(artifact))


def folder_zip(artifact: Artifact) -> Iterator[bytes]:
    """The files of an artifact of protocol v3 as one zip. Raises Expired."""
    if artifact.is_expired:
        raise Expired(_EXPIRED)
    files = artifact.files.filter(blob__committed_at__isnull=False).select_related("blob").order_by("path")
    return zipped([(file.path, file.blob) for file in files])
