"""The world that the model test plays in: owners, runners and the clock, and what must hold after every move.

Moves are one at a time, so that the database's answer is known; rivals between lock and write have tests of their own.
"""

from __future__ import annotations

import logging
import textwrap
from datetime import timedelta
from functools import cached_property
from itertools import count
from typing import Any

from django.contrib.auth.models import User
from django.db.models import F, QuerySet
from django.utils import timezone

from ci.lifecycle import registration, transitions
from ci.lifecycle.errors import LifecycleError
from ci.lifecycle.fetch import fetch_job
from ci.lifecycle.runner_sets import save_runner_set
from ci.models import (
    ACTIVE_STATES,
    TERMINAL_PHASES,
    ConcurrencyGroup,
    Event,
    Heartbeat,
    Job,
    JobState,
    LaunchAttempt,
    Run,
    Runner,
    RunnerSet,
    RunState,
    Scope,
)
from ci.scaling.scaler import Scaler
from ci.storage import logs
from ci.workflow import load
from forge.models import Repository
from tests.races import invariants
from tests.scaling.fake_launcher import FakeLauncher
from tests.scaling.world import TIMES, AtOnce

WORKFLOWS = {
    "pair": """
        on: push
        jobs:
          a: {runs-on: linux, steps: [{run: echo}]}
          b: {runs-on: linux, steps: [{run: echo}]}
    """,
    "one after the other": """
        on: push
        jobs:
          a: {runs-on: linux, steps: [{run: echo}]}
          b: {needs: a, runs-on: linux, steps: [{run: echo}]}
    """,
    "chain": """
        on: push
        jobs:
          a: {runs-on: linux, steps: [{run: echo}]}
          b: {needs: a, runs-on: linux, steps: [{run: echo}]}
          c: {needs: [a, b], if: always(), runs-on: linux, steps: [{run: echo}]}
    """,
    "matrix": """
        on: push
        jobs:
          test:
            runs-on: linux
            strategy: {max-parallel: 2, matrix: {n: [1, 2, 3]}}
            steps: [{run: echo}]
          after: {needs: test, runs-on: linux, steps: [{run: echo}]}
    """,
    "group": """
        on: push
        concurrency: deploy
        jobs:
          deploy: {runs-on: linux, steps: [{run: echo}]}
    """,
    "same group": """
        on: push
        concurrency: deploy
        jobs:
          other: {runs-on: linux, steps: [{run: echo}]}
    """,
    "hasty group": """
        on: push
        concurrency: {group: deploy, cancel-in-progress: true}
        jobs:
          deploy: {runs-on: linux, steps: [{run: echo}]}
    """,
    "job group": """
        on: push
        jobs:
          build: {runs-on: linux, steps: [{run: echo}]}
          ship: {needs: build, runs-on: linux, concurrency: ship, steps: [{run: echo}]}
    """,
}


class Held:
    """What a runner believes to have: perhaps long replaced."""

    def __init__(self, runner: Runner, payload: dict[str, Any], poll_id: str) -> None:
        self.runner = runner
        self.id: int = payload["job"]["id"]
        self.token: str = payload["job"]["token"]
        self.assignment: int = payload["job"]["assignment"]
        self.poll_id = poll_id
        self.sent: int = payload["job"]["log_offset"]


class Strict(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        raise AssertionError(record.getMessage()) from (record.exc_info[1] if record.exc_info else None)


class World:
    def __init__(self) -> None:
        self.owner = User.objects.create(username="owner")
        self.repository = Repository.objects.create(owner=self.owner, name="model")
        _, self.registration = registration.create_registration_token(scope=Scope(), created_by=self.owner)
        self.polls = count()
        self.ends: dict[int, tuple[Any, ...]] = {}
        self.lines: dict[int, list[str]] = {}
        self.jobs_of_runner: dict[int, set[int]] = {}
        self.run_ends: dict[tuple[int, int], tuple[Any, ...]] = {}
        self.runner_ends: dict[int, tuple[Any, ...]] = {}
        self.launcher = FakeLauncher()
        # The highest maximum of any set so far: what came under it need not go at once.
        self.most = 0
        self.seconds = count(1000)
        # Runs up to this id are not looked at any more: a test with many runs says when it is done with them.
        self.done_with = 0

    @property
    def runs(self) -> QuerySet[Run]:
        return Run.objects.filter(pk__gt=self.done_with)

    @property
    def jobs(self) -> QuerySet[Job]:
        return Job.objects.filter(run__gt=self.done_with)

    def push(self, kind: str) -> None:
        path = f".github/workflows/{kind.replace(' ', '-')}.yml"
        document = load(path, {path: textwrap.dedent(WORKFLOWS[kind])})
        cause = transitions.Cause(
            repository=self.repository,
            path=path,
            event="push",
            payload={},
            ref="refs/heads/main",
            sha="0" * 40,
            title=kind,
            actor=self.owner,
            trusted=True,
        )
        transitions.create_run(cause, document)

    def register(self, *, ephemeral: bool) -> Runner:
        number = Runner.objects.count()
        runner, _ = registration.register_runner(
            token=self.registration, name=f"runner {number}", labels=["linux"], ephemeral=ephemeral
        )
        return runner

    @cached_property
    def operator(self) -> User:
        return User.objects.create(username="model operator", is_staff=True, is_superuser=True)

    @property
    def runner_set(self) -> RunnerSet:
        """The one that there is; another one is made once it was deleted."""
        found = RunnerSet.objects.order_by("pk").first()
        if found is None:
            found = RunnerSet.objects.create(name="the set", labels=["linux"], minimum=1, maximum=3)
            self.most = max(self.most, found.maximum)
        return found

    @cached_property
    def scaler(self) -> Scaler:
        """The real one, with processes that are only rows in memory."""
        return Scaler(launcher_of=lambda kind: self.launcher, workers=AtOnce(), clock=lambda: next(self.seconds))

    def scale(self, minimum: int) -> None:
        """The set is edited, and looked after once."""
        runner_set = self.runner_set
        RunnerSet.objects.filter(pk=runner_set.pk).update(minimum=min(minimum, runner_set.maximum))
        self.look()

    def edit(self, **fields: Any) -> None:
        """By a person, as the page does it. Raises Conflict."""
        changed = save_runner_set(runner_set_id=self.runner_set.pk, fields=fields, version=None, actor=self.operator)
        self.most = max(self.most, changed.maximum)

    def fail_launches(self, errors: list[Exception], *, away: bool) -> None:
        """The next starts are refused; with `away` nobody can tell at that moment whether there is a process."""
        self.launcher.refusals, self.launcher.away = errors, away
        self.look()
        self.launcher.refusals, self.launcher.away = [], False

    def look(self) -> None:
        """What the scaler survives in production, and only writes into its log, fails here."""
        strict, logger = Strict(logging.ERROR), logging.getLogger("ci.scaling")
        logger.addHandler(strict)
        try:
            self.scaler.wake_all()
            self.scaler.step()
        finally:
            logger.removeHandler(strict)

    def let_time_pass(self, seconds: int) -> None:
        """For the set, its runners and their processes."""
        for model, names in TIMES.items():
            model.objects.update(**{name: F(name) - timedelta(seconds=seconds) for name in names})

    def retire(self, runner: Runner) -> bool:
        return transitions.retire_runner(runner_id=runner.pk, reason="Too many idle.")

    @property
    def retired(self) -> list[int]:
        return list(Event.objects.filter(kind="runner_retired", runner__isnull=False).values_list("runner", flat=True))

    def poll(self, runner: Runner, poll_id: str | None = None) -> Held | None:
        poll_id = poll_id or f"poll {next(self.polls)}"
        payload = fetch_job(runner_id=runner.pk, token_hash=runner.token_hash, poll_id=poll_id)
        if payload is None:
            return None
        held = Held(runner, payload, poll_id)
        self.jobs_of_runner.setdefault(runner.pk, set()).add(held.id)
        return held

    def is_current(self, held: Held) -> bool:
        """Whether the runner's belief is true: the job is still its, by this very token."""
        job = Job.objects.filter(pk=held.id, runner=held.runner, assignment=held.assignment).first()
        return job is not None and job.state in ACTIVE_STATES

    def log(self, held: Held, count: int) -> None:
        texts = [f"{held.id}: line {held.sent + index}" for index in range(count)]
        lines = [("2026-01-01T00:00:00Z", text) for text in texts]
        start = held.sent
        held.sent = transitions.append_log(job_id=held.id, token=held.token, offset=start, lines=lines)
        # What was sent twice stands once.
        known = self.lines.setdefault(held.id, [])
        known.extend(texts[max(0, len(known) - start) :])

    def settle_groups(self) -> None:
        for group in ConcurrencyGroup.objects.all():
            transitions.settle(group.pk)

    def let_deadlines_pass(self) -> None:
        """A year passes in which nobody calls; the watch acts on what it finds."""
        year = timedelta(days=365)
        waiting = Job.objects.exclude(state=JobState.ENDED)
        waiting.filter(deadline_at__gt=timezone.now()).update(deadline_at=F("deadline_at") - year)
        for job_id in waiting.values_list("id", flat=True):
            transitions.act_on_deadline(job_id=job_id)

    def fall_silent(self, job_id: int) -> None:
        Heartbeat.objects.filter(job=job_id).update(at=timezone.now() - timedelta(days=1))
        transitions.lose_job(job_id=job_id)

    def check(self) -> None:
        self._check_ends()
        # The queued tasks that settle groups run in other processes; here nobody else would.
        self.settle_groups()
        invariants.check_rows(after=self.done_with)
        self._check_single_use()
        self._check_logs()

    def _check_ends(self) -> None:
        """What has ended stays as it ended."""
        for job in self.jobs.filter(state=JobState.ENDED):
            end = (job.conclusion, job.cancel_reason, job.end_note, job.ended_at, job.outputs)
            assert self.ends.setdefault(job.pk, end) == end, f"the end of {job} changed"
        alive = self.jobs.filter(pk__in=self.ends).exclude(state=JobState.ENDED)
        assert not alive.exists(), "an ended job came back to life"
        for run in self.runs.filter(state=RunState.ENDED):
            end = (run.conclusion, run.ended_at)
            assert self.run_ends.setdefault((run.pk, run.attempt), end) == end, f"the end of {run} changed"
        for runner in Runner.objects.filter(phase__in=TERMINAL_PHASES):
            end = (runner.phase, runner.reason, runner.used_job_id)
            assert self.runner_ends.setdefault(runner.pk, end) == end, f"the end of {runner} changed"
        alive_again = Runner.objects.filter(pk__in=self.runner_ends).exclude(phase__in=TERMINAL_PHASES)
        assert not alive_again.exists(), "an ended runner came back to life"

    def _check_single_use(self) -> None:
        for runner in Runner.objects.filter(ephemeral=True):
            jobs = self.jobs_of_runner.get(runner.pk, set())
            assert len(jobs) <= 1, f"single-use {runner} was given {jobs}"
        busy = Job.objects.filter(runner__in=self.retired, state__in=ACTIVE_STATES)
        assert not busy.exists(), "a runner was taken away with its job, or given one after it went"
        if self.most:
            self._check_set()

    def _check_set(self) -> None:
        """No more processes than there may be, none twice, and none that nobody will end."""
        most = self.most
        rows = Runner.objects.filter(runner_set__isnull=False, stopped_at=None).count()
        running = [self.launcher.started[handle].process for handle in self.launcher.running]
        assert rows <= most, f"{rows} runners of a set of {most}"
        assert len(running) <= most, f"{len(running)} processes of a set of {most}"
        assert len({process.runner_id for process in running}) == len(running), "a runner has two processes"
        known = set(LaunchAttempt.objects.filter(ended_at=None).values_list("runner", "number"))
        assert {(process.runner_id, process.attempt) for process in running} <= known, "a process is nobody's"
        held = Job.objects.filter(runner__runner_set__isnull=False, state__in=ACTIVE_STATES)
        gone = held.exclude(runner__stopped_at=None) | held.filter(runner__next_attempt_at__isnull=False)
        assert not gone.exists(), "a job stays with a process that is gone"

    def _check_logs(self) -> None:
        for job_id in self.jobs.filter(pk__in=self.lines).values_list("id", flat=True):
            lines = self.lines[job_id]
            assert [line.text for line in logs.lines(job_id, 0, len(lines) + 10)] == lines


def allowed(act: Any, *errors: type[LifecycleError]) -> Any:
    """What a call answers; a refusal that the rules allow here is None."""
    try:
        return act()
    except errors:
        return None
