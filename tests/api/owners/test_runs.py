"""Are runs and jobs shown, filtered, cancelled and run again, by the right person's name?"""

import pytest

from ci.models import Run
from ci.storage import logs
from tests.api.calls import error_of
from tests.playground import jobs_of

BASE = "repositories/alice/widgets"
MANUAL = """
    name: Manual
    on:
      push:
      workflow_dispatch:
        inputs:
          level: {type: choice, options: [low, high], required: true}
          dry: {type: boolean, default: false}
    jobs:
      build:
        runs-on: linux
        steps:
          - run: echo
"""


def names(answer):
    assert answer.status_code == 200, answer.content
    return [row["id"] for row in answer.json()["results"]]


def test_a_run_is_shown_with_its_jobs(playground, carol):
    run = playground.run(message="Fix it")
    shown = carol.get(f"{BASE}/runs/{run.pk}").json()
    assert (shown["repository"], shown["title"], shown["event"], shown["state"]) == (
        "alice/widgets",
        "Fix it",
        "push",
        "queued",
    )
    assert shown["html_url"].endswith(f"/alice/widgets/actions/runs/{run.pk}/")
    (job,) = carol.get(f"{BASE}/runs/{run.pk}/jobs").json()["results"]
    assert (job["name"], job["state"], job["runs_on"]) == ("build", "queued", ["linux"])
    detail = carol.get(f"{BASE}/jobs/{job['id']}").json()
    assert detail["steps"] == []
    assert detail["waits_for"] == "There is no runner for this repository: register one."


def test_runs_are_filtered(playground, carol):
    first = playground.run()
    second = playground.run(branch="dev", by=playground.bob)
    playground.work(playground.runner())
    third = playground.run()
    assert names(carol.get(f"{BASE}/runs")) == [third.pk, second.pk, first.pk]
    assert names(carol.get(f"{BASE}/runs?branch=dev")) == [second.pk]
    assert names(carol.get(f"{BASE}/runs?branch=main&status=success")) == [first.pk]
    assert names(carol.get(f"{BASE}/runs?actor=BOB")) == [second.pk]
    assert names(carol.get(f"{BASE}/runs?status=queued")) == [third.pk]
    assert names(carol.get(f"{BASE}/runs?event=schedule")) == []
    assert len(names(carol.get(f"{BASE}/runs?workflow=ci.yml&event=push"))) == 3
    assert names(carol.get(f"{BASE}/runs?workflow=other.yml")) == []


@pytest.mark.parametrize("query", ["status=great", "branch=%00", "actor=" + "x" * 151, "event=" + "x" * 51])
def test_a_filter_that_makes_no_sense_is_refused(carol, repository, query):
    error = error_of(carol.get(f"{BASE}/runs?{query}"), 400, "invalid")
    assert list(error["errors"]) == [query.partition("=")[0]]


def test_a_cancel_is_done_once_by_name(playground, bob):
    run = playground.run()
    answer = bob.post(f"{BASE}/runs/{run.pk}/cancel")
    assert (answer.status_code, answer.json()) == (200, {"jobs": 1})
    run.refresh_from_db()
    assert run.conclusion == "cancelled"
    assert run.events.filter(actor_name="bob").exists()
    error_of(bob.post(f"{BASE}/runs/{run.pk}/cancel"), 409, "conflict")


def test_a_forced_cancel_ends_what_runs(playground, bob):
    run = playground.run()
    assigned = playground.assigned().begin()
    assert bob.post(f"{BASE}/runs/{run.pk}/force-cancel").json() == {"jobs": 1}
    assert assigned.job.conclusion == "cancelled"


def test_a_decision_on_an_older_version_changes_nothing(playground, bob):
    run = playground.run()
    seen = bob.get(f"{BASE}/runs/{run.pk}").json()["version"]
    playground.assigned().begin()
    error_of(bob.post(f"{BASE}/runs/{run.pk}/cancel", {"version": seen}), 409, "conflict")
    run.refresh_from_db()
    assert not run.is_ended
    assert bob.post(f"{BASE}/runs/{run.pk}/cancel", {"version": run.version}).status_code == 200


@pytest.mark.parametrize("version", [-1, "x", 2**31, 10**30])
def test_what_is_no_version_is_refused(playground, bob, version):
    run = playground.run()
    error_of(bob.post(f"{BASE}/runs/{run.pk}/cancel", {"version": version}), 400, "invalid")


def test_an_ended_run_runs_again(playground, bob):
    run = playground.run()
    runner = playground.runner()
    playground.work(runner, {"build": "failure"})
    error_of(bob.post(f"{BASE}/runs/{run.pk + 1}/rerun"), 404, "not_found")
    for verb, attempt in (("rerun", 2), ("rerun-failed", 3)):
        answer = bob.post(f"{BASE}/runs/{run.pk}/{verb}")
        assert (answer.status_code, answer.json()["attempt"], answer.json()["triggered_by_name"]) == (
            201,
            attempt,
            "bob",
        )
        error_of(bob.post(f"{BASE}/runs/{run.pk}/{verb}"), 409, "conflict")
        playground.work(runner, {"build": "failure"})
    job = jobs_of(run)["build"]
    assert bob.post(f"{BASE}/jobs/{job.pk}/rerun").json()["attempt"] == 4
    assert len(names(bob.get(f"{BASE}/runs/{run.pk}/jobs?attempt=1"))) == 1
    assert names(bob.get(f"{BASE}/runs/{run.pk}/jobs?attempt=9")) == []
    error_of(bob.get(f"{BASE}/runs/{run.pk}/jobs?attempt=x"), 400, "invalid")


def test_without_a_failed_job_there_is_nothing_to_run_again(playground, bob):
    run = playground.run()
    playground.work(playground.runner())
    error_of(bob.post(f"{BASE}/runs/{run.pk}/rerun-failed"), 409, "conflict")


def test_one_job_is_cancelled(playground, bob):
    run = playground.run()
    job = jobs_of(run)["build"]
    assert bob.post(f"{BASE}/jobs/{job.pk}/cancel").status_code == 204
    assert jobs_of(run)["build"].conclusion == "cancelled"
    error_of(bob.post(f"{BASE}/jobs/{job.pk}/cancel"), 409, "conflict")


def test_a_log_is_read_as_text(playground, carol):
    playground.run()
    assigned = playground.assigned().begin()
    assigned.log("one", "\x1b[31mtwo\x1b[0m", "<script>")
    answer = carol.get(f"{BASE}/jobs/{assigned.id}/logs")
    assert answer["Content-Type"] == "text/plain; charset=utf-8"
    assert b"".join(answer) == b"one\n\x1b[31mtwo\x1b[0m\n<script>\n"
    stamped = b"".join(carol.get(f"{BASE}/jobs/{assigned.id}/logs?timestamps=true"))
    assert stamped.startswith(b"2026-01-01T00:00:00.000Z one\n")


def test_the_log_of_a_job_that_was_carried_over_is_the_first_ones(playground, carol, bob):
    run = playground.run(
        """
        on: push
        jobs:
          good:
            runs-on: linux
            steps:
              - run: echo
          bad:
            runs-on: linux
            steps:
              - run: exit 1
        """
    )
    runner = playground.runner()
    while (assigned := playground.fetch(runner)) is not None:
        assigned.begin().log(f"this is {assigned.job.name}")
        assigned.complete("failure" if assigned.job.name == "bad" else "success")
    bob.post(f"{BASE}/runs/{run.pk}/rerun-failed")
    assert b"".join(carol.get(f"{BASE}/jobs/{jobs_of(run)['good'].pk}/logs")) == b"this is good\n"


def test_a_lost_log_is_an_error_and_no_broken_answer(playground, carol, settings):
    playground.run()
    assigned = playground.assigned().begin()
    assigned.log("one")
    assigned.complete()
    logs.seal(assigned.id)
    logs.merge(assigned.id)
    assert b"".join(carol.get(f"{BASE}/jobs/{assigned.id}/logs")) == b"one\n"
    for blob in (settings.DATA_DIR / "blobs" / "logs").rglob(f"{assigned.id}-*"):
        blob.unlink()
    error_of(carol.get(f"{BASE}/jobs/{assigned.id}/logs"), 404, "log_lost")


def test_workflows_are_listed_with_their_problems(playground, carol):
    playground.run(MANUAL)
    (shown,) = carol.get(f"{BASE}/workflows").json()["results"]
    assert (shown["name"], shown["path"], shown["problems"]) == ("Manual", ".github/workflows/ci.yml", [])
    assert carol.get(f"{BASE}/workflows/ci.yml").json() == shown
    error_of(carol.get(f"{BASE}/workflows/no.yml"), 404, "not_found")


def test_a_workflow_is_started_by_hand_with_typed_inputs(playground, bob):
    playground.run(MANUAL)
    body = {"ref": "main", "inputs": {"level": "high", "dry": "true"}}
    answer = bob.post(f"{BASE}/workflows/ci.yml/dispatches", body)
    assert answer.status_code == 201
    assert answer.json()["inputs"] == {"level": "high", "dry": True}
    assert (answer.json()["event"], answer.json()["actor_name"]) == ("workflow_dispatch", "bob")


@pytest.mark.parametrize(
    ("file", "body", "status", "code"),
    [
        ("ci.yml", {"ref": "main"}, 400, "invalid"),
        ("ci.yml", {"ref": "main", "inputs": {"level": "middle"}}, 400, "invalid"),
        ("ci.yml", {"ref": "main", "inputs": {"level": "low", "other": 1}}, 400, "invalid"),
        ("ci.yml", {"ref": "main", "inputs": []}, 400, "invalid"),
        ("ci.yml", {"inputs": {}}, 400, "invalid"),
        ("ci.yml", {"ref": "nothing"}, 404, "not_found"),
        ("ci.yml", {"ref": "--upload-pack=x"}, 404, "not_found"),
        ("ci.yml", {"ref": "main\n"}, 404, "not_found"),
        ("ci.yml", {"ref": "refs/../HEAD"}, 404, "not_found"),
        ("no.yml", {"ref": "main"}, 404, "not_found"),
        ("..", {"ref": "main"}, 404, "not_found"),
    ],
)
def test_a_start_that_cannot_be_is_refused(playground, bob, file, body, status, code):
    playground.run(MANUAL)
    error_of(bob.post(f"{BASE}/workflows/{file}/dispatches", body), status, code)
    assert Run.objects.filter(event="workflow_dispatch").count() == 0


def test_a_workflow_without_the_trigger_is_not_started(playground, bob):
    playground.run()
    error_of(bob.post(f"{BASE}/workflows/ci.yml/dispatches", {"ref": "main"}), 409, "conflict")
