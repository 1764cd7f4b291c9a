"""One look changes few rows, one list asks few questions, and one scaler remembers little: the rest comes later."""

from __future__ import annotations

import pytest
from django.utils import timezone

from ci.lifecycle import transitions
from ci.lifecycle.transitions import dying
from ci.models import LaunchAttempt, Runner
from ci.scaling.looking import Orphans, look
from tests.scaling.world import World


def test_a_look_retires_few_at_once_and_comes_back_for_the_others(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row 31. Until it commits, the polls of all of them wait."""
    monkeypatch.setitem(transitions.scale_set.__wrapped__.__globals__, "MOST_RETIRED", 2)  # type: ignore[attr-defined]
    world.make_set(minimum=5)
    world.scale()
    world.poll_all()
    world.edit(template={"work": "/srv/new"})
    wake_at = world.decide().wake_at
    assert wake_at is not None
    assert wake_at <= timezone.now()
    assert len(world.ended) == 2
    world.decide()
    assert len(world.ended) == 4


def test_a_look_tells_few_at_once_to_go(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dying, "MOST_CHANGED", 2)
    world.make_set(minimum=5)
    world.scale()
    world.poll_all()
    world.pass_time(181)
    counts = []
    for _ in range(3):
        wake_at = world.decide().wake_at
        counts.append((Runner.objects.exclude(deleting_at=None).count(), wake_at is not None))
    assert counts == [(2, True), (4, True), (5, True)]


def test_what_is_known_of_a_stray_process_is_forgotten_with_it(world: World) -> None:
    """Else a scaler that runs for months would remember each that it ever met."""
    world.make_set(minimum=2)
    world.scale()
    stays, goes = sorted(world.launcher.running)
    LaunchAttempt.objects.all().delete()
    world.launcher.immortal = True
    orphans = Orphans(clock=lambda: world.clock)
    for _ in range(3):
        world.clock += 2
        look(world.launcher, kind="local", set_id=None, orphans=orphans)
    assert orphans.known == {stays, goes}
    world.launcher.lose(goes)
    look(world.launcher, kind="local", set_id=world.set.pk, orphans=orphans)
    assert orphans.known == {stays, goes}  # a list of one set tells nothing of the others
    look(world.launcher, kind="local", set_id=None, orphans=orphans)
    assert orphans.known == {stays}
    assert {handle for handle, _ in world.launcher.stops} == {stays, goes}
