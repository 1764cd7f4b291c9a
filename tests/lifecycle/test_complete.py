"""complete: running -> ended; dependents released, the run concluded."""

import pytest

from ci.lifecycle import transitions
from ci.lifecycle.errors import Conflict, InvalidInput, Unauthenticated
from ci.models import Run, Runner, Step
from tests.playground import Playground, jobs_of, states_of

CHAIN = """
    on: push
    jobs:
      build:
        runs-on: linux
        outputs: {version: x}
        steps: [{run: echo}]
      test:
        needs: build
        runs-on: linux
        steps: [{run: echo}]
      report:
        needs: [build, test]
        if: always()
        runs-on: linux
        steps: [{run: echo}]
"""


def test_it_ends_the_job_and_the_run(playground: Playground) -> None:
    run = playground.run()
    playground.work(playground.runner())
    run.refresh_from_db()
    assert (run.state, run.conclusion) == ("ended", "success")
    assert run.ended_at is not None
    assert states_of(run) == {"build": "success"}


def test_it_releases_what_needed_it(playground: Playground) -> None:
    run = playground.run(CHAIN)
    assert states_of(run) == {"build": "queued", "test": "blocked", "report": "blocked"}
    assert playground.work(playground.runner()) == ["build", "test", "report"]
    run.refresh_from_db()
    assert run.conclusion == "success"


def test_dependents_see_result_and_outputs(playground: Playground) -> None:
    playground.run(CHAIN)
    runner = playground.runner()
    playground.assigned(runner).begin().complete(outputs={"version": "1.2"})
    test = playground.assigned(runner)
    assert test.payload["contexts"]["needs"] == {"build": {"result": "success", "outputs": {"version": "1.2"}}}


def test_a_failure_skips_dependents_but_not_always(playground: Playground) -> None:
    run = playground.run(CHAIN)
    assert playground.work(playground.runner(), {"build": "failure"}) == ["build", "report"]
    assert states_of(run) == {"build": "failure", "test": "skipped", "report": "success"}
    run.refresh_from_db()
    assert run.conclusion == "failure"


def test_repeating_it_gives_the_same_answer_and_changes_nothing(playground: Playground) -> None:
    playground.run()
    assigned = playground.assigned().begin()
    first = assigned.complete()
    ended_at = assigned.job.ended_at
    assert assigned.complete("failure") == first
    assert (assigned.job.conclusion, assigned.job.ended_at) == ("success", ended_at)


def test_a_cancel_that_came_first_wins(playground: Playground) -> None:
    playground.run()
    assigned = playground.assigned().begin()
    transitions.cancel_job(job_id=assigned.id, actor=playground.bob)
    end = assigned.complete("success")
    assert (end.conclusion, end.reason) == ("cancelled", "owner")
    assert assigned.job.end_note == "Cancelled by bob."


def test_it_wants_the_acknowledgement_first(playground: Playground) -> None:
    playground.run()
    with pytest.raises(Conflict):
        playground.assigned().complete()


def test_a_replaced_token_ends_nothing(playground: Playground) -> None:
    playground.run()
    assigned = playground.assigned().begin()
    with pytest.raises(Unauthenticated):
        transitions.complete(job_id=assigned.id, token="frj_other", conclusion="success")
    assert assigned.job.state == "running"


def test_it_frees_the_runner(playground: Playground) -> None:
    playground.run()
    assigned = playground.assigned().begin()
    assigned.complete()
    assert Runner.objects.get(pk=assigned.runner.pk).phase == "pending"


def test_steps_left_open_end_with_the_job(playground: Playground) -> None:
    playground.run()
    assigned = playground.assigned().begin()
    assigned.steps({"number": 3, "name": "Never begun", "state": "pending"})
    assigned.complete("failure")
    ends = dict(Step.objects.filter(job=assigned.id).values_list("number", "conclusion"))
    assert ends == {1: "success", 2: "failure", 3: "skipped"}


def test_too_long_outputs_are_refused_and_the_job_runs_on(playground: Playground) -> None:
    playground.run()
    assigned = playground.assigned().begin()
    with pytest.raises(InvalidInput):
        assigned.complete(outputs={"k" * 256: "v"})
    assert assigned.job.state == "running"


def test_fail_fast_stops_the_siblings(playground: Playground) -> None:
    run = playground.run("""
        on: push
        jobs:
          test:
            runs-on: linux
            strategy: {matrix: {version: [1, 2, 3]}}
            steps: [{run: echo}]
    """)
    one, two = playground.runner(name="one"), playground.runner(name="two")
    first, second = playground.assigned(one).begin(), playground.assigned(two).begin()
    first.complete("failure")
    assert second.heartbeat().cancel == "fail_fast"
    second.complete("success")
    assert states_of(run) == {"test (1)": "failure", "test (2)": "cancelled", "test (3)": "cancelled"}
    run.refresh_from_db()
    assert run.conclusion == "failure"


def test_without_fail_fast_the_siblings_go_on(playground: Playground) -> None:
    run = playground.run("""
        on: push
        jobs:
          test:
            runs-on: linux
            strategy: {fail-fast: false, matrix: {version: [1, 2]}}
            steps: [{run: echo}]
    """)
    playground.work(playground.runner(), {"test (1)": "failure"})
    assert states_of(run) == {"test (1)": "failure", "test (2)": "success"}


def test_a_tolerated_failure_counts_as_success(playground: Playground) -> None:
    run = playground.run("""
        on: push
        jobs:
          flaky: {runs-on: linux, continue-on-error: true, steps: [{run: echo}]}
          after: {needs: flaky, runs-on: linux, steps: [{run: echo}]}
    """)
    playground.work(playground.runner(), {"flaky": "failure"})
    assert states_of(run) == {"flaky": "failure", "after": "success"}
    run.refresh_from_db()
    assert run.conclusion == "success"


def test_max_parallel_holds_legs_back(playground: Playground) -> None:
    run = playground.run("""
        on: push
        jobs:
          test:
            runs-on: linux
            strategy: {max-parallel: 1, matrix: {version: [1, 2]}}
            steps: [{run: echo}]
    """)
    assert states_of(run) == {"test (1)": "queued", "test (2)": "blocked"}
    assert jobs_of(run)["test (2)"].hold == "max_parallel"
    playground.assigned().begin().complete()
    assert states_of(run) == {"test (1)": "success", "test (2)": "queued"}


def test_a_matrix_from_outputs_is_expanded_when_its_need_ends(playground: Playground) -> None:
    run = playground.run("""
        on: push
        jobs:
          list: {runs-on: linux, outputs: {all: x}, steps: [{run: echo}]}
          each:
            needs: list
            runs-on: linux
            strategy: {matrix: {item: "${{ fromJSON(needs.list.outputs.all) }}"}}
            steps: [{run: echo}]
    """)
    playground.assigned().begin().complete(outputs={"all": '["a", "b"]'})
    assert states_of(run) == {"list": "success", "each (a)": "queued", "each (b)": "queued"}


def test_a_matrix_that_cannot_be_expanded_fails_its_job_with_the_reason(playground: Playground) -> None:
    run = playground.run("""
        on: push
        jobs:
          list: {runs-on: linux, outputs: {all: x}, steps: [{run: echo}]}
          each:
            needs: list
            runs-on: linux
            strategy: {matrix: {item: "${{ fromJSON(needs.list.outputs.all) }}"}}
            steps: [{run: echo}]
    """)
    playground.assigned().begin().complete(outputs={"all": "no json"})
    job = jobs_of(run)["each"]
    assert job.conclusion == "failure"
    assert "could not be planned" in job.end_note
    run.refresh_from_db()
    assert run.conclusion == "failure"


def test_all_skipped_is_a_skipped_run(playground: Playground) -> None:
    run = playground.run("on: push\njobs: {a: {if: false, runs-on: linux, steps: [{run: echo}]}}")
    assert (run.state, run.conclusion) == ("ended", "skipped")
    assert Run.objects.filter(pk=run.pk, ended_at__isnull=False).exists()
