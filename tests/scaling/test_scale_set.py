"""scale_set: how many runners a set has follows from its jobs, at every look anew."""

from __future__ import annotations

import pytest
from django.db import IntegrityError, transaction

from ci.lifecycle import transitions
from ci.lifecycle.demand import desired_count, look
from ci.lifecycle.errors import InvalidInput, NotFound
from ci.models import Event, Job, JobState, Runner, RunnerPhase, RunnerSet, RunnerSetSample
from tests.scaling.world import World, is_idle

MOST = 2**31 - 1

# minimum, maximum, then (assigned jobs, desired runners) of one call after the other.
UPSTREAM = {
    "MinMaxDefaults: init calculate with acquired 0": (0, MOST, [(0, 0)]),
    "MinMaxDefaults: init calculate with acquired 1": (0, MOST, [(1, 1)]),
    "MinMaxDefaults: increment patch when job done": (0, MOST, [(1, 1), (0, 0)]),
    "MinMaxDefaults: increment patch when called with same parameters": (0, MOST, [(1, 1), (1, 1)]),
    "MinMaxDefaults: calculate desired scale when acquired > 0 and completed > 0": (0, MOST, [(1, 1)]),
    "MinMaxDefaults: adjust when acquired == 0 and completed == 1": (0, MOST, [(1, 1), (0, 0)]),
    "MinSet: initial scale when acquired == 0 and completed == 0": (1, MOST, [(0, 1)]),
    "MinSet: request back to 0 on job done": (1, MOST, [(2, 3), (0, 1)]),
    "MinSet: desired patch is 0 but sequence continues on empty batch and min runners": (
        *(1, MOST),
        [(3, 4), (0, 1), (0, 1)],
    ),
    "MaxSet: initial scale when acquired == 0 and completed == 0": (0, 5, [(0, 0)]),
    "MaxSet: request back to 0 on job done": (0, 5, [(2, 2), (0, 0)]),
    "MaxSet: scale up to max when count > max": (0, 5, [(6, 5)]),
    "MaxSet: scale to max when count == max": (0, 5, [(5, 5)]),
    "MaxSet: scale to max when count > max and completed > 0": (0, 5, [(1, 1), (6, 5)]),
    "MaxSet: scale back to 0 when count was > max": (0, 5, [(6, 5), (0, 0)]),
    "MaxSet: force 0 on empty batch and last patch == min runners": (0, 5, [(3, 3), (0, 0), (0, 0)]),
    "MinMaxSet: initial scale when acquired == 0 and completed == 0": (1, 3, [(0, 1)]),
    "MinMaxSet: scale to min when count == 0": (1, 3, [(2, 3), (0, 1)]),
    "MinMaxSet: scale up to max when count > max": (1, 3, [(4, 3)]),
    "MinMaxSet: scale to max when count == max": (1, 3, [(3, 3)]),
    "MinMaxSet: force 0 on empty batch and last patch == min runners": (1, 3, [(3, 3), (0, 1), (0, 1)]),
}


@pytest.mark.parametrize("case", UPSTREAM)
def test_set_desired_worker_state(case: str) -> None:
    """Rows 7 and 8. TestSetDesiredWorkerState of actions-runner-controller, without its patch ids: the same answer
    twice is harmless here, because nothing is derived from the number of calls."""
    minimum, maximum, calls = UPSTREAM[case]
    assert [desired_count(minimum=minimum, maximum=maximum, assigned=assigned) for assigned, _ in calls] == [
        desired for _, desired in calls
    ]


def test_an_empty_set_has_its_minimum_idle(world: World) -> None:
    """Row 7. (Should scale up with patch ID 0.)"""
    world.make_set(minimum=2)
    runner_set = world.scale()
    world.poll_all()
    assert (runner_set.desired, runner_set.assigned) == (2, 0)
    assert len(world.runners) == 2
    assert all(is_idle(runner) for runner in world.runners)


def test_the_minimum_stays_idle_beside_those_that_work(world: World) -> None:
    """Row 7."""
    world.make_set(minimum=1)
    world.queue(2)
    world.scale()
    assert len(world.poll_all()) == 2
    runner_set = world.scale()
    assert (runner_set.desired, runner_set.assigned) == (3, 2)
    assert sum(is_idle(runner) for runner in world.runners) == 1


def test_there_are_never_more_than_the_maximum(world: World) -> None:
    """Row 8."""
    world.make_set(maximum=3)
    world.queue(10)
    runner_set = world.scale(times=3)
    assert (runner_set.desired, runner_set.assigned, len(world.runners)) == (3, 10, 3)
    assert len(world.launcher.running) == 3
    world.poll_all()
    assert Job.objects.filter(state=JobState.QUEUED).count() == 7


def test_a_process_that_may_still_exist_takes_up_room(world: World) -> None:
    """Row 8."""
    world.make_set(maximum=2)
    world.queue(4)
    world.scale()
    for assigned in world.poll_all():
        assigned.begin().complete()
    world.scale(times=2)
    assert (len(world.runners), world.taking_room) == (0, 2)
    for handle in world.launcher.running:
        world.launcher.end(handle, 0)
    world.scale(times=2)
    assert (len(world.runners), world.taking_room, len(world.launcher.running)) == (2, 2, 2)


def test_a_maximum_below_the_minimum_is_refused_by_form_and_table(world: World) -> None:
    """Row 9."""
    with pytest.raises(InvalidInput, match="minimum"):
        world.make_set(minimum=2, maximum=1)
    world.make_set()
    with pytest.raises(IntegrityError, match="runner_set_maximum_over_minimum"), transaction.atomic():
        RunnerSet.objects.update(minimum=11)


def test_what_is_desired_follows_from_the_jobs_and_not_from_events(world: World) -> None:
    """Row 10. Whatever notification was lost in between: the next look sees what there is."""
    world.make_set()
    world.queue(3)
    world.scale()
    first, second, _ = world.poll_all()
    first.begin()
    second.begin().complete()
    runner_set = world.scale()
    assert (runner_set.assigned, runner_set.desired) == (2, 2)  # one runs, one has been given out, none waits
    world.queue(4)
    assert world.decide().desired == 6


def test_each_missing_runner_is_made_once(world: World) -> None:
    """Row 11. (Should scale up when patch ID changes. Should handle double scale up.)"""
    world.make_set()
    world.queue(2)
    world.decide()
    world.queue(1)
    world.decide()
    world.decide()
    assert len(world.runners) == 3
    made = Event.objects.filter(kind="runner_made", runner_set=world.set)
    assert made.values("runner").distinct().count() == made.count() == 3
    for runner in world.runners:
        assert (runner.phase, runner.ready, runner.attempts, runner.ephemeral) == (RunnerPhase.PENDING, False, 0, True)
        assert (runner.labels, runner.owner, runner.repository) == (["linux"], None, None)


def test_a_job_that_finished_leaves_no_gap(world: World) -> None:
    """Row 13. (TestScaleUpServicedByFinishedRunnerCleanup: nothing has to be suppressed, the recount says it.)"""
    world.make_set()
    world.queue(1)
    world.scale()
    assert world.work_all() == 1
    world.scale(times=3)
    assert Runner.objects.count() == 1
    assert world.refreshed().desired == 0


def test_a_job_that_ends_during_the_look_is_not_refilled(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Row 13. Counted as running a moment ago, its runner is gone a moment later: that is no missing runner."""
    world.make_set()
    world.busy()

    def look_then_complete(runner_set: RunnerSet) -> object:
        sight = look(runner_set)
        world.assigned.complete()
        return sight

    monkeypatch.setattr("ci.lifecycle.demand.look", look_then_complete)
    world.decide()
    monkeypatch.undo()
    world.scale()
    assert Runner.objects.count() == 1


def test_finished_runners_are_replaced_as_long_as_jobs_wait(world: World) -> None:
    """Should replace finished ephemeral runners with new ones."""
    world.make_set(maximum=2)
    world.queue(5)
    done = 0
    for _ in range(10):
        world.scale()
        done += world.work_all()
    assert done == 5
    world.scale()
    assert world.phases() == ["succeeded"] * 5
    assert world.taking_room == 0


def test_idle_ones_beyond_need_go_the_oldest_first(world: World) -> None:
    """Row 14."""
    world.make_set(minimum=3)
    world.scale()
    world.poll_all()
    oldest, middle, youngest = world.runners
    world.pass_time(61)
    world.edit(minimum=1)
    world.scale()
    assert [runner.pk for runner in world.runners] == [youngest.pk]
    retired = Event.objects.filter(kind="runner_retired").order_by("pk").values_list("runner", flat=True)
    assert list(retired) == [oldest.pk, middle.pk]


def test_busy_ones_are_never_taken_away(world: World) -> None:
    """Row 14. (Should delete idle runners, keep busy runners.)"""
    world.make_set(minimum=1)
    busy = world.busy()
    world.scale()
    world.poll_all()
    world.pass_time(3600)
    Runner.objects.update(last_seen_at=None)
    world.edit(minimum=0, maximum=0)
    world.scale(times=2)
    assert [runner.pk for runner in world.runners] == [busy.pk]
    assert world.runners[0].phase == RunnerPhase.RUNNING
    assert world.handle(busy) in world.launcher.running


def test_one_that_is_coming_up_is_not_taken_away(world: World) -> None:
    """Row 16. (Should handle scale down without removing pending runners.)"""
    world.make_set(minimum=1)
    world.scale()
    world.pass_time(120)
    world.edit(minimum=0)
    world.scale()
    assert len(world.runners) == 1
    world.poll_all()
    world.pass_time(61)
    world.scale()
    assert world.runners == []


@pytest.mark.parametrize("coming_up", [False, True], ids=["runs", "starts"])
def test_one_that_never_comes_up_and_is_not_needed_goes_when_its_time_is_over(world: World, *, coming_up: bool) -> None:
    """Row 16. (Should kill pending and running runners if they are up for some reason and the batch contains no jobs.)

    Nobody starts it anew, either."""
    world.launcher.coming_up = coming_up
    world.make_set(minimum=1)
    world.scale()
    world.edit(minimum=0)
    world.pass_time(280)
    world.scale(times=2)
    assert len(world.runners) == 1
    world.pass_time(21)
    world.scale(times=3)
    assert (world.runners, world.launcher.running, world.taking_room) == ([], [], 0)
    assert len(world.launcher.started) == 1


def test_one_that_was_not_started_yet_goes_at_once(world: World) -> None:
    """There is no process to calm down for."""
    world.make_set()
    jobs = world.queue(2)
    world.decide()
    transitions.cancel_run(run_id=jobs[0].run_id, actor=world.playground.alice)
    world.scale()
    assert (world.runners, world.taking_room) == ([], 0)
    assert world.launcher.started == {}


def test_an_idle_one_stays_through_the_calm_time(world: World) -> None:
    """Row 17."""
    world.make_set(minimum=2)
    world.scale()
    world.poll_all()
    world.edit(minimum=0)
    world.pass_time(59)
    runner_set = world.scale()
    assert len(world.runners) == 2
    assert runner_set.wake_at is not None  # it looks again by itself when they have been calm for long enough
    world.pass_time(2)
    world.scale()
    assert world.runners == []


def test_work_that_comes_within_the_calm_time_finds_it(world: World) -> None:
    """Row 17."""
    world.make_set(minimum=2)
    world.scale()
    world.poll_all()
    world.edit(minimum=0)
    world.pass_time(30)
    world.queue(2)
    world.scale()
    assert len(world.poll_all()) == 2
    assert Runner.objects.count() == 2


def test_two_looks_do_the_work_of_one(world: World) -> None:
    """Row 12, one after the other; at once: test_races.py."""
    world.make_set(minimum=1, maximum=4)
    world.queue(7)
    first = world.decide()
    again = world.decide()
    assert (first.launch, first.desired) == (again.launch, again.desired)
    assert len(first.launch) == len(world.runners) == 4


def test_a_set_that_is_gone_is_not_found(world: World) -> None:
    with pytest.raises(NotFound):
        transitions.scale_set(set_id=4711)


def test_a_look_does_not_change_the_version_that_a_form_was_opened_on(world: World) -> None:
    """TestPatchFinishedRunnerCleanupPatchIDStatusUsesOptimisticLock: numbers are written under the set's lock."""
    version = world.make_set(minimum=2).version
    assert world.scale().version == version


def test_samples_are_kept_on_change_and_for_a_day(world: World) -> None:
    """Should update status on Ephemeral Runner state changes."""
    world.make_set()
    world.scale(times=3)
    world.queue(2)
    world.scale()
    points = RunnerSetSample.objects.order_by("pk").values_list("desired", "queued", "busy", "idle", "starting")
    assert list(points) == [(0, 0, 0, 0, 0), (2, 2, 0, 0, 0)]
    world.pass_time(11)
    world.scale()
    world.poll_all()
    runner_set = world.scale()
    assert points.last() == (2, 2, 0, 0, 2)
    assert runner_set.wake_at is not None  # a change that came within ten seconds is not lost
    world.pass_time(11)
    world.scale()
    assert points.last() == (2, 0, 2, 0, 0)
    world.pass_time(86_400)
    world.work_all()
    world.edit(minimum=1)
    world.scale()
    assert RunnerSetSample.objects.count() == 1
