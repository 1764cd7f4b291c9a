"""Does the artifact service refuse what it must, with the codes that its clients know, and keep nothing of it?"""

import base64
import json
from datetime import timedelta

import jwt
import pytest
from django.conf import settings
from django.utils import timezone

from ci.lifecycle import artifacts, runtime_tokens, transitions
from ci.models import Artifact, Blob, Job
from ci.storage import blob_digests, blobs
from ci.storage.blob_errors import DigestBusy
from tests.interop.results_service import Service, error_of, twirp
from tests.lifecycle.artifact_making import fill

METHODS = ["CreateArtifact", "FinalizeArtifact", "ListArtifacts", "GetSignedArtifactURL", "DeleteArtifact"]
ZIP_DIGEST = "sha256:b0d09eb1b0f96a3e2e9f7d1ee8a1a8f28f6a1bd4ac8a0b0a45ea7b58c1e5b0b5"


@pytest.fixture
def assigned(playground):
    playground.run()
    return playground.assigned().begin()


@pytest.fixture
def service(assigned):
    return Service(assigned)


def claims(token):
    return jwt.decode(token, options={"verify_signature": False})


def signed(said):
    return jwt.encode(said, runtime_tokens._key(), algorithm="HS256")


def test_the_token_says_what_clients_read_of_it(assigned):
    said = claims(assigned.payload["runtime"]["token"])
    run_id = assigned.payload["job"]["run_id"]
    assert said["scp"] == f"Actions.Results:{run_id}:{assigned.id}"
    assert (said["TaskID"], said["RunID"], said["JobID"]) == (assigned.id, run_id, assigned.id)
    assert json.loads(said["ac"]) == [{"Scope": "", "Permission": 2}]
    assert said["nbf"] < timezone.now().timestamp() < said["exp"]
    assert assigned.payload["runtime"]["token"] in assigned.payload["masks"]
    assert {name: url for name, url in assigned.payload["runtime"].items() if name != "token"} == {
        "runtime_url": f"{settings.SERVER_URL}/api/actions_pipeline/",
        "results_url": f"{settings.SERVER_URL}/",
        "cache_url": f"{settings.SERVER_URL}/api/actions_cache/",
    }


def unsigned(token):
    head = base64.urlsafe_b64encode(b'{"alg":"none","typ":"JWT"}').decode().rstrip("=")
    return f"{head}.{token.split('.')[1]}."


FORGED = {
    "none": lambda token, _: None,
    "the job's own": lambda token, assigned: assigned.token,
    "no JWT": lambda token, _: "a.b.c",
    "unsigned": lambda token, _: unsigned(token),
    "cut": lambda token, _: token[:-4],
    "longer than any": lambda token, _: token + "A" * 5000,
    "of another key": lambda token, _: jwt.encode(claims(token), b"k" * 32, algorithm="HS256"),
    "of the key of all": lambda token, _: jwt.encode(claims(token), settings.SECRET_KEY, algorithm="HS256"),
    "expired": lambda token, _: signed({**claims(token), "exp": int(timezone.now().timestamp()) - 1}),
    "not valid yet": lambda token, _: signed({**claims(token), "nbf": int(timezone.now().timestamp()) + 3600}),
    "without an end": lambda token, _: signed({k: v for k, v in claims(token).items() if k != "exp"}),
    "of no job": lambda token, _: signed({**claims(token), "JobID": 2**62}),
    "of another assignment": lambda token, _: signed({**claims(token), "assignment": 2}),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("forge", FORGED.values(), ids=FORGED)
def test_a_token_that_is_expired_or_forged_does_nothing(service, assigned, method, forge):
    service.upload("kept")
    token = forge(service.token, assigned)
    given = {**service.ids, "name": "kept", "size": "3"}
    error_of(twirp(method, given, token=token), 401, "unauthenticated")
    assert list(Artifact.objects.values_list("name", flat=True)) == ["kept"]
    assert Blob.objects.count() == 1


@pytest.mark.parametrize("method", METHODS)
def test_a_job_that_has_ended_does_nothing_more(service, assigned, method):
    service.upload("kept")
    assigned.complete()
    said = error_of(service(method, name="kept", size="3"), 412, "failed_precondition")
    assert "ended: success" in said
    assert Artifact.objects.count() == 1


def test_post_steps_after_a_cancel_still_upload(service, assigned, playground):
    transitions.cancel_run(run_id=assigned.job.run_id, actor=playground.alice)
    assert service.upload("late").finalized_at is not None


def test_a_job_that_was_given_to_another_runner_lost_its_token(service, assigned):
    Job.objects.update(assignment=2)
    error_of(service("CreateArtifact", name="a"), 401, "unauthenticated")
    error_of(service("ListArtifacts"), 401, "unauthenticated")


REFUSED_NAMES = [
    "",
    ".",
    "..",
    "a/b",
    "a\\b",
    "../up",
    'say "x"',
    *(f"a{character}b" for character in ":<>|*?\r\n\t\x7f"),
]


@pytest.mark.parametrize("name", [*REFUSED_NAMES, "x" * 256, 7, None, ["a"]])
def test_a_path_in_an_artifacts_name_is_refused(service, name):
    error_of(service("CreateArtifact", name=name, version=4), 400, "invalid_argument")
    assert not Artifact.objects.exists()
    assert not Blob.objects.exists()


@pytest.mark.parametrize("text", ["\\u0000", "\\ud800"])
def test_a_name_that_cannot_be_stored_is_refused(service, text):
    raw = json.dumps({**service.ids, "name": "@"}).replace("@", text).encode()
    error_of(twirp("CreateArtifact", token=service.token, raw=raw), 400, "malformed")
    assert not Blob.objects.exists()


@pytest.mark.parametrize(
    "raw", [b"{", b"[]", b"7", b'"text"', b"\xff", b"[" * 100_000, b'{"name": "' + b"x" * 70_000 + b'"}']
)
def test_a_body_that_is_no_object_is_malformed(service, raw):
    error_of(twirp("CreateArtifact", token=service.token, raw=raw), 400, "malformed")


def test_what_is_no_method_or_no_json_is_a_bad_route(service):
    token = service.token
    error_of(twirp("Nothing", token=token), 404, "bad_route")
    error_of(twirp("ListArtifacts", token=token, service="github.actions.results.api.v1.Nothing"), 404, "bad_route")
    error_of(twirp("ListArtifacts", token=token, content_type="application/protobuf"), 404, "bad_route")
    error_of(twirp("ListArtifacts", token=token, verb="GET"), 404, "bad_route")


@pytest.mark.parametrize("field", ["workflow_run_backend_id", "workflow_job_run_backend_id"])
@pytest.mark.parametrize("method", ["CreateArtifact", "FinalizeArtifact"])
def test_a_job_keeps_artifacts_for_no_other(service, method, field):
    service("CreateArtifact", name="a")
    other = str(int(service.ids[field]) + 1)
    error_of(service(method, name="a", size="0", **{field: other}), 403, "permission_denied")
    assert Artifact.objects.get().finalized_at is None


@pytest.mark.parametrize("method", ["ListArtifacts", "GetSignedArtifactURL", "DeleteArtifact"])
def test_artifacts_of_another_run_are_out_of_reach(service, playground, method):
    service.upload("theirs")
    playground.run()
    mine = Service(playground.assigned(playground.runner(name="beta")).begin())
    run = service.ids["workflow_run_backend_id"]
    error_of(mine(method, name="theirs", workflow_run_backend_id=run), 403, "permission_denied")
    assert mine("ListArtifacts").json() == {"artifacts": []}
    if method != "ListArtifacts":
        error_of(mine(method, name="theirs"), 404, "not_found")
    assert Artifact.objects.filter(name="theirs").exists()


def test_fields_have_either_spelling(service):
    service.upload("a")
    ids = {"workflowRunBackendId": service.ids["workflow_run_backend_id"], "nameFilter": "b"}
    assert twirp("ListArtifacts", ids, token=service.token).json() == {"artifacts": []}
    ids["nameFilter"] = "a"
    assert len(twirp("ListArtifacts", ids, token=service.token).json()["artifacts"]) == 1


def test_a_list_is_filtered_by_name_and_by_id(service):
    first, second = service.upload("a"), service.upload("b")
    assert [one["database_id"] for one in service("ListArtifacts").json()["artifacts"]] == [
        str(second.pk),
        str(first.pk),
    ]
    (found,) = service("ListArtifacts", id_filter=str(first.pk)).json()["artifacts"]
    assert found == {
        **service.ids,
        "database_id": str(first.pk),
        "name": "a",
        "size": "3",
        "created_at": first.created_at.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "digest": first.digest,
    }
    error_of(service("ListArtifacts", id_filter="x"), 400, "invalid_argument")


def test_without_its_bytes_an_artifact_is_not_finalized(service):
    error_of(service("FinalizeArtifact", name="a", size="3"), 404, "not_found")
    service("CreateArtifact", name="a")
    error_of(service("FinalizeArtifact", name="a", size="3"), 412, "failed_precondition")
    assert service("ListArtifacts").json() == {"artifacts": []}
    error_of(service("GetSignedArtifactURL", name="a"), 404, "not_found")


@pytest.mark.parametrize(
    ("size", "digest"),
    [
        ("2", ""),
        ("4", ""),
        ("-1", ""),
        ("x", ""),
        (True, ""),
        ("3", ZIP_DIGEST),
        ("3", "sha256:1"),
        ("3", "md5:" + "0" * 32),
    ],
)
def test_other_bytes_than_announced_are_not_finalized(service, size, digest):
    service("CreateArtifact", name="a")
    fill(Artifact.objects.get(), b"zip")
    error_of(service("FinalizeArtifact", name="a", size=size, hash=digest), 400, "invalid_argument")
    assert Artifact.objects.get().finalized_at is None
    assert service("ListArtifacts").json() == {"artifacts": []}


def test_finalizing_twice_is_once(service):
    made = service.upload("a")
    again = service("FinalizeArtifact", name="a", size="3", hash=made.digest)
    assert again.json() == {"ok": True, "artifact_id": str(made.pk)}
    error_of(service("FinalizeArtifact", name="a", size="4"), 400, "invalid_argument")
    error_of(service("CreateArtifact", name="a"), 409, "already_exists")


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (blobs.BlobMissing(), 412, "failed_precondition"),
        (blobs.BlobLost("part 7"), 500, "internal"),
        (DigestBusy(), 503, "unavailable"),
    ],
)
def test_bytes_that_cannot_be_read_now_are_said_in_a_sentence(service, monkeypatch, error, status, code):
    service("CreateArtifact", name="a")
    fill(Artifact.objects.get(), b"zip")

    def read(blob):
        raise error

    monkeypatch.setattr(blob_digests, "read", read)
    said = error_of(service("FinalizeArtifact", name="a", size="3"), status, code)
    assert "operator" not in said and "part 7" not in said
    assert Artifact.objects.get().finalized_at is None


def test_a_digest_that_was_found_is_not_sought_again(service, monkeypatch):
    service("CreateArtifact", name="a")
    fill(Artifact.objects.get(), b"zip")
    error_of(service("FinalizeArtifact", name="a", size="3", hash=ZIP_DIGEST), 400, "invalid_argument")
    monkeypatch.setattr(blob_digests, "read", None)
    assert service("FinalizeArtifact", name="a", size="3").status_code == 200


def test_an_upload_that_was_given_up_begins_anew(service):
    first = service("CreateArtifact", name="a").json()["signed_upload_url"]
    fill(Artifact.objects.get(), b"first")
    second = service("CreateArtifact", name="a").json()["signed_upload_url"]
    assert first.partition("?")[0] != second.partition("?")[0]
    assert Blob.objects.count() == 1
    error_of(service("FinalizeArtifact", name="a", size="5"), 412, "failed_precondition")
    fill(Artifact.objects.get(), b"second")
    assert service("FinalizeArtifact", name="a", size="6").status_code == 200


@pytest.mark.parametrize("expires_at", ["2000-01-01T00:00:00Z", "tomorrow", "9999-99-99T00:00:00Z", 7])
def test_an_end_that_cannot_be_is_refused(service, expires_at):
    error_of(service("CreateArtifact", name="a", expires_at=expires_at), 400, "invalid_argument")
    assert not Artifact.objects.exists()


def test_an_end_has_any_zone(service):
    at = (timezone.now() + timedelta(days=2)).replace(microsecond=0)
    service("CreateArtifact", name="a", expires_at=at.strftime("%Y-%m-%dT%H:%M:%S+00:00"))
    assert Artifact.objects.get().expires_at == at


def test_a_job_has_only_so_many_artifacts(service, assigned, monkeypatch):
    monkeypatch.setattr(artifacts, "MAX_PER_JOB", 2)
    service.upload("a")
    service.upload("b")
    error_of(service("CreateArtifact", name="c"), 412, "failed_precondition")
    assert Artifact.objects.count() == 2
