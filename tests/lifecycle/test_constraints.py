"""What the database itself refuses, whoever writes: each constraint, broken by SQL that no transition sends."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from ci.models import Job, LogChunk, Run, Runner, RunnerSet, Secret, Step
from forge.models import Push
from tests.playground import Playground


def refused(constraint: str, act: Any) -> None:
    with pytest.raises(IntegrityError, match=constraint), transaction.atomic():
        act()


@pytest.mark.parametrize(
    ("constraint", "fields"),
    [
        ("job_ended_has_a_conclusion", {"state": "ended", "conclusion": "success"}),
        ("job_ended_has_a_conclusion", {"conclusion": "success"}),
        ("job_ended_has_a_conclusion", {"ended_at": timezone.now()}),
        ("job_active_has_a_runner_and_token", {"state": "running"}),
        ("job_active_has_a_runner_and_token", {"state": "assigned", "token_hash": "x", "assigned_at": timezone.now()}),
        ("job_waiting_has_neither", {"token_hash": "x"}),
        ("job_queued_can_be_matched", {"label_set": None}),
        ("job_queued_can_be_matched", {"expanded": False}),
        ("job_queued_can_be_matched", {"queue_repository": None}),
        ("job_queued_can_be_matched", {"queue_owner": None}),
        ("job_poll_forgotten_once_acknowledged", {"poll_id": "p"}),
        ("job_blocked_says_why", {"hold": "needs"}),
        ("job_blocked_says_why", {"state": "blocked"}),
    ],
)
def test_a_queued_job_cannot_become(playground: Playground, constraint: str, fields: dict[str, Any]) -> None:
    playground.run()
    refused(constraint, lambda: Job.objects.update(**fields))


@pytest.mark.parametrize(
    "fields",
    [
        {"state": "ended", "conclusion": "success"},
        {"conclusion": "success"},
        {"ended_at": timezone.now()},
    ],
)
def test_a_run_cannot_end_by_halves(playground: Playground, fields: dict[str, Any]) -> None:
    playground.run()
    refused("run_ended_has_a_conclusion", lambda: Run.objects.update(**fields))


def test_a_runner_has_one_job_at_a_time(playground: Playground) -> None:
    playground.run()
    playground.run()
    runner = playground.runner()
    playground.assigned(runner)
    fields = {"state": "assigned", "runner": runner, "token_hash": "x", "assigned_at": timezone.now()}
    refused("job_one_at_a_time_for_a_runner", lambda: Job.objects.filter(state="queued").update(**fields))


def test_a_single_use_runner_has_one_job_ever(playground: Playground) -> None:
    playground.run()
    playground.run()
    runner = playground.runner(ephemeral=True)
    playground.assigned(runner).begin().complete()
    fields = {
        "state": "assigned",
        "runner": runner,
        "token_hash": "x",
        "assigned_at": timezone.now(),
        "single_use": True,
    }
    refused("job_one_ever_for_a_single_use_runner", lambda: Job.objects.filter(state="queued").update(**fields))


def test_a_job_stands_once_in_an_attempt(playground: Playground) -> None:
    run = playground.run()
    job = Job.objects.get(run=run)
    job.pk = None
    refused("job_once_an_attempt_and_call", lambda: job.save(force_insert=True))


@pytest.mark.parametrize("name", ["run_once_a_push_event_and_workflow", "run_number_once_a_workflow"])
def test_a_run_is_made_once(playground: Playground, name: str) -> None:
    run = playground.run()
    run.pk = None
    if name == "run_number_once_a_workflow":
        run.push = None
    else:
        run.number += 1
    refused(name, lambda: run.save(force_insert=True))


def test_a_step_ends_with_a_conclusion_and_stands_once(playground: Playground) -> None:
    playground.run()
    assigned = playground.assigned().begin()
    refused("step_ended_has_a_conclusion", lambda: Step.objects.update(state="ended", conclusion=None))
    step = Step.objects.filter(job=assigned.id).first()
    assert step is not None
    step.pk = None
    refused("step_once_a_job", lambda: step.save(force_insert=True))


def test_lines_of_a_log_stand_once(playground: Playground) -> None:
    playground.run()
    assigned = playground.assigned().begin()
    assigned.log("one")
    chunk = LogChunk.objects.get()
    chunk.pk = None
    refused("log_chunk_once_an_offset", lambda: chunk.save(force_insert=True))
    refused("log_chunk_not_empty", lambda: LogChunk.objects.update(line_count=0))


def test_only_single_use_runners_end(playground: Playground) -> None:
    playground.runner()
    refused("runner_only_single_use_ones_end", lambda: Runner.objects.update(phase="failed"))


def test_a_runner_set_has_room_for_its_idle_runners(playground: Playground) -> None:
    refused(
        "runner_set_maximum_over_minimum",
        lambda: RunnerSet.objects.create(name="s", labels=["linux"], minimum=2, maximum=1),
    )


def test_nothing_has_two_scopes(playground: Playground) -> None:
    scope = {"owner": playground.alice, "repository": playground.repository}
    refused("ci_secret_one_scope", lambda: Secret.objects.create(name="X", encrypted="x", **scope))
    refused("ci_runner_one_scope", lambda: Runner.objects.create(name="x", labels=["linux"], token_hash="x", **scope))


def test_a_name_stands_once_in_its_scope(playground: Playground) -> None:
    Secret.objects.create(name="X", encrypted="x")
    refused("ci_secret_once_a_scope", lambda: Secret.objects.create(name="X", encrypted="y"))


def test_a_push_moves_its_ref_and_is_settled_at_a_time(playground: Playground) -> None:
    push = playground.push({"a": "b"}, plan=False)
    refused("push_moves_its_ref", lambda: Push.objects.filter(pk=push.pk).update(before=push.after))
    refused("push_settled_has_a_time", lambda: Push.objects.filter(pk=push.pk).update(settled_at=None))
