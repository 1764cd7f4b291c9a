"""Bugs that other servers had, as far as the lifecycle decides them; those of the language alone are tested there.

The numbers are those of the projects' own trackers.
"""

from ci.lifecycle import transitions
from tests.playground import Playground, jobs_of, states_of


def test_a_job_with_always_runs_after_a_skipped_need(playground: Playground) -> None:
    """go-gitea/gitea #27906."""
    run = playground.run("""
        on: push
        jobs:
          job1: {if: false, runs-on: linux, steps: [{run: echo}]}
          job2: {needs: job1, if: always(), runs-on: linux, steps: [{run: echo}]}
    """)
    assert states_of(run) == {"job1": "skipped", "job2": "queued"}


def test_a_whole_matrix_from_outputs_makes_as_many_jobs(playground: Playground) -> None:
    """go-gitea/gitea #25179, nektos/act #540, #927."""
    run = playground.run("""
        on: push
        jobs:
          a: {runs-on: linux, outputs: {m: x}, steps: [{run: echo}]}
          b:
            needs: a
            runs-on: linux
            strategy: {matrix: "${{ fromJSON(needs.a.outputs.m) }}"}
            steps: [{run: echo}]
    """)
    playground.assigned().begin().complete(outputs={"m": '{"x": [1, 2], "include": [{"x": 3}]}'})
    assert set(states_of(run)) == {"a", "b (1)", "b (2)", "b (3)"}


def test_outputs_of_matrix_legs_are_merged_and_empty_ones_do_not_overwrite(playground: Playground) -> None:
    """go-gitea/gitea #32795."""
    run = playground.run("""
        on: push
        jobs:
          each:
            runs-on: linux
            strategy: {matrix: {n: [1, 2, 3]}}
            outputs: {output_1: x, output_2: x, output_3: x}
            steps: [{run: echo}]
          after: {needs: each, runs-on: linux, steps: [{run: echo}]}
    """)
    runner = playground.runner()
    for number in ("1", "2", "3"):
        outputs = {f"output_{n}": n if n == number else "" for n in ("1", "2", "3")}
        playground.assigned(runner).begin().complete(outputs=outputs)
    needs = playground.assigned(runner).payload["contexts"]["needs"]
    assert needs["each"]["outputs"] == {"output_1": "1", "output_2": "2", "output_3": "3"}
    assert states_of(run)["after"] == "assigned"


def test_legs_under_max_parallel_one_run_one_at_a_time(playground: Playground) -> None:
    """go-gitea/gitea #35561."""
    run = playground.run("""
        on: push
        jobs:
          each:
            runs-on: linux
            strategy: {max-parallel: 1, matrix: {n: [1, 2, 3]}}
            steps: [{run: echo}]
    """)
    one, two = playground.runner(name="one"), playground.runner(name="two")
    for _ in range(3):
        assigned = playground.assigned(one)
        assert playground.fetch(two) is None
        assigned.begin().complete()
    run.refresh_from_db()
    assert run.conclusion == "success"


def test_a_skipped_need_has_a_result_and_empty_outputs(playground: Playground) -> None:
    """go-gitea/gitea #30322, nektos/act #2276, #2467."""
    playground.run("""
        on: push
        jobs:
          build: {if: false, runs-on: linux, outputs: {v: x}, steps: [{run: echo}]}
          after: {needs: build, if: "always() && needs.build.result == 'skipped' && needs.build.outputs.v == ''",
                  runs-on: linux, steps: [{run: echo}]}
    """)
    needs = playground.assigned().payload["contexts"]["needs"]
    assert needs == {"build": {"result": "skipped", "outputs": {}}}


def test_a_run_goes_on_until_its_last_job_has_ended(playground: Playground) -> None:
    """go-gitea/gitea #34821, #26559."""
    run = playground.run("""
        on: push
        jobs:
          a: {runs-on: linux, steps: [{run: echo}]}
          b: {runs-on: linux, steps: [{run: echo}]}
    """)
    a = playground.assigned(playground.runner(name="one")).begin()
    b = playground.assigned(playground.runner(name="two")).begin()
    a.complete("failure")
    run.refresh_from_db()
    assert (run.state, run.conclusion) == ("running", None)
    b.complete("success")
    run.refresh_from_db()
    assert (run.state, run.conclusion) == ("ended", "failure")


def test_a_run_whose_jobs_are_all_skipped_is_skipped(playground: Playground) -> None:
    """go-gitea/gitea #32860."""
    run = playground.run("""
        on: push
        jobs:
          a: {if: false, runs-on: linux, steps: [{run: echo}]}
          b: {needs: a, runs-on: linux, steps: [{run: echo}]}
    """)
    assert states_of(run) == {"a": "skipped", "b": "skipped"}
    assert (run.state, run.conclusion) == ("ended", "skipped")


def test_any_cancelled_is_a_cancelled_run(playground: Playground) -> None:
    """go-gitea/gitea #32860."""
    run = playground.run("""
        on: push
        jobs:
          a: {runs-on: linux, steps: [{run: echo}]}
          b: {runs-on: linux, steps: [{run: echo}]}
    """)
    transitions.cancel_job(job_id=jobs_of(run)["b"].pk, actor=playground.alice)
    playground.work(playground.runner())
    run.refresh_from_db()
    assert run.conclusion == "cancelled"


def test_dependents_of_a_tolerated_failure_run(playground: Playground) -> None:
    """go-gitea/gitea #38100, #39380; as runner.server's job-continue-on-error.yml has it."""
    run = playground.run("""
        on: push
        jobs:
          flaky: {runs-on: linux, continue-on-error: true, steps: [{run: echo}]}
          after: {needs: flaky, runs-on: linux, steps: [{run: echo}]}
    """)
    runner = playground.runner()
    playground.assigned(runner).begin().complete("failure")
    after = playground.assigned(runner)
    assert after.payload["contexts"]["needs"]["flaky"]["result"] == "success"
    after.begin().complete()
    run.refresh_from_db()
    assert run.conclusion == "success"


def test_of_three_runs_in_a_group_the_older_pending_one_is_cancelled(playground: Playground) -> None:
    """go-gitea/gitea #36880."""
    text = """
        on: push
        concurrency: {group: main, cancel-in-progress: false}
        jobs:
          a: {runs-on: linux, steps: [{run: echo}]}
    """
    runs = [playground.run(text) for _ in range(3)]
    for run in runs:
        run.refresh_from_db()
    assert [run.outcome for run in runs] == ["queued", "cancelled", "waiting"]


def test_success_looks_at_all_ancestors(playground: Playground) -> None:
    """actions/runner #2205."""
    run = playground.run("""
        on: push
        jobs:
          a: {if: false, runs-on: linux, steps: [{run: echo}]}
          b: {needs: a, if: always(), runs-on: linux, steps: [{run: echo}]}
          c: {needs: b, runs-on: linux, steps: [{run: echo}]}
    """)
    playground.work(playground.runner())
    assert states_of(run) == {"a": "skipped", "b": "success", "c": "skipped"}


def test_a_rerun_of_failed_jobs_respects_needs(playground: Playground) -> None:
    """go-gitea/gitea #25925, #35780, #38631."""
    run = playground.run("""
        on: push
        jobs:
          a: {runs-on: linux, steps: [{run: echo}]}
          b: {needs: a, runs-on: linux, steps: [{run: echo}]}
          c: {runs-on: linux, steps: [{run: echo}]}
    """)
    runner = playground.runner()
    playground.work(runner, {"a": "failure"})
    transitions.rerun(run_id=run.pk, actor=playground.alice, mode="failed")
    assert states_of(run) == {"a": "queued", "b": "blocked", "c": "success"}


def test_a_cancel_ends_what_waits_at_once(playground: Playground) -> None:
    """go-gitea/gitea #38790. What the workflow wants in a cancelled run too waits on, as on GitHub, until forced."""
    run = playground.run("""
        on: push
        jobs:
          a: {runs-on: nowhere, steps: [{run: echo}]}
          b: {needs: a, runs-on: nowhere, steps: [{run: echo}]}
          c: {needs: b, if: always(), runs-on: nowhere, steps: [{run: echo}]}
    """)
    transitions.cancel_run(run_id=run.pk, actor=playground.alice)
    assert states_of(run) == {"a": "cancelled", "b": "cancelled", "c": "queued"}
    transitions.cancel_run(run_id=run.pk, actor=playground.alice, force=True)
    run.refresh_from_db()
    assert (run.state, run.conclusion) == ("ended", "cancelled")
