"""Do owners and running jobs find, download and delete artifacts at GitHub's addresses, each as far as they may?"""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from ci.lifecycle import artifacts
from ci.models import Artifact, Run
from forge.models import Repository
from tests.api.calls import call, error_of
from tests.lifecycle.artifact_making import job_of, keep, keep_folder

HERE = "repos/alice/widgets/actions"


@pytest.fixture
def assigned(playground):
    playground.run()
    return playground.assigned().begin()


@pytest.fixture
def job(assigned):
    return job_of(assigned)


@pytest.fixture
def made(job):
    return keep(job, "it's 100% ü")


def test_a_list_has_githubs_shape(made, carol, settings):
    body = carol.get(f"{HERE}/artifacts").json()
    run = made.run
    address = f"{settings.SERVER_URL}/api/v1/{HERE}/artifacts/{made.pk}"
    assert body["total_count"] == 1
    (found,) = [dict(one) for one in body["artifacts"]]
    for name in ("created_at", "updated_at", "expires_at"):
        assert found.pop(name).endswith("Z")
    assert found == {
        "id": made.pk,
        "name": "it's 100% ü",
        "size_in_bytes": 3,
        "url": address,
        "archive_download_url": f"{address}/zip",
        "expired": False,
        "digest": made.digest,
        "workflow_run": {
            "id": run.pk,
            "repository_id": run.repository_id,
            "head_repository_id": run.repository_id,
            "head_branch": "main",
            "head_sha": run.sha,
        },
    }
    assert carol.get(f"{HERE}/runs/{run.pk}/artifacts").json() == body
    assert carol.get(f"{HERE}/artifacts/{made.pk}").json() == body["artifacts"][0]


def test_lists_are_paged_and_filtered_by_name(job, playground, carol):
    for name in ("a", "b", "c"):
        keep(job, name)
    playground.run()
    other = job_of(playground.assigned(playground.runner(name="beta")).begin())
    keep(other, "a")
    artifacts.create_artifact(job=other, name="unfinished")

    def names(query, path="artifacts"):
        return [
            (one["name"], one["workflow_run"]["id"]) for one in carol.get(f"{HERE}/{path}{query}").json()["artifacts"]
        ]

    assert names("") == [("a", other.run_id), ("c", job.run_id), ("b", job.run_id), ("a", job.run_id)]
    assert names("?per_page=2&page=2") == [("b", job.run_id), ("a", job.run_id)]
    assert names("?name=a") == [("a", other.run_id), ("a", job.run_id)]
    assert names("?name=nothing") == []
    assert names("?name=a%00") == []
    assert names("?name=a", f"runs/{job.run_id}/artifacts") == [("a", job.run_id)]
    first = carol.get(f"{HERE}/artifacts?per_page=3")
    assert "page=2" in first.headers["Link"]
    assert first.json()["total_count"] == 4


def test_clients_that_name_githubs_media_types_get_json(made, playground):
    for accept in ("application/vnd.github+json", "application/vnd.github.v3+json", "*/*", "text/html"):
        Repository.objects.update(private=False)
        answer = Client().get(f"/api/v1/{HERE}/artifacts", headers={"Accept": accept})
        assert (answer.status_code, answer.headers["Content-Type"]) == (200, "application/json")


def test_a_download_leads_to_a_signed_address(made, carol, settings):
    answer = carol.get(f"{HERE}/artifacts/{made.pk}/zip")
    assert answer.status_code == 302
    assert answer.headers["Location"].startswith(
        f"{settings.SERVER_URL}/_blobs/download/{made.blob.key}/it%27s%20100%25%20"
    )
    assert answer.headers["Cache-Control"] == "no-store"


def test_a_folder_leads_to_its_zip(job, carol):
    folder = keep_folder(job, "folder", a=b"one", b=b"two")
    answer = carol.get(f"{HERE}/artifacts/{folder.pk}/zip")
    assert answer.status_code == 302
    assert f"/_blobs/folder/{folder.pk}/folder.zip?" in answer["Location"]
    assert carol.get(f"{HERE}/artifacts/{folder.pk}").json()["digest"] is None


@pytest.mark.parametrize("swept", [False, True])
def test_what_has_expired_is_shown_but_gone(made, carol, swept):
    Artifact.objects.update(expires_at=timezone.now() - timedelta(seconds=1), **({"blob": None} if swept else {}))
    assert carol.get(f"{HERE}/artifacts/{made.pk}").json()["expired"] is True
    error_of(carol.get(f"{HERE}/artifacts/{made.pk}/zip"), 410, "expired")


def test_deleting_takes_the_role_to_write(made, alice, bob, carol, mallory, visitor):
    address = f"{HERE}/artifacts/{made.pk}"
    error_of(mallory("DELETE", address), 404, "not_found")
    error_of(carol("DELETE", address), 403, "not_allowed")
    assert visitor("DELETE", address).status_code in (401, 404)
    assert Artifact.objects.exists()
    assert bob("DELETE", address).status_code == 204
    error_of(alice("DELETE", address), 404, "not_found")


def test_strangers_of_a_private_repository_find_nothing(made, mallory, visitor):
    for path in ("artifacts", f"artifacts/{made.pk}", f"artifacts/{made.pk}/zip", f"runs/{made.run_id}/artifacts"):
        error_of(mallory.get(f"{HERE}/{path}"), 404, "not_found")
        assert visitor.get(f"{HERE}/{path}").status_code in (401, 404)


def test_of_a_public_repository_everybody_sees_them_and_whoever_signed_in_downloads(made, mallory, visitor):
    Repository.objects.update(private=False)
    assert visitor.get(f"{HERE}/artifacts").json()["total_count"] == 1
    error_of(visitor.get(f"{HERE}/artifacts/{made.pk}/zip"), 401, "unauthenticated")
    assert mallory.get(f"{HERE}/artifacts/{made.pk}/zip").status_code == 302


def test_through_another_repository_nothing_is_found(playground, made, alice):
    playground.make_repository(name="other")
    there = "repos/alice/other/actions"
    assert alice.get(f"{there}/artifacts").json()["artifacts"] == []
    for path in (f"artifacts/{made.pk}", f"artifacts/{made.pk}/zip", f"runs/{made.run_id}/artifacts"):
        error_of(alice.get(f"{there}/{path}"), 404, "not_found")
    error_of(alice("DELETE", f"{there}/artifacts/{made.pk}"), 404, "not_found")
    assert Artifact.objects.exists()


def permitted(playground, permission):
    playground.run(
        f"on: push\npermissions:\n  {permission}\njobs:\n  build:\n    runs-on: linux\n    steps:\n      - run: echo\n"
    )
    return playground.assigned(playground.runner(name="beta")).begin()


def by_job(assigned, method, path):
    return call(method, f"/api/v1/{path}", token=assigned.token)


def test_a_job_reads_as_far_as_its_permission_for_actions_goes(playground, made):
    address = f"{HERE}/artifacts/{made.pk}"
    reading = permitted(playground, "actions: read")
    assert by_job(reading, "GET", f"{HERE}/artifacts").json()["total_count"] == 1
    assert by_job(reading, "GET", f"{address}/zip").status_code == 302
    error_of(by_job(reading, "DELETE", address), 403, "not_allowed")
    reading.complete()
    error_of(by_job(reading, "GET", f"{HERE}/artifacts"), 401, "unauthenticated")


def test_a_job_with_the_permission_deletes(playground, made):
    assert by_job(permitted(playground, "actions: write"), "DELETE", f"{HERE}/artifacts/{made.pk}").status_code == 204
    assert not Artifact.objects.exists()


def test_a_job_of_a_run_that_nobody_with_write_access_caused_deletes_nothing(playground, made):
    stranger = permitted(playground, "actions: write")
    Run.objects.filter(pk=stranger.job.run_id).update(trusted=False)
    error_of(by_job(stranger, "DELETE", f"{HERE}/artifacts/{made.pk}"), 403, "not_allowed")
    assert by_job(stranger, "GET", f"{HERE}/artifacts").json()["total_count"] == 1


def test_a_job_without_the_permission_finds_nothing(playground, made):
    without = permitted(playground, "contents: write")
    error_of(by_job(without, "GET", f"{HERE}/artifacts"), 404, "not_found")
    error_of(by_job(without, "DELETE", f"{HERE}/artifacts/{made.pk}"), 404, "not_found")
    # Nor does the token open any other call of the owners' API.
    error_of(by_job(without, "GET", "repositories/alice/widgets/runs"), 401, "unauthenticated")


def test_a_token_of_another_kind_is_refused(made, assigned, playground):
    for token in (assigned.payload["runtime"]["token"][:200], "frj_unknown", playground.runner_token):
        error_of(call("GET", f"/api/v1/{HERE}/artifacts", token=token), 401, "unauthenticated")
