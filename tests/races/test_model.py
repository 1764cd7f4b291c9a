"""Owners, runners and the clock act in any order, also on what they lost: the invariants hold after each move."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import transaction
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from ci.lifecycle import registration, transitions
from ci.lifecycle.errors import Conflict, JobEnded, LogLimit, LogOffset, NotFound, Unauthenticated
from ci.models import Job, JobState, Run, Runner, RunnerPhase
from ci.scaling.launchers.protocol import LaunchError, PermanentLaunchError, TransientLaunchError
from tests.races.model import WORKFLOWS, Held, World, allowed

LAUNCH_ERRORS = (PermanentLaunchError, TransientLaunchError)
STALE = (Unauthenticated, JobEnded, NotFound, Conflict)


class Lifecycle(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.example = transaction.atomic()
        self.example.__enter__()
        self.held: list[Held] = []

    def teardown(self) -> None:
        transaction.set_rollback(True)
        self.example.__exit__(None, None, None)

    @initialize()
    def begin(self) -> None:
        self.world = World()
        self.world.register(ephemeral=False)
        self.world.push("chain")

    def take(self, held: Held | None) -> None:
        """Runners keep few old beliefs, so that most calls are of somebody who has the job."""
        if held is not None:
            self.held = [*self.held[-3:], held]

    def pick(self, data: st.DataObject, rows: Any) -> Any:
        found = list(rows)
        return data.draw(st.sampled_from(found)) if found else None

    @rule(kind=st.sampled_from(sorted(WORKFLOWS)))
    def push(self, kind: str) -> None:
        self.world.push(kind)

    @precondition(lambda self: Runner.objects.count() < 5)
    @rule(ephemeral=st.booleans())
    def register(self, ephemeral: bool) -> None:
        self.world.register(ephemeral=ephemeral)

    @rule(data=st.data())
    def poll(self, data: st.DataObject) -> None:
        runner = self.pick(data, Runner.objects.order_by("id"))
        self.take(self.world.poll(runner) if runner else None)

    @rule(data=st.data(), conclusion=st.sampled_from(["success", "failure", None]))
    def work(self, data: st.DataObject, conclusion: str | None) -> None:
        runner = self.pick(data, Runner.objects.order_by("id"))
        held = self.world.poll(runner) if runner else None
        if held is None:
            return
        transitions.heartbeat(job_id=held.id, token=held.token)
        self.world.log(held, 2)
        if conclusion is not None:
            transitions.complete(job_id=held.id, token=held.token, conclusion=conclusion)
        self.take(held)

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def poll_again(self, data: st.DataObject) -> None:
        held = data.draw(st.sampled_from(self.held))
        before = Job.objects.filter(pk=held.id, runner=held.runner, state=JobState.ASSIGNED, poll_id=held.poll_id)
        expected = before.exists()
        again = allowed(lambda: self.world.poll(held.runner, held.poll_id), Unauthenticated)
        if expected:
            assert again is not None
            assert (again.id, again.assignment) == (held.id, held.assignment)
        self.take(again)

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def heartbeat(self, data: st.DataObject) -> None:
        held = data.draw(st.sampled_from(self.held))
        allowed(lambda: transitions.heartbeat(job_id=held.id, token=held.token), *STALE)

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def begin_step(self, data: st.DataObject) -> None:
        held = data.draw(st.sampled_from(self.held))
        steps = [{"number": 2, "name": "Run echo", "state": "running"}]
        allowed(lambda: transitions.update_steps(job_id=held.id, token=held.token, steps=steps), *STALE)

    @precondition(lambda self: self.held)
    @rule(data=st.data(), count=st.integers(1, 3))
    def log(self, data: st.DataObject, count: int) -> None:
        held = data.draw(st.sampled_from(self.held))
        allowed(lambda: self.world.log(held, count), *STALE, LogOffset, LogLimit)

    @precondition(lambda self: self.held)
    @rule(data=st.data(), conclusion=st.sampled_from(["success", "failure"]))
    def complete(self, data: st.DataObject, conclusion: str) -> None:
        held = data.draw(st.sampled_from(self.held))
        end = {"job_id": held.id, "token": held.token, "conclusion": conclusion}
        first = allowed(lambda: transitions.complete(**end), *STALE)
        if first is not None:
            assert transitions.complete(**end) == first

    @rule(data=st.data(), force=st.booleans())
    def cancel_run(self, data: st.DataObject, force: bool) -> None:
        run = self.pick(data, Run.objects.order_by("id"))
        allowed(lambda: transitions.cancel_run(run_id=run.pk, actor=self.world.owner, force=force), Conflict)

    @rule(data=st.data(), force=st.booleans())
    def cancel_job(self, data: st.DataObject, force: bool) -> None:
        job = self.pick(data, Job.objects.order_by("id"))
        allowed(lambda: transitions.cancel_job(job_id=job.pk, actor=self.world.owner, force=force), Conflict)

    @rule(data=st.data(), mode=st.sampled_from(["all", "failed"]))
    def rerun(self, data: st.DataObject, mode: str) -> None:
        run = self.pick(data, Run.objects.order_by("id"))
        allowed(lambda: transitions.rerun(run_id=run.pk, actor=self.world.owner, mode=mode), Conflict)

    @rule(data=st.data())
    def requeue(self, data: st.DataObject) -> None:
        job = self.pick(data, Job.objects.order_by("id"))
        allowed(lambda: transitions.requeue_job(job_id=job.pk, actor=self.world.owner), Conflict)

    @rule(data=st.data())
    def remove_runner(self, data: st.DataObject) -> None:
        runner = self.pick(data, Runner.objects.order_by("id"))
        if runner is not None:
            registration.remove_runner(runner_id=runner.pk, actor=self.world.owner)

    @rule(minimum=st.integers(0, 3))
    def scale(self, minimum: int) -> None:
        self.world.scale(minimum)

    @rule(seconds=st.sampled_from([6, 31, 61]))
    def time_passes(self, seconds: int) -> None:
        self.world.let_time_pass(seconds)
        self.world.look()

    @rule(data=st.data(), code=st.sampled_from([0, 1, 7, 137, None]), noted=st.booleans())
    def process_ends(self, data: st.DataObject, code: int | None, noted: bool) -> None:
        handle = self.pick(data, self.world.launcher.running)
        if handle is not None and code is None:
            self.world.launcher.lose(handle)
        elif handle is not None and code is not None:
            self.world.launcher.end(handle, code)
        if noted:
            self.world.look()

    @rule(data=st.data(), phase=st.sampled_from([RunnerPhase.FAILED, RunnerPhase.OUTDATED]))
    def runner_ends(self, data: st.DataObject, phase: RunnerPhase) -> None:
        runner = self.pick(data, self.world.runner_set.runners.order_by("id"))
        if runner is not None:
            transitions.finish_runner(runner_id=runner.pk, phase=phase, reason="It said so.")

    @rule(
        error=st.sampled_from([PermanentLaunchError, TransientLaunchError]), times=st.integers(1, 4), away=st.booleans()
    )
    def launches_fail(self, error: type[LaunchError], times: int, *, away: bool) -> None:
        self.world.fail_launches([error("no room") for _ in range(times)], away=away)

    @rule(maximum=st.integers(0, 4), minimum=st.integers(0, 4))
    def edit_bounds(self, maximum: int, minimum: int) -> None:
        allowed(lambda: self.world.edit(maximum=maximum, minimum=min(minimum, maximum)), Conflict)

    @rule(work=st.sampled_from(["/srv/one", "/srv/two"]), labels=st.sampled_from([["linux"], ["linux", "big"]]))
    def edit_spec(self, work: str, labels: list[str]) -> None:
        allowed(lambda: self.world.edit(template={"work": work}, labels=labels), Conflict)

    @rule(force=st.booleans())
    def delete_set(self, *, force: bool) -> None:
        given = {"set_id": self.world.runner_set.pk, "actor": self.world.operator}
        allowed(lambda: transitions.delete_set(**given, force=force), Conflict)

    @rule()
    def recover_set(self) -> None:
        given = {"set_id": self.world.runner_set.pk, "actor": self.world.owner}
        allowed(lambda: transitions.recover_set(**given), Conflict)

    @rule(data=st.data())
    def lose(self, data: st.DataObject) -> None:
        job = self.pick(data, Job.objects.filter(state=JobState.RUNNING).order_by("id"))
        if job is not None:
            self.world.fall_silent(job.pk)

    @rule()
    def deadlines_pass(self) -> None:
        self.world.let_deadlines_pass()

    @invariant()
    def everything_holds(self) -> None:
        if hasattr(self, "world"):
            self.world.check()


@pytest.mark.django_db
def test_the_invariants_hold_after_every_move() -> None:
    machine = settings(
        max_examples=40,
        stateful_step_count=30,
        deadline=None,
        derandomize=True,
        # What failed is printed as it was found: making it shorter would run for minutes on a real database.
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )

    run_state_machine_as_test(Lifecycle, settings=machine)
