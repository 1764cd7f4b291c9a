"""How does whoever may read an artifact get it? By a signed address; a folder of files as a zip that is made there."""

from __future__ import annotations

from collections.abc import Generator

from django.conf import settings

from ci.lifecycle.artifacts import ZIP, no_artifact
from ci.lifecycle.errors import Expired
from ci.models import Artifact
from ci.storage import signed_urls
from ci.storage.folder_zips import zipped

# What clients have said of a zip: those before version 6 say "zip".
_ZIPS = ("", "zip", ZIP, "application/x-zip-compressed", "application/zip-compressed")


def filename(artifact: Artifact) -> str:
    """Under which name it is saved."""
    kind = artifact.blob.content_type.lower() if artifact.blob is not None else ZIP
    if kind not in _ZIPS or artifact.name.lower().endswith(".zip"):
        return artifact.name
    return f"{artifact.name}.zip"


def address(artifact: Artifact) -> str:
    """Where it can be downloaded without further proof, for ten minutes. Raises Expired."""
    if artifact.is_expired:
        raise Expired("This artifact has expired: its bytes are gone. Run the workflow again to make a new one.")
    if artifact.blob is None:
        return signed_urls.folder_url(artifact, filename=filename(artifact))
    return signed_urls.download_url(artifact.blob, filename=filename(artifact))


def folder_zip(artifact_id: int) -> Generator[bytes, None, None]:
    """The files of an artifact of protocol v3 as one zip. Raises NotFound, and while iterating what `zipped` does."""
    found = Artifact.objects.filter(pk=artifact_id, blob=None, finalized_at__isnull=False).first()
    if found is None or found.is_expired:
        raise no_artifact()
    files = found.files.filter(blob__committed_at__isnull=False).select_related("blob").order_by("path")
    return zipped([(file.path, file.blob) for file in files], most=settings.BLOB_BYTES)
