"""Do GitHub's clients of artifacts v4 find here what they find there? The real packages, against a real server."""

import hashlib
import random
from datetime import timedelta

import pytest

from ci.lifecycle import transitions
from ci.lifecycle.artifacts import create_artifact, finalize_artifact
from ci.lifecycle.errors import Conflict
from ci.lifecycle.storage_policies import set_policy
from ci.models import Artifact, Blob, BlobPart
from tests.interop.blob_server import Uploads, assert_refused
from tests.interop.jobs import environment
from tests.interop.npm_clients import ClientError
from tests.lifecycle.artifact_making import job_of

pytestmark = pytest.mark.django_db(transaction=True)

CLIENTS = ["artifact-2", "artifact-6"]
TWO_JOBS = """
    on: push
    jobs:
      first:
        runs-on: linux
        steps:
          - run: echo
      second:
        runs-on: linux
        steps:
          - run: echo
"""
JOB = "on: push\njobs:\n  build:\n    runs-on: linux\n    steps:\n      - run: echo\n"
# What people write, and what addresses, headers, zips and file systems have meanings of their own for.
NAMES = [
    "plain",
    "two words",
    "it's `quoted`",
    "ünï ködé 日本 🎉",
    "100%",
    "a%2Fb%00",
    "#1 & more; a=b+c, d",
    "..dots..",
    "report.zip",
    "x" * 255,
]


class Client:
    """One of the packages, acting in one job."""

    def __init__(self, npm_client, package, forge, assigned, workspace):
        self._call = npm_client(package).call
        self._environment = environment(forge, assigned, workspace)

    def __call__(self, method, *arguments):
        return self._call(method, *arguments, env=self._environment)

    def upload(self, name, folder, **options):
        files = sorted(str(path) for path in folder.rglob("*") if path.is_file())
        return self("uploadArtifact", name, files, str(folder), options)

    def download(self, artifact_id, target, **options):
        return self("downloadArtifact", artifact_id, {"path": str(target), **options})

    def names(self, **options):
        return [one["name"] for one in self("listArtifacts", options)["artifacts"]]


@pytest.fixture
def assigned(world):
    world.run()
    return world.assigned().begin()


@pytest.fixture(params=CLIENTS)
def package(request):
    return request.param


@pytest.fixture
def client(npm_client, package, forge, assigned, tmp_path):
    return Client(npm_client, package, forge, assigned, tmp_path)


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def fill(folder, files):
    for name, data in files.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    return folder


def test_what_is_uploaded_is_found_and_downloaded_and_deleted(client, tmp_path):
    source = fill(
        tmp_path / "source",
        {"a.txt": b"one\n", "empty": b"", "sub dir/it's ü #1 100%.bin": bytes(range(256)) * 40, ".hidden": b"x"},
    )
    made = client.upload("my art ü", source)
    stored = Artifact.objects.get()
    assert (stored.name, stored.size, stored.digest) == ("my art ü", made["size"], f"sha256:{made['digest']}")
    assert (stored.pk, stored.attempt, stored.job.name) == (made["id"], 1, "build")

    listed = client("listArtifacts")["artifacts"]
    assert [(one["name"], one["id"], one["size"]) for one in listed] == [("my art ü", made["id"], made["size"])]
    assert listed[0]["digest"] == stored.digest
    assert client("getArtifact", "my art ü")["artifact"] == listed[0]

    target = tmp_path / "target"
    done = client.download(made["id"], target, expectedHash=stored.digest)
    assert not done["digestMismatch"]
    assert contents(target) == contents(source)

    assert client("deleteArtifact", "my art ü") == {"id": made["id"]}
    assert client.names() == []
    with pytest.raises(ClientError, match="not found"):
        client("getArtifact", "my art ü")
    assert not Blob.objects.exists()


@pytest.mark.parametrize("name", NAMES)
def test_any_name_that_the_clients_allow_makes_the_whole_way(client, name, tmp_path):
    source = fill(tmp_path / "source", {"a.txt": name.encode()})
    made = client.upload(name, source)
    assert client("getArtifact", name)["artifact"]["id"] == made["id"]
    client.download(made["id"], tmp_path / "target")
    assert contents(tmp_path / "target") == {"a.txt": name.encode()}


def test_many_blocks_in_parallel_make_the_same_bytes(client, tmp_path):
    data = random.Random(4).randbytes(40 * 1024 * 1024)
    made = client.upload("large", fill(tmp_path / "source", {"large": data}), compressionLevel=0)
    assert BlobPart.objects.count() == 6  # blocks of 8 MiB, and what the zip adds
    done = client.download(made["id"], tmp_path / "target", expectedHash=f"sha256:{made['digest']}")
    assert not done["digestMismatch"]
    assert hashlib.sha256((tmp_path / "target/large").read_bytes()).digest() == hashlib.sha256(data).digest()


def test_ten_thousand_small_files_arrive(npm_client, forge, assigned, tmp_path):
    client = Client(npm_client, "artifact-6", forge, assigned, tmp_path)
    source = fill(tmp_path / "source", {f"{number % 100}/{number}": str(number).encode() for number in range(10_000)})
    made = client.upload("many", source, compressionLevel=0)
    client.download(made["id"], tmp_path / "target")
    assert contents(tmp_path / "target") == contents(source)


def test_one_gibibyte_arrives(npm_client, forge, assigned, tmp_path):
    client = Client(npm_client, "artifact-6", forge, assigned, tmp_path)
    size = 1024**3
    (tmp_path / "source").mkdir()
    with (tmp_path / "source/zeros").open("wb") as file:
        file.truncate(size)
    made = client.upload("zeros", tmp_path / "source", compressionLevel=0)
    assert made["size"] > size
    stored = Artifact.objects.get()
    assert (stored.size, stored.digest) == (made["size"], f"sha256:{made['digest']}")
    # As it is: unpacking it would take the client longer than all the rest.
    done = client.download(made["id"], tmp_path / "target", skipDecompress=True, expectedHash=stored.digest)
    assert not done["digestMismatch"]
    assert (tmp_path / "target/zeros.zip").stat().st_size == made["size"]


@pytest.mark.parametrize("data", [b"", b"<script>alert(1)</script>"], ids=["nothing", "a page"])
def test_one_file_without_a_zip_stays_as_it_is(npm_client, forge, assigned, tmp_path, data):
    """Only the newer client can."""
    client = Client(npm_client, "artifact-6", forge, assigned, tmp_path)
    source = fill(tmp_path / "source", {"it's 100% ü.html": data})
    made = client("uploadArtifact", "ignored", [str(source / "it's 100% ü.html")], str(source), {"skipArchive": True})
    assert client.names() == ["it's 100% ü.html"]
    client.download(made["id"], tmp_path / "target")
    assert contents(tmp_path / "target") == {"it's 100% ü.html": data}


def test_an_artifact_is_not_replaced_in_its_attempt(client, tmp_path):
    first = client.upload("same", fill(tmp_path / "source", {"a": b"first"}))
    with pytest.raises(ClientError, match=r"\(409\) Conflict: An artifact with the name same exists"):
        client.upload("same", fill(tmp_path / "other", {"a": b"second"}))
    client.download(first["id"], tmp_path / "target")
    assert contents(tmp_path / "target") == {"a": b"first"}
    client("deleteArtifact", "same")
    client.upload("same", tmp_path / "other")
    assert client.names() == ["same"]


def test_jobs_of_a_run_see_what_the_others_keep_but_do_not_take_its_name(npm_client, package, forge, world, tmp_path):
    world.run(TWO_JOBS)
    jobs = [world.assigned(world.runner(name=name)).begin() for name in ("alpha", "beta")]
    first, second = (Client(npm_client, package, forge, job, tmp_path) for job in jobs)
    first.upload("shared", fill(tmp_path / "source", {"a": b"first's"}))
    with pytest.raises(ClientError, match="409"):
        second.upload("shared", tmp_path / "source")
    found = second("getArtifact", "shared")["artifact"]
    second.download(found["id"], tmp_path / "target")
    assert contents(tmp_path / "target") == {"a": b"first's"}
    second("deleteArtifact", "shared")
    assert first.names() == []


def test_a_new_attempt_may_use_the_name_again_and_the_newest_is_found(npm_client, package, forge, world, tmp_path):
    run, runner = world.run(), world.runner()
    earlier = world.assigned(runner).begin()
    client = Client(npm_client, package, forge, earlier, tmp_path)
    old = client.upload("result", fill(tmp_path / "source", {"a": b"old"}))
    earlier.complete("failure")
    transitions.rerun(run_id=run.pk, actor=world.alice, mode="all")
    client = Client(npm_client, package, forge, world.assigned(runner).begin(), tmp_path)
    assert client.names() == ["result"]  # of the attempt before
    new = client.upload("result", fill(tmp_path / "source", {"a": b"new"}))
    assert client("getArtifact", "result")["artifact"]["id"] == new["id"]
    assert sorted(one["id"] for one in client("listArtifacts")["artifacts"]) == [old["id"], new["id"]]
    assert [one["id"] for one in client("listArtifacts", {"latest": True})["artifacts"]] == [new["id"]]
    for artifact, text in ((old, b"old"), (new, b"new")):
        client.download(artifact["id"], tmp_path / f"target{artifact['id']}")
        assert contents(tmp_path / f"target{artifact['id']}") == {"a": text}


@pytest.mark.parametrize(("asked", "days"), [({}, 20), ({"retentionDays": 3}, 3), ({"retentionDays": 60}, 20)])
def test_it_is_kept_as_long_as_asked_but_no_longer_than_the_repository_allows(
    npm_client, package, forge, world, tmp_path, asked, days
):
    set_policy(repository=world.repository, artifact_days=20, cache_bytes=None, actor=world.alice)
    world.run()
    client = Client(npm_client, package, forge, world.assigned().begin(), tmp_path)
    client.upload("kept", fill(tmp_path / "source", {"a": b""}), **asked)
    stored = Artifact.objects.get()
    # The client counts days by its own clock, and in its own time zone, where a day may have 23 hours.
    assert abs(stored.expires_at - stored.created_at - timedelta(days=days)) < timedelta(hours=2)


def test_what_has_expired_is_not_found(client, tmp_path):
    made = client.upload("gone", fill(tmp_path / "source", {"a": b""}))
    stored = Artifact.objects.get()
    Artifact.objects.update(expires_at=stored.created_at)
    assert client.names() == []
    with pytest.raises(ClientError, match="No artifacts found for ID"):
        client.download(made["id"], tmp_path / "target")


def test_another_run_is_read_with_the_jobs_own_token(npm_client, package, forge, world, tmp_path):
    """By the REST API; what the permissions of the job say counts."""
    earlier, runner = world.run(), world.runner()
    first = world.assigned(runner).begin()
    source = fill(tmp_path / "source", {"a": b"of another run"})
    made = Client(npm_client, package, forge, first, tmp_path).upload("it's 100% ü", source)
    first.complete()
    world.run("permissions:\n  actions: write\n" + JOB)
    second = world.assigned(runner).begin()
    client = Client(npm_client, package, forge, second, tmp_path)
    there = {"findBy": {**where(earlier), "token": second.token}}

    found = client("getArtifact", "it's 100% ü", there)["artifact"]
    assert (found["id"], found["digest"]) == (made["id"], f"sha256:{made['digest']}")
    assert [one["id"] for one in client("listArtifacts", there)["artifacts"]] == [made["id"]]
    client.download(made["id"], tmp_path / "target", **there)
    assert contents(tmp_path / "target") == contents(source)
    assert client("deleteArtifact", "it's 100% ü", there) == {"id": made["id"]}
    assert client("listArtifacts", there)["artifacts"] == []


def test_without_the_permission_another_run_is_not_found(npm_client, package, forge, world, tmp_path):
    earlier, runner = world.run(), world.runner()
    first = world.assigned(runner).begin()
    Client(npm_client, package, forge, first, tmp_path).upload("hidden", fill(tmp_path / "source", {"a": b""}))
    first.complete()
    world.run("permissions:\n  contents: read\n" + JOB)
    second = world.assigned(runner).begin()
    client = Client(npm_client, package, forge, second, tmp_path)
    with pytest.raises(ClientError, match="There is no such repository"):
        client("listArtifacts", {"findBy": {**where(earlier), "token": second.token}})
    assert client.names() == []  # its own run has none


def test_a_job_that_has_ended_keeps_nothing_more(client, assigned, tmp_path):
    source = fill(tmp_path / "source", {"a": b""})
    assigned.complete()
    with pytest.raises(ClientError, match=r"\(412\) Precondition Failed: The job has ended: success"):
        client.upload("late", source)
    assert not Artifact.objects.exists()


def where(run):
    return {"workflowRunId": run.pk, "repositoryOwner": "alice", "repositoryName": "widgets"}


def test_a_list_that_names_a_missing_block_leaves_nothing_to_see(forge, world, assigned):
    """What no client of GitHub's does: the addresses that they were given, called by hand."""
    uploads = Uploads(forge, create_artifact(job=job_of(assigned), name="a").blob)
    assert uploads.block("two", b"2").status_code == uploads.block("one", b"1").status_code == 201
    assert_refused(uploads.commit("one", "two", "three"), 400, "InvalidBlockList")
    with pytest.raises(Conflict, match="not complete"):
        finalize_artifact(job=job_of(assigned), name="a", size=2)
    assert Artifact.objects.get().finalized_at is None
    assert uploads.commit("one", "two").status_code == 201
    made = finalize_artifact(job=job_of(assigned), name="a", size=2)
    assert made.digest == f"sha256:{hashlib.sha256(b'12').hexdigest()}"
    assert_refused(uploads.commit("two", "one"), 409, "BlobAlreadyExists")
    assert_refused(uploads.put(b"other"), 409, "BlobAlreadyExists")
