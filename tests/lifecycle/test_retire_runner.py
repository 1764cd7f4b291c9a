"""retire_runner: an idle single-use runner goes for good, a busy one never."""

import pytest

from ci.lifecycle import transitions
from ci.lifecycle.errors import Conflict, NotFound
from ci.models import Event, Job, Runner
from tests.playground import Playground


def retire(runner: Runner, version: int | None = None) -> bool:
    return transitions.retire_runner(runner_id=runner.pk, reason="Too many idle.", version=version)


def test_an_idle_one_has_ended_with_the_reason_and_gets_no_job(playground: Playground) -> None:
    """TestRunnerFinalizerHandlesServiceRemovalResponses: removed."""
    runner = playground.runner(ephemeral=True)
    version = Runner.objects.get(pk=runner.pk).version
    assert retire(runner)
    playground.run()
    assert playground.fetch(runner) is None
    runner.refresh_from_db()
    assert (runner.phase, runner.ready, runner.reason) == ("succeeded", False, "Too many idle.")
    assert runner.ended_at is not None
    assert runner.version == version + 1
    event = Event.objects.get(runner=runner, kind="runner_retired")
    assert (event.from_state, event.to_state, event.detail) == ("pending", "succeeded", "Too many idle.")


@pytest.mark.parametrize("acknowledged", [False, True])
def test_one_with_a_job_stays(playground: Playground, acknowledged: bool) -> None:
    """TestRunnerFinalizerHandlesServiceRemovalResponses: busy."""
    playground.run()
    runner = playground.runner(ephemeral=True)
    assigned = playground.assigned(runner)
    if acknowledged:
        assigned.heartbeat()
    before = Runner.objects.filter(pk=runner.pk).values().get()
    assert not retire(runner)
    assert Runner.objects.filter(pk=runner.pk).values().get() == before


def test_one_whose_job_vanished_may_go(playground: Playground) -> None:
    run = playground.run()
    runner = playground.runner(ephemeral=True)
    playground.assigned(runner)
    run.delete()
    assert retire(runner)


def test_one_that_has_ended_stays_as_it_ended(playground: Playground) -> None:
    """TestRunnerFinalizerHandlesServiceRemovalResponses: runner not found."""
    playground.run()
    runner = playground.runner(ephemeral=True)
    playground.assigned(runner).begin().complete()
    assert not retire(runner)
    runner.refresh_from_db()
    assert runner.reason == "Its job build has ended."


def test_one_for_many_jobs_stays(playground: Playground) -> None:
    runner = playground.runner()
    assert not retire(runner)
    assert playground.run()
    assert playground.fetch(runner) is not None


def test_what_was_decided_on_an_older_version_changes_nothing(playground: Playground) -> None:
    """TestRunnerFinalizerHandlesServiceRemovalResponses: API error."""
    runner = playground.runner(ephemeral=True)
    version = Runner.objects.get(pk=runner.pk).version
    playground.run()
    assigned = playground.assigned(runner)
    Job.objects.filter(pk=assigned.id).delete()
    with pytest.raises(Conflict):
        retire(runner, version)
    assert Runner.objects.get(pk=runner.pk).phase == "pending"
    assert retire(runner, Runner.objects.get(pk=runner.pk).version)


def test_a_removed_one_is_not_found(playground: Playground) -> None:
    """TestRunnerFinalizerHandlesServiceRemovalResponses: not found."""
    runner = playground.runner(ephemeral=True)
    Runner.objects.filter(pk=runner.pk).delete()
    with pytest.raises(NotFound):
        retire(runner)
