"""How do jobs fill an artifact of protocol v3? As a folder of files, which the jobs of an attempt may share.

So v3 has it: several jobs, as the legs of a matrix, upload to one name, and a file uploaded again is replaced."""

from __future__ import annotations

from typing import BinaryIO

from django.conf import settings
from django.db.models import F, QuerySet, Sum
from django.utils import timezone

from ci.lifecycle.artifact_names import check_name, file_path
from ci.lifecycle.artifact_quota import check_quota
from ci.lifecycle.artifacts import drop, expiry_of, make_room, visible_artifacts
from ci.lifecycle.errors import Conflict, InvalidInput, NotFound
from ci.lifecycle.runtime_tokens import lock_caller
from ci.lifecycle.transitions.guard import guarded
from ci.models import Artifact, ArtifactFile, Blob, Job, Run
from ci.storage import blobs

MAX_FILES = 20_000


def folders_of(run: Run) -> list[Artifact]:
    """Those that can be downloaded, of each name the newest."""
    newest: dict[str, Artifact] = {}
    for artifact in visible_artifacts(run).filter(blob=None):
        newest.setdefault(artifact.name, artifact)
    return list(newest.values())


def files_of(artifact: Artifact) -> QuerySet[ArtifactFile]:
    """Those that arrived as a whole."""
    return artifact.files.filter(blob__committed_at__isnull=False).select_related("blob").order_by("path")


@guarded
def open_folder(*, job: Job, name: str, retention_days: int | None = None) -> Artifact:
    """The folder of this name in the job's attempt, made where there is none.

    Raises InvalidInput, AlreadyExists (an artifact of v4), Conflict, and what `lock_caller` does.
    """
    check_name(name)
    locked = lock_caller(job)
    expiry = expiry_of(locked.run.repository, days=retention_days)
    known = Artifact.objects.filter(run=locked.run, attempt=locked.attempt, name=name, blob=None).first()
    if known is not None and known.expires_at > timezone.now():
        return known
    if known is not None:
        drop(known.pk)
    make_room(locked, name)
    return Artifact.objects.create(
        run=locked.run, attempt=locked.attempt, job=locked, name=name, expires_at=expiry, size=0
    )


def put_file(
    *,
    job: Job,
    artifact_id: int,
    item_path: str,
    source: BinaryIO,
    start: int,
    size: int,
    total: int,
    content_encoding: str = "",
) -> None:
    """Store `size` bytes of a file of `total` bytes from `start` on; with the last of them it is there.

    `item_path`: the artifact's name, a slash, and the path in it. A repeat of the same bytes changes nothing; of a file
    that is there already the first bytes begin a new one. Raises InvalidInput, NotFound,
    Conflict, QuotaExceeded, BlobError, and what `lock_caller` does.
    """
    file = _begun(
        job=job, artifact_id=artifact_id, item_path=item_path, start=start, total=total, encoding=content_encoding
    )
    blob = file.blob
    if blob.committed_at is not None:
        if (blob.size, blob.content_encoding) == (total, content_encoding) and _same(
            blob, source, start=start, size=size
        ):
            return
        if start != 0:
            raise Conflict(f"{file.path} is complete: upload it again from its beginning.")
        blob = _begun_anew(job=job, file_id=file.pk, encoding=content_encoding)
    if size:
        check_quota(job.run.repository_id, adding=size)
        blobs.put_part(blob=blob, block_id=blobs.offset_id(start), source=source, size=size)
    if start + size == total:
        _complete(artifact_id=artifact_id, blob=blob, total=total)


@guarded
def close_folder(*, job: Job, name: str) -> Artifact:
    """Make it visible with the files that have arrived; those on their way will follow. Repeats change nothing.

    Raises NotFound, and what `lock_caller` does.
    """
    locked = lock_caller(job)
    artifact = Artifact.objects.filter(run=locked.run, attempt=locked.attempt, name=name, blob=None).first()
    if artifact is None:
        raise NotFound(f"There is no artifact with the name {name} in this attempt of the run.")
    artifact.size = files_of(artifact).aggregate(sum=Sum("blob__size"))["sum"] or 0
    artifact.finalized_at = artifact.finalized_at or timezone.now()
    artifact.save(update_fields=["size", "finalized_at"])
    return artifact


@guarded
def _begun(*, job: Job, artifact_id: int, item_path: str, start: int, total: int, encoding: str) -> ArtifactFile:
    """The file to write to, with a blob of its own."""
    locked = lock_caller(job)
    artifact = Artifact.objects.filter(pk=artifact_id, run=locked.run, attempt=locked.attempt, blob=None).first()
    if artifact is None:
        raise NotFound("There is no such artifact in this attempt of the run.")
    path = _path_in(artifact, item_path)
    file = ArtifactFile.objects.select_related("blob").filter(artifact=artifact, path=path).first()
    if file is None:
        _check_room(artifact, total)
        return ArtifactFile.objects.create(artifact=artifact, path=path, blob=blobs.create(content_encoding=encoding))
    if start == 0 and file.blob.committed_at is None:
        _replace(file, encoding)  # parts of an upload that was broken off must not be joined with these
    return file


@guarded
def _begun_anew(*, job: Job, file_id: int, encoding: str) -> Blob:
    lock_caller(job)
    file = ArtifactFile.objects.select_related("blob").filter(pk=file_id).first()
    if file is None:
        raise NotFound("The artifact was deleted.")
    _replace(file, encoding)
    return file.blob


def _replace(file: ArtifactFile, encoding: str) -> None:
    old, file.blob = file.blob, blobs.create(content_encoding=encoding)
    file.save(update_fields=["blob"])
    blobs.discard(old)


def _complete(*, artifact_id: int, blob: Blob, total: int) -> None:
    try:
        blobs.commit_all(blob=blob, size=total)
    except (blobs.BlockMissing, blobs.SizeDiffers) as error:
        raise InvalidInput({"Content-Range": f"{error} Upload the file again from its beginning."}) from None
    # A sum as it goes, for the limit; `close_folder` counts anew.
    Artifact.objects.filter(pk=artifact_id).update(size=F("size") + total)


def _path_in(artifact: Artifact, item_path: str) -> str:
    name, _, path = file_path(item_path).partition("/")
    if name != artifact.name or not path:
        raise InvalidInput({"itemPath": "It must be the name of the artifact, a slash, and the path of a file in it."})
    return path


def _check_room(artifact: Artifact, total: int) -> None:
    if artifact.files.count() >= MAX_FILES:
        raise Conflict(f"An artifact has at most {MAX_FILES} files: put them into an archive.")
    if artifact.size + total > settings.BLOB_BYTES:
        raise Conflict(f"An artifact has at most {settings.BLOB_BYTES} bytes.")


def _same(blob: Blob, source: BinaryIO, *, start: int, size: int) -> bool:
    """Whether these bytes of the blob are those of `source`, which is as it was afterwards."""
    try:
        return all(source.read(len(piece)) == piece for piece in blobs.read(blob, start=start, end=start + size))
    finally:
        source.seek(0)
