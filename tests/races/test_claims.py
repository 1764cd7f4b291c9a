"""Runners that poll at once: each job to one of them, and none waits for another."""

from ci.lifecycle import transitions
from ci.models import Job
from tests.playground import Playground, states_of
from tests.races.interleaving import TAKE_JOB, WRITE_EVENT, WRITE_JOB, rival_before


def test_two_runners_get_two_jobs(committing_playground: Playground) -> None:
    playground = committing_playground
    playground.run()
    playground.run()
    one, two = playground.runner(name="one"), playground.runner(name="two")
    with rival_before(WRITE_EVENT, lambda: playground.assigned(two)) as rival:
        first = playground.assigned(one)
    assert not rival.waited_in, "a claim must skip what another is taking"
    assert {first.id, rival.result.id} == set(Job.objects.values_list("id", flat=True))


def test_one_job_goes_to_one_runner(committing_playground: Playground) -> None:
    playground = committing_playground
    playground.run()
    one, two = playground.runner(name="one"), playground.runner(name="two")
    with rival_before(TAKE_JOB, lambda: playground.fetch(two)) as rival:
        first = playground.fetch(one)
    assert (first is None, rival.result is None) in ((True, False), (False, True))
    assert Job.objects.get().assignment == 1


def test_a_cancel_before_the_claim_wins(committing_playground: Playground) -> None:
    playground = committing_playground
    run = playground.run()
    runner = playground.runner()
    with rival_before(TAKE_JOB, lambda: transitions.cancel_run(run_id=run.pk, actor=playground.alice)) as rival:
        assert playground.fetch(runner) is None
    assert rival.error is None
    assert states_of(run) == {"build": "cancelled"}


def test_a_claim_during_a_cancel_finds_nothing_and_does_not_wait(committing_playground: Playground) -> None:
    playground = committing_playground
    run = playground.run()
    runner = playground.runner()
    with rival_before(WRITE_JOB, lambda: playground.fetch(runner)) as rival:
        transitions.cancel_run(run_id=run.pk, actor=playground.alice)
    assert (rival.waited_in, rival.result, rival.error) == ("", None, None)
    assert states_of(run) == {"build": "cancelled"}


def test_a_cancel_during_a_claim_asks_the_runner_to_stop(committing_playground: Playground) -> None:
    playground = committing_playground
    run = playground.run()
    runner = playground.runner()
    cancel = lambda: transitions.cancel_run(run_id=run.pk, actor=playground.alice)  # noqa: E731
    with rival_before(WRITE_EVENT, cancel) as rival:
        assigned = playground.assigned(runner)
    assert rival.error is None
    assert states_of(run) == {"build": "cancelling"}
    assert assigned.heartbeat().cancel == "owner"
