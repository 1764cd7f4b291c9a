"""What does the run's page show of what the run kept, and who downloads and deletes it?"""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from ci.lifecycle import transitions
from ci.models import Artifact, Blob, Event, Run
from forge.models import Repository
from tests.lifecycle.artifact_making import job_of, keep, keep_folder, on
from tests.playground import Playground
from tests.web.conftest import Browse


@pytest.fixture
def artifact(playground: Playground) -> Artifact:
    return keep(on(playground), "my art ü 100% #1 'a'", b"x" * 2048)


def page(client: Client, run: Run, rest: str = "") -> str:
    response = client.get(f"{run.get_absolute_url()}{rest}")
    assert response.status_code == 200
    return " ".join(response.content.decode().split())


def address(artifact: Artifact, rest: str = "") -> str:
    return f"{artifact.run.get_absolute_url()}artifacts/{artifact.pk}/{rest}"


def test_each_is_listed_with_size_digest_and_expiry(alice: Client, artifact: Artifact) -> None:
    text = page(alice, artifact.run)
    assert "my art ü 100% #1 &#x27;a&#x27;" in text
    assert "2.0 KB" in text and artifact.digest in text and "in 2 months" in text
    assert f'href="{address(artifact)}"' in text and f'action="{address(artifact, "delete/")}"' in text


def test_without_any_nothing_is_said_on_the_runs_page_and_how_to_on_the_list(
    alice: Client, playground: Playground
) -> None:
    run = playground.run()
    assert "Artifacts" not in page(alice, run).partition("<main")[2]
    assert "This run kept nothing" in page(alice, run, "artifacts/")


def test_a_thousand_take_as_many_queries_as_one_and_are_paged(alice: Client, artifact: Artifact) -> None:
    page(alice, artifact.run)
    with CaptureQueriesContext(connection) as of_one:
        page(alice, artifact.run)
    rows = [
        Artifact(
            run=artifact.run, attempt=1, name=f"a{n:04}", finalized_at=timezone.now(), expires_at=artifact.expires_at
        )
        for n in range(1000)
    ]
    Artifact.objects.bulk_create(rows)
    with CaptureQueriesContext(connection) as of_many:
        text = page(alice, artifact.run)
    assert len(of_many) == len(of_one)
    assert "a0000" in text and "a0500" not in text and "All artifacts" in text
    assert "a0150" in page(alice, artifact.run, "artifacts/?page=2")


def test_the_newest_of_a_name_is_shown_and_of_which_attempt(alice: Client, playground: Playground) -> None:
    job = on(playground)
    keep(job, "old", b"a")
    first = keep(job, "both", b"a")
    transitions.cancel_run(run_id=job.run_id, actor=playground.alice, force=True)
    transitions.rerun(run_id=job.run_id, actor=playground.alice, mode="all")
    second = keep(job_of(playground.assigned(playground.runner(name="beta")).begin()), "both", b"bb")
    text = page(alice, job.run)
    assert address(second) in text and address(first) not in text
    assert text.count("of attempt 1") == 1
    earlier = page(alice, job.run, "?attempt=1")
    assert address(first) in earlier and address(second) not in earlier


def test_a_download_leads_to_a_signed_address_under_its_name(alice: Client, artifact: Artifact) -> None:
    answer = alice.get(address(artifact))
    assert answer.status_code == 302 and "/_blobs/download/" in answer["Location"]
    assert "no-store" in answer["Cache-Control"]


def test_a_folder_of_files_is_downloaded_as_a_zip(alice: Client, playground: Playground) -> None:
    folder = keep_folder(on(playground), "logs", **{"a.txt": b"alpha", "b.txt": b"beta"})
    answer = alice.get(address(folder))
    assert answer.status_code == 302 and f"/_blobs/folder/{folder.pk}/logs.zip?" in answer["Location"]


def test_what_has_expired_is_named_and_cannot_be_had(alice: Client, artifact: Artifact) -> None:
    Artifact.objects.update(expires_at=timezone.now() - timedelta(hours=3))
    text = page(alice, artifact.run)
    assert "expired" in text and f'href="{address(artifact)}"' not in text
    assert alice.get(address(artifact)).status_code == 410


def test_deleting_removes_row_and_bytes_and_is_noted(alice: Client, playground: Playground, artifact: Artifact) -> None:
    answer = alice.post(address(artifact, "delete/"), follow=True)
    assert "is deleted" in answer.content.decode()
    assert not Artifact.objects.exists() and not Blob.objects.exists()
    assert Event.objects.get(kind="artifact_deleted").actor == playground.alice
    assert alice.post(address(artifact, "delete/")).status_code == 404


def test_who_may(playground: Playground, browser: Browse, artifact: Artifact) -> None:
    for person, status in ((playground.bob, 302), (playground.carol, 302), (playground.mallory, 404)):
        assert browser(person).get(address(artifact)).status_code == status
    for person, status in ((playground.carol, 403), (playground.mallory, 404), (None, 404)):
        assert browser(person).post(address(artifact, "delete/")).status_code == status
    assert Artifact.objects.exists()


def test_of_a_public_repository_strangers_see_them_and_sign_in_to_download(browser: Browse, artifact: Artifact) -> None:
    Repository.objects.update(private=False)
    visitor = browser(None)
    text = page(visitor, artifact.run)
    assert artifact.digest in text and "delete/" not in text
    assert "/login/" in visitor.get(address(artifact))["Location"]


def test_one_of_another_run_is_not_found(alice: Client, playground: Playground, artifact: Artifact) -> None:
    other = playground.run()
    assert alice.get(f"{other.get_absolute_url()}artifacts/{artifact.pk}/").status_code == 404
    assert alice.get(f"{other.get_absolute_url()}artifacts/{10**30}/").status_code == 404
