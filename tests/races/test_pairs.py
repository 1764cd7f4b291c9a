"""Every pair of calls, in both orders, at both points: before the first lock, and between the lock and the first write.

Whatever the two answer, the invariants hold, and nothing but an answer of the lifecycle comes back.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F

from ci.lifecycle import registration, transitions
from ci.lifecycle.errors import LifecycleError
from ci.models import Heartbeat, Job, Run, Runner
from tests.races.interleaving import Rival, rival_before
from tests.races.model import Held, World

ANY_LOCK = r"FOR NO KEY UPDATE"
ANY_WRITE = r'^\s*(UPDATE|INSERT INTO|DELETE FROM)\s+"?ci_'
POINTS = {"before the lock": ANY_LOCK, "before the write": ANY_WRITE}


class Scene:
    """One run whose first job is in the state that the actor's call is about."""

    def __init__(self, world: World, state: str, kind: str, *, single_use: bool) -> None:
        self.world = world
        self.runner = world.register(ephemeral=single_use)
        self.other = world.register(ephemeral=True)
        world.push(kind)
        self.run = Run.objects.latest("id")
        self.job = Job.objects.filter(run=self.run).earliest("id")
        self.held: Held | None = None
        if state != "queued":
            self.held = world.poll(self.runner, "the poll")
            assert self.held is not None
            self.token = self.held.token
        if state in ("running", "ended"):
            self.call(transitions.heartbeat)
            self.call(transitions.update_steps, steps=[{"number": 2, "name": "Run echo", "state": "running"}])
        if state == "ended":
            self.call(transitions.complete, conclusion="success")
            world.poll(self.runner)
        if state == "queued":
            self.token = "frj_nothing"

    def call(self, verb: Callable[..., Any], **more: Any) -> Any:
        return verb(job_id=self.job.pk, token=self.token, **more)

    def let_its_deadline_pass(self) -> None:
        Job.objects.filter(pk=self.job.pk).update(deadline_at=F("deadline_at") - timedelta(days=999))

    def fall_silent(self) -> None:
        Heartbeat.objects.filter(job=self.job).update(at=F("at") - timedelta(days=1))


SCALE_DOWN = "runner set scale-down"
STEPS = [{"number": 3, "name": "More", "state": "running"}]
# name: the state in which the call is about something, what must have happened before, the call
CALLS: dict[str, tuple[str, Callable[[Scene], Any], Callable[[Scene], Any]]] = {
    "claim": ("queued", lambda s: None, lambda s: s.world.poll(s.runner)),
    "claim by another": ("queued", lambda s: None, lambda s: s.world.poll(s.other)),
    "repeated poll": ("assigned", lambda s: None, lambda s: s.world.poll(s.runner, "the poll")),
    "acknowledge": ("assigned", lambda s: None, lambda s: s.call(transitions.heartbeat)),
    "heartbeat": ("running", lambda s: None, lambda s: s.call(transitions.heartbeat)),
    "steps": ("running", lambda s: None, lambda s: s.call(transitions.update_steps, steps=STEPS)),
    "log": ("running", lambda s: None, lambda s: s.world.log(s.held, 2) if s.held else None),
    "complete": ("running", lambda s: None, lambda s: s.call(transitions.complete, conclusion="failure")),
    "cancel": (
        "running",
        lambda s: None,
        lambda s: transitions.cancel_run(run_id=s.run.pk, actor=s.world.owner),
    ),
    "force cancel": (
        "running",
        lambda s: None,
        lambda s: transitions.cancel_run(run_id=s.run.pk, actor=s.world.owner, force=True),
    ),
    "timeout": (
        "running",
        lambda s: s.let_its_deadline_pass(),
        lambda s: transitions.act_on_deadline(job_id=s.job.pk),
    ),
    "unacknowledged": (
        "assigned",
        lambda s: s.let_its_deadline_pass(),
        lambda s: transitions.act_on_deadline(job_id=s.job.pk),
    ),
    "lost": ("running", lambda s: s.fall_silent(), lambda s: transitions.lose_job(job_id=s.job.pk)),
    "requeue": (
        "assigned",
        lambda s: None,
        lambda s: transitions.requeue_job(job_id=s.job.pk, actor=s.world.owner),
    ),
    "rerun": ("ended", lambda s: None, lambda s: transitions.rerun(run_id=s.run.pk, actor=s.world.owner)),
    "supersede": ("running", lambda s: None, lambda s: s.world.push("hasty group")),
    "runner removed": (
        "running",
        lambda s: None,
        lambda s: registration.remove_runner(runner_id=s.runner.pk, actor=s.world.owner),
    ),
    SCALE_DOWN: ("queued", lambda s: None, lambda s: s.world.retire(s.runner)),
}


def answered(act: Callable[[], Any]) -> LifecycleError | None:
    try:
        act()
    except LifecycleError as error:
        return error
    return None


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("actor", CALLS)
@pytest.mark.django_db(transaction=True)
def test_every_rival_leaves_the_invariants_whole(actor: str, point: str) -> None:
    world = World()
    state, prepare, act = CALLS[actor]
    for rival in CALLS:
        scene = Scene(world, state, "hasty group", single_use=SCALE_DOWN in (actor, rival))
        prepare(scene)
        if rival != actor:
            CALLS[rival][1](scene)
        meet(scene, act, CALLS[rival][2], POINTS[point], f"{rival} {point} of {actor}")
        world.check()
        finish(world)
    world.done_with = 0
    world.check()


def meet(
    scene: Scene, act: Callable[[Scene], Any], rival: Callable[[Scene], Any], point: str, name: str
) -> tuple[Rival | None, LifecycleError | None]:
    met: Rival | None = None
    refused: LifecycleError | None = None
    try:
        with rival_before(point, lambda: answered(lambda: rival(scene))) as met:
            refused = answered(lambda: act(scene))
    except AssertionError as error:
        # A call that was refused, or found nothing to do, may never come to the point.
        assert "the point was reached" in str(error), name
        return None, refused
    assert met.error is None, f"{name}: {met.error!r}"
    return met, refused


def finish(world: World) -> None:
    """Leave nothing for the next pair: end what is left by force."""
    for run in Run.objects.exclude(state="ended"):
        answered(lambda run=run: transitions.cancel_run(run_id=run.pk, actor=world.owner, force=True))  # type: ignore[misc]
    world.settle_groups()
    for run in Run.objects.exclude(state="ended"):
        answered(lambda run=run: transitions.cancel_run(run_id=run.pk, actor=world.owner, force=True))  # type: ignore[misc]
    world.check()
    world.done_with = Run.objects.latest("id").pk
    Runner.objects.filter(jobs=None).delete()
