"""fire: a scheduled workflow starts at its due time, once."""

from datetime import timedelta

from django.utils import timezone

from ci.lifecycle import schedules, sweeps
from ci.models import Run, Schedule, Workflow
from tests.playground import WORKFLOW, Playground

# Hours away, whenever the test runs: due times that pass in the middle of it would be one too many.
HOUR = (timezone.now().hour + 12) % 24
NIGHTLY = f"""
    name: Nightly
    on:
      schedule: [{{cron: "0 {HOUR} * * *"}}]
    jobs:
      a: {{runs-on: linux, steps: [{{run: echo}}]}}
"""


def due(playground: Playground, *, days: int = 1) -> Schedule:
    playground.push({WORKFLOW: NIGHTLY})
    row = Schedule.objects.get()
    Schedule.objects.update(next_at=row.next_at - timedelta(days=days))
    return Schedule.objects.get()


def test_it_starts_when_due_and_sets_the_next_time(playground: Playground) -> None:
    row = due(playground)
    sweeps.sweep()
    run = Run.objects.get()
    assert (run.event, run.scheduled_for, run.ref) == ("schedule", row.next_at, "refs/heads/main")
    assert run.payload["schedule"] == f"0 {HOUR} * * *"
    row.refresh_from_db()
    assert row.next_at > timezone.now()


def test_twice_at_once_starts_one(playground: Playground) -> None:
    row = due(playground)
    assert schedules.fire(row.pk)
    assert not schedules.fire(row.pk)
    assert Run.objects.count() == 1


def test_after_an_outage_it_starts_once(playground: Playground) -> None:
    due(playground, days=5)
    sweeps.sweep()
    sweeps.sweep()
    assert Run.objects.count() == 1


def test_a_disabled_workflow_is_not_started(playground: Playground) -> None:
    due(playground)
    Workflow.objects.update(enabled=False)
    sweeps.sweep()
    assert not Run.objects.exists()


def test_a_push_does_not_put_it_off(playground: Playground) -> None:
    row = due(playground)
    playground.push({"README.md": "# Hello"})
    assert Schedule.objects.get().next_at == row.next_at


def test_an_entry_that_was_taken_out_of_the_file_starts_nothing_more(playground: Playground) -> None:
    due(playground)
    playground.push({WORKFLOW: NIGHTLY.replace("* * *", "* * 1")}, plan=False)
    sweeps.sweep()
    assert not Run.objects.exists()
