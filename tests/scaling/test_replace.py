"""A changed set: idle runners are replaced, busy ones finish, and it serves jobs all the time."""

from __future__ import annotations

from ci.models import Runner
from tests.scaling.fake_launcher import FakeLauncher
from tests.scaling.world import World


def test_idle_ones_are_replaced_and_busy_ones_finish(world: World) -> None:
    """Row 31. (Should delete idle runners, keep busy runners, and create new runners when the spec changes.)"""
    world.make_set(minimum=2)
    busy = world.busy()
    world.scale()
    world.poll_all()
    old = {runner.pk for runner in world.runners} - {busy.pk}
    assert world.edit(template={"work": "/srv/new"}).spec_revision == 2
    world.scale(times=3)
    assert {runner.pk for runner in world.runners}.isdisjoint(old)
    revisions = Runner.objects.filter(phase__in=["pending", "running"]).order_by("pk").values_list("spec_revision")
    assert [revision for (revision,) in revisions] == [1, 2, 2]  # 2 of 3 on the new revision
    assert world.runners[0].pk == busy.pk
    world.assigned.complete()
    assert world.assigned.job.conclusion == "success"


def test_one_that_is_coming_up_is_replaced_too(world: World) -> None:
    """Row 31. Upstream deletes all pending ones."""
    world.make_set(minimum=1)
    world.scale()
    (old,) = world.runners
    world.edit(template={"work": "/srv/new"})
    world.scale(times=3)
    (new,) = world.runners
    assert (new.pk != old.pk, new.spec_revision) == (True, 2)
    assert world.launcher.running == [new.handle]


def test_what_does_not_concern_the_runners_replaces_none(world: World) -> None:
    world.make_set(minimum=1)
    world.scale()
    before = world.runners
    assert world.edit(name="other", maximum=4).spec_revision == 1
    world.scale(times=2)
    assert world.runners == before


def test_it_serves_jobs_while_it_is_being_replaced(world: World) -> None:
    """Row 32."""
    world.make_set(minimum=2)
    world.scale()
    world.poll_all()
    world.edit(template={"work": "/srv/new"})
    world.queue(1)
    (assigned, *_) = world.poll_all()  # an idle one of before takes it before it is replaced
    assigned.begin()
    world.scale(times=3)
    assigned.complete()
    assert assigned.job.conclusion == "success"
    assert len(world.launcher.running) == 3  # two idle ones of the new revision; the busy one's process is ending
    world.queue(1)
    assert len(world.poll_all()) == 1


def test_the_processes_of_before_are_ended_by_the_launcher_that_started_them(world: World) -> None:
    world.make_set(minimum=1)
    world.scale()
    (old,) = world.runners
    docker = world.launchers["docker"] = FakeLauncher()
    world.edit(launcher="docker", template={"image": "debian:12"})
    world.scale(times=3)
    assert world.launcher.stops == [(old.handle, False)]
    assert (docker.stops, len(docker.running)) == ([], 1)
    assert [runner.launcher for runner in world.runners] == ["docker"]
