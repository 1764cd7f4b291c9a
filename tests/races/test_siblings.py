"""Two jobs of one run end at once: nothing that depends on both is left behind, and the run ends."""

from tests.playground import Playground, states_of
from tests.races.interleaving import WRITE_JOB, rival_before

FAN_IN = """
    on: push
    jobs:
      left: {runs-on: linux, steps: [{run: echo}]}
      right: {runs-on: linux, steps: [{run: echo}]}
      both: {needs: [left, right], runs-on: linux, steps: [{run: echo}]}
"""


def test_the_dependent_is_released(committing_playground: Playground) -> None:
    playground = committing_playground
    run = playground.run(FAN_IN)
    left = playground.assigned(playground.runner(name="one")).begin()
    right = playground.assigned(playground.runner(name="two")).begin()
    with rival_before(WRITE_JOB, right.complete) as rival:
        left.complete()
    # Without the run's lock they would meet at their jobs, and in a deadlock, or each see the other still running.
    assert 'FROM "ci_run"' in rival.waited_in
    assert rival.error is None
    assert states_of(run) == {"left": "success", "right": "success", "both": "queued"}


def test_the_run_ends(committing_playground: Playground) -> None:
    playground = committing_playground
    run = playground.run(FAN_IN.replace("both:", "other:").replace("needs: [left, right], ", "if: false, "))
    left = playground.assigned(playground.runner(name="one")).begin()
    right = playground.assigned(playground.runner(name="two")).begin()
    with rival_before(WRITE_JOB, right.complete) as rival:
        left.complete()
    assert rival.error is None
    run.refresh_from_db()
    assert (run.state, run.conclusion) == ("ended", "success")
