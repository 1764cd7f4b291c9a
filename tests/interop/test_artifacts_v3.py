"""Do clients of artifacts v3 find here what they found on GitHub? The last release, and what it would never send."""

import base64
import gzip
import hashlib
import io
import random
import zipfile

import httpx
import pytest

from ci.lifecycle import artifact_folders, transitions
from ci.models import Artifact, ArtifactFile, Blob, BlobPart
from ci.storage.blobs import read
from forge.access_tokens import create_access_token
from tests.interop.jobs import environment
from tests.interop.npm_clients import ClientError
from tests.interop.test_artifacts_v4 import TWO_JOBS, contents, fill

pytestmark = pytest.mark.django_db(transaction=True)

MIB = 1024 * 1024


class Client:
    """The package, acting in one job."""

    def __init__(self, npm_client, forge, assigned, workspace):
        self._call = npm_client("artifact-1").call
        self._environment = environment(forge, assigned, workspace)

    def __call__(self, method, *arguments):
        return self._call(method, *arguments, env=self._environment)

    def upload(self, name, folder, **options):
        files = sorted(str(path) for path in folder.rglob("*") if path.is_file())
        done = self("uploadArtifact", name, files, str(folder), options)
        assert done["failedItems"] == []
        return done

    def download(self, name, target):
        return self("downloadArtifact", name, str(target), {"createArtifactFolder": False})


class Raw:
    """Calls without the package."""

    def __init__(self, forge, assigned, run_id=None):
        runtime = assigned.payload["runtime"]
        run_id = run_id or assigned.payload["job"]["run_id"]
        self._address = f"{forge.url}/api/actions_pipeline/_apis/pipelines/workflows/{run_id}/artifacts"
        self._headers = {"Authorization": f"Bearer {runtime['token']}"}

    def __call__(self, method, path="", **options):
        headers = {**self._headers, **options.pop("headers", {})}
        return httpx.request(method, self._address + path, headers=headers, timeout=60, **options)

    def create(self, name):
        return self("POST", json={"Type": "actions_storage", "Name": name})

    def put(self, artifact_id, path, data, said=None, **headers):
        total = f"bytes 0-{len(data) - 1}/{len(data)}"
        sent = {"Content-Range": said or total, **{name.replace("_", "-"): value for name, value in headers.items()}}
        return self("PUT", f"/{artifact_id}/files", params={"itemPath": path}, content=data, headers=sent)

    def close(self, name):
        return self("PATCH", params={"artifactName": name}, json={"Size": 1})


@pytest.fixture
def assigned(world):
    world.run()
    return world.assigned().begin()


@pytest.fixture
def client(npm_client, forge, assigned, tmp_path):
    return Client(npm_client, forge, assigned, tmp_path)


@pytest.fixture
def raw(forge, assigned):
    return Raw(forge, assigned)


def test_what_is_uploaded_is_found_and_downloaded(client, tmp_path):
    source = fill(
        tmp_path / "source",
        {
            "a.txt": b"one\n" * 1000,  # goes packed
            "empty": b"",
            "sub dir/it's ü #1 100%+&.bin": bytes(range(256)),  # does not get smaller
            "two chunks.gz": random.Random(3).randbytes(9 * MIB),
        },
    )
    done = client.upload("my art ü 100% #1", source)
    stored = Artifact.objects.get()
    assert (stored.name, stored.blob, stored.size) == ("my art ü 100% #1", None, done["size"])
    assert stored.finalized_at is not None
    assert sorted(stored.files.values_list("blob__content_encoding", flat=True)) == ["", "", "", "gzip"]
    assert BlobPart.objects.filter(blob__artifact_file__path="two chunks.gz").count() == 2
    client.download("my art ü 100% #1", tmp_path / "target")
    assert contents(tmp_path / "target") == contents(source)


def test_several_artifacts_are_downloaded_at_once(client, tmp_path):
    for name in ("one", "two"):
        client.upload(name, fill(tmp_path / name, {"sub/a": name.encode()}))
    client("downloadAllArtifacts", str(tmp_path / "target"))
    assert contents(tmp_path / "target") == {"one/sub/a": b"one", "two/sub/a": b"two"}


def test_many_small_files_arrive(client, tmp_path):
    source = fill(tmp_path / "source", {f"{number % 10}/{number}": str(number).encode() for number in range(100)})
    client.upload("many", source)
    client.download("many", tmp_path / "target")
    assert contents(tmp_path / "target") == contents(source)


def test_jobs_of_an_attempt_fill_one_artifact_together(npm_client, forge, world, tmp_path):
    """As v3 has it: the legs of a matrix upload to one name, and a file uploaded again is replaced."""
    world.run(TWO_JOBS)
    jobs = [world.assigned(world.runner(name=name)).begin() for name in ("alpha", "beta")]
    first, second = (Client(npm_client, forge, job, tmp_path) for job in jobs)
    first.upload("shared", fill(tmp_path / "first", {"both": b"first's", "its own": b"1"}))
    second.upload("shared", fill(tmp_path / "second", {"both": b"second's", "another": b"2"}))
    first.download("shared", tmp_path / "target")
    assert contents(tmp_path / "target") == {"both": b"second's", "its own": b"1", "another": b"2"}
    assert Artifact.objects.count() == 1
    assert ArtifactFile.objects.count() == Blob.objects.count() == 3


def test_a_new_attempt_sees_the_artifact_of_the_one_before_until_it_makes_its_own(npm_client, forge, world, tmp_path):
    run, runner = world.run(), world.runner()
    earlier = world.assigned(runner).begin()
    Client(npm_client, forge, earlier, tmp_path).upload("result", fill(tmp_path / "old", {"a": b"old"}))
    earlier.complete("failure")
    transitions.rerun(run_id=run.pk, actor=world.alice, mode="all")
    client = Client(npm_client, forge, world.assigned(runner).begin(), tmp_path)
    for text in ("old", "new"):
        client.upload("result", fill(tmp_path / "new", {"a": b"new"})) if text == "new" else None
        client.download("result", tmp_path / f"target {text}")
        assert contents(tmp_path / f"target {text}") == {"a": text.encode()}


def test_it_becomes_one_zip_for_those_who_have_no_such_client(client, forge, world, tmp_path):
    files = {"a.txt": b"one\n" * 1000, "empty": b"", "sub/ü": bytes(range(256)), "zeros": bytes(9 * MIB)}
    source = fill(tmp_path / "source", files)
    client.upload("folder", source)
    address = f"{forge.url}/api/v1/repos/alice/widgets/actions/artifacts/{Artifact.objects.get().pk}/zip"
    _, token = create_access_token(user=world.carol, name="test")
    leads_to = httpx.get(address, headers={"Authorization": f"Bearer {token}"}, timeout=60)
    assert leads_to.status_code == 302
    answer = httpx.get(leads_to.headers["location"].replace(forge.public_url, forge.url), timeout=60)
    assert answer.headers["content-type"] == "application/zip"
    with zipfile.ZipFile(io.BytesIO(answer.content)) as found:
        assert {name: found.read(name) for name in found.namelist()} == contents(source)
        assert found.testzip() is None


def test_what_is_not_there_is_not_found(client, tmp_path):
    with pytest.raises(ClientError, match="Unable to find any artifacts"):
        client.download("nothing", tmp_path)


def test_a_chunk_that_comes_twice_is_stored_once(raw):
    made = raw.create("a").json()["containerId"]
    for start in (0, 0, 3, 3):
        assert raw.put(made, "a/file", b"abc", f"bytes {start}-{start + 2}/6").status_code == 201
    raw.close("a")
    assert files() == {"file": b"abcabc"}
    assert BlobPart.objects.count() == 2


def test_what_was_broken_off_is_not_joined_with_what_comes_after(raw):
    made = raw.create("a").json()["containerId"]
    raw.put(made, "a/file", b"old", "bytes 0-2/9")
    raw.put(made, "a/file", b"old", "bytes 3-5/9")
    raw.put(made, "a/file", b"new", "bytes 0-2/6")
    assert raw.put(made, "a/file", b"NEW", "bytes 3-5/6").status_code == 201
    raw.close("a")
    assert files() == {"file": b"newNEW"}


def test_a_hole_is_refused(raw):
    made = raw.create("a").json()["containerId"]
    answer = raw.put(made, "a/file", b"abc", "bytes 3-5/6")
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid")
    raw.close("a")
    assert files() == {}


def test_packed_files_are_handed_out_as_they_came(raw):
    made = raw.create("a").json()["containerId"]
    packed = gzip.compress(b"hello", mtime=0)
    raw.put(made, "a/file", packed, content_encoding="gzip", x_tfs_filelength="5")
    raw.close("a")
    listed = raw("GET", f"/{made}/files", params={"itemPath": "a"}).json()["value"]
    assert [(one["path"], one["itemType"]) for one in listed] == [("a/file", "file")]
    answer = httpx.get(listed[0]["contentLocation"].replace("forge.localhost", "127.0.0.1"))
    assert (answer.headers["content-encoding"], answer.content) == ("gzip", b"hello")


REFUSED_PATHS = [
    "",
    "file",
    "a",
    "a/",
    "b/file",
    "a//file",
    "a/../b",
    "/a/file",
    "a/./b",
    "a/c:d",
    'a/"',
    "a/\x00",
    "a/\n",
]


@pytest.mark.parametrize("path", REFUSED_PATHS)
def test_a_path_that_is_none_in_the_artifact_is_refused(raw, path):
    made = raw.create("a").json()["containerId"]
    answer = raw.put(made, path, b"x")
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid"), answer.text
    assert not ArtifactFile.objects.exists()
    assert not Blob.objects.exists()


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a\\b", "../up", 'say "x"', "a:b", "a\n", "x" * 256])
def test_a_path_in_an_artifacts_name_is_refused(raw, name):
    answer = raw.create(name)
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid")
    assert not Artifact.objects.exists()


BAD_CHUNKS = {
    "no range": {"said": "-"},
    "a range of words": {"said": "bytes a-b/c"},
    "without a total": {"said": "bytes 0-2/*"},
    "another length": {"said": "bytes 0-9/10"},
    "backwards": {"said": "bytes 2-0/3"},
    "another encoding": {"content_encoding": "br"},
    "another digest": {"x_actions_results_md5": base64.b64encode(hashlib.md5(b"abd").digest()).decode()},
}


@pytest.mark.parametrize("sent", BAD_CHUNKS.values(), ids=BAD_CHUNKS)
def test_a_chunk_that_is_not_what_it_says_is_refused(raw, sent):
    made = raw.create("a").json()["containerId"]
    assert raw.put(made, "a/file", b"abc", **sent).status_code == 400
    assert not BlobPart.objects.exists()


def test_a_file_above_the_limit_is_refused_before_it_is_read(raw):
    made = raw.create("a").json()["containerId"]
    answer = raw.put(made, "a/file", b"abc", f"bytes 0-2/{11 * 1024**3}")
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
    assert not Blob.objects.exists()


def test_without_the_jobs_token_nothing_is_stored_or_told(raw, world, forge, assigned):
    made = raw.create("a").json()["containerId"]
    for header in (
        {"Authorization": ""},
        {"Authorization": f"Bearer {assigned.token}"},
        {"Authorization": "Bearer a.b.c"},
    ):
        answers = [
            raw("GET", headers=header),
            raw("POST", headers=header, json={"Name": "b"}),
            raw("PATCH", headers=header, params={"artifactName": "a"}, json={"Size": 1}),
            raw("GET", f"/{made}/files", headers=header),
            raw("PUT", f"/{made}/files", headers={**header, "Content-Range": "bytes 0-0/1"}, content=b"x"),
        ]
        assert {answer.status_code for answer in answers} == {401}
        assert all(answer.json()["code"] == "unauthenticated" for answer in answers)
    assert Artifact.objects.count() == 1
    assert not ArtifactFile.objects.exists()


def test_another_run_is_out_of_reach(raw, world, forge, assigned):
    made = raw.create("a").json()["containerId"]
    world.run()
    other = world.assigned(world.runner(name="beta")).begin()
    there = Raw(forge, other, run_id=assigned.payload["job"]["run_id"])
    answers = [
        there("GET"),
        there.create("b"),
        there.close("a"),
        there("GET", f"/{made}/files"),
        there.put(made, "a/x", b"x"),
    ]
    assert [answer.status_code for answer in answers] == [403] * 5
    assert Raw(forge, other).put(made, "a/x", b"x").status_code == 404  # in its own run there is no such artifact
    assert not ArtifactFile.objects.exists()


def test_a_job_that_has_ended_stores_nothing_more(raw, assigned):
    made = raw.create("a").json()["containerId"]
    assigned.complete()
    assert raw.put(made, "a/file", b"x").status_code == 409
    assert raw.close("a").status_code == 409
    assert not ArtifactFile.objects.exists()


def test_other_methods_and_addresses_are_refused(raw):
    assert raw("DELETE").status_code == 405
    assert raw("PUT", "/x/files").status_code == 404
    assert raw.close("nothing").status_code == 404


def files():
    """What the artifact a has for its readers."""
    found = artifact_folders.files_of(Artifact.objects.get(name="a", finalized_at__isnull=False))
    return {file.path: b"".join(read(file.blob)) for file in found}
