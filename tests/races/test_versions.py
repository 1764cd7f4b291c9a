"""What was decided on an older version changes nothing: each verb that takes the version of the row that was seen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ci.lifecycle import registration, runner_sets, transitions
from ci.lifecycle.errors import Conflict, NotFound
from ci.models import Job, Run, Runner, RunnerSet
from tests.api.calls import snapshot
from tests.playground import Assigned, Playground
from tests.races.interleaving import rival_before

OLD = 0


class Scene:
    """A run in whatever state the verb is about, and a runner; all of them have been changed at least once."""

    def __init__(self, playground: Playground) -> None:
        self.playground = playground
        self.by: dict[str, Any] = {"actor": playground.operator, "version": OLD}
        self.run = playground.run()
        self.runner = playground.runner()
        self.idle = playground.runner(name="idle", ephemeral=True)
        for runner in (self.runner, self.idle):
            registration.update_runner(runner_id=runner.pk, os="linux")

    def assigned(self) -> Assigned:
        return self.playground.assigned(self.runner)

    def ended(self) -> Run:
        self.assigned().begin().complete()
        return self.run

    def waiting(self) -> Run:
        Run.objects.filter(pk=self.run.pk).update(approval_pending=True)
        return self.run


VERBS: dict[str, Callable[[Scene], Callable[[], Any]]] = {
    "cancel_run": lambda s: lambda: transitions.cancel_run(run_id=s.run.pk, **s.by),
    "cancel_job": lambda s: lambda: transitions.cancel_job(job_id=Job.objects.get().pk, **s.by),
    "requeue_job": lambda s: _with(s.assigned(), lambda job: transitions.requeue_job(job_id=job.id, **s.by)),
    "rerun": lambda s: _with(s.ended(), lambda run: transitions.rerun(run_id=run.pk, **s.by)),
    "approve_run": lambda s: _with(s.waiting(), lambda run: transitions.approve_run(run_id=run.pk, **s.by)),
    "pause_runner": lambda s: lambda: registration.pause_runner(runner_id=s.runner.pk, paused=True, **s.by),
    "remove_runner, idle": lambda s: lambda: registration.remove_runner(runner_id=s.runner.pk, **s.by),
    "remove_runner, busy": lambda s: _with(
        s.assigned(), lambda _: registration.remove_runner(runner_id=s.runner.pk, **s.by)
    ),
    "retire_runner": lambda s: lambda: transitions.retire_runner(runner_id=s.idle.pk, reason="Too many.", **s.by),
}


def _with(row: Any, act: Callable[[Any], Any]) -> Callable[[], Any]:
    return lambda: act(row)


@pytest.mark.parametrize("verb", VERBS)
def test_an_old_version_is_a_conflict_and_changes_nothing(playground: Playground, verb: str) -> None:
    act = VERBS[verb](Scene(playground))
    before = snapshot()
    with pytest.raises(Conflict, match="changed meanwhile"):
        act()
    assert snapshot() == before
    assert Runner.objects.count() == 2


@pytest.fixture
def runner_set(committing_playground: Playground) -> RunnerSet:
    return runner_sets.save_runner_set(
        runner_set_id=None,
        fields={"name": "set", "labels": ["linux"], "template": {}},
        version=None,
        actor=committing_playground.operator,
    )


def save(runner_set: RunnerSet, maximum: int, version: int | None) -> RunnerSet:
    fields = {"maximum": maximum}
    return runner_sets.save_runner_set(runner_set_id=runner_set.pk, fields=fields, version=version, actor=None)


def test_a_form_of_a_runner_set_on_an_old_version_changes_nothing(runner_set: RunnerSet) -> None:
    save(runner_set, 2, runner_set.version)
    with pytest.raises(Conflict):
        save(runner_set, 3, runner_set.version)
    with pytest.raises(Conflict):
        transitions.delete_set(set_id=runner_set.pk, version=runner_set.version, actor=None)
    kept = RunnerSet.objects.get()
    assert (kept.maximum, kept.phase) == (2, RunnerSet.Phase.RUNNING)


def test_a_form_of_a_runner_set_that_is_overtaken_between_read_and_write_changes_nothing(
    runner_set: RunnerSet,
) -> None:
    with rival_before(r'UPDATE "ci_runnerset"', lambda: save(runner_set, 2, None)), pytest.raises(Conflict):
        save(runner_set, 3, runner_set.version)
    assert RunnerSet.objects.get().maximum == 2


def test_a_runner_set_whose_row_is_being_deleted_gets_no_runner(
    committing_playground: Playground, runner_set: RunnerSet
) -> None:
    """Only who has its lock gives it runners."""
    transitions.delete_set(set_id=runner_set.pk, actor=committing_playground.operator)
    look = lambda: transitions.scale_set(set_id=runner_set.pk)  # noqa: E731
    with rival_before(r'DELETE FROM "ci_runnerset"', look) as rival:
        assert transitions.scale_set(set_id=runner_set.pk).deleted
    assert isinstance(rival.error, NotFound)
    assert not RunnerSet.objects.exists()
