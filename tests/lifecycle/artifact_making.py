"""How do the tests of artifacts get a running job, and keep something for it?"""

from __future__ import annotations

from io import BytesIO

from ci.lifecycle import artifact_folders, artifacts, runtime_tokens
from ci.models import Artifact, Job
from ci.storage import blobs
from tests.playground import Assigned, Playground


def job_of(assigned: Assigned) -> Job:
    """As the services find it by the runtime token."""
    return runtime_tokens.job_of(assigned.payload["runtime"]["token"])


def on(playground: Playground, *, runner: str = "alpha") -> Job:
    """A running job of a new run."""
    playground.run()
    return job_of(playground.assigned(playground.runner(name=runner)).begin())


def fill(artifact: Artifact, data: bytes) -> None:
    """What a client puts to the signed address."""
    assert artifact.blob is not None
    blobs.put_whole(blob=artifact.blob, source=BytesIO(data), size=len(data), content_type=artifacts.ZIP)


def keep(job: Job, name: str, data: bytes = b"zip") -> Artifact:
    """Made, filled and finalized."""
    fill(artifacts.create_artifact(job=job, name=name), data)
    return artifacts.finalize_artifact(job=job, name=name, size=len(data))


def put(job: Job, folder: Artifact, path: str, data: bytes) -> None:
    """A whole file into an artifact of protocol v3."""
    artifact_folders.put_file(
        job=job,
        artifact_id=folder.pk,
        item_path=f"{folder.name}/{path}",
        source=BytesIO(data),
        start=0,
        size=len(data),
        total=len(data),
    )


def keep_folder(job: Job, name: str, **files: bytes) -> Artifact:
    """Made, filled and closed."""
    folder = artifact_folders.open_folder(job=job, name=name)
    for path, data in files.items():
        put(job, folder, path, data)
    return artifact_folders.close_folder(job=job, name=name)
