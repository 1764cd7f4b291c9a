"""Which jobs does an event start?"""

import pytest

from ci.workflow import Concurrency, Event, PlanError, plan

from .support import loaded, push

CHAIN = """
name: CI
run-name: ${{ github.actor }} pushes ${{ inputs.what }}
on: push
env: {A: '${{ github.ref }}'}
permissions: read-all
concurrency: {group: 'ci-${{ github.ref }}', cancel-in-progress: '${{ github.ref != ''refs/heads/main'' }}'}
jobs:
  last: {runs-on: x, needs: [Middle, first]}
  first: {runs-on: x, name: 'on ${{ github.ref }}'}
  middle: {runs-on: x, needs: FIRST, name: 'leg ${{ matrix.v }}', strategy: {matrix: {v: [1, 2]}}}
"""
EVENT = Event("push", {"ref": "refs/heads/dev", "actor": "mona", "event": {}}, inputs={"what": "it"})


def test_jobs_keep_their_order_and_know_their_level() -> None:
    jobs = plan(loaded(CHAIN), EVENT).jobs
    assert [(job.key, job.needs, job.level) for job in jobs] == [
        ("last", ("middle", "first"), 2),
        ("first", (), 0),
        ("middle", ("first",), 1),
    ]
    assert jobs[0].definition["needs"] == ["middle", "first"]


def test_names_are_evaluated_where_they_can_be() -> None:
    assert [job.name for job in plan(loaded(CHAIN), EVENT).jobs] == ["last", "on refs/heads/dev", "leg ${{ matrix.v }}"]


def test_run_name_and_concurrency_are_evaluated_and_env_is_not() -> None:
    found = plan(loaded(CHAIN), EVENT)
    assert (found.name, found.run_name) == ("CI", "mona pushes it")
    assert found.concurrency == Concurrency("ci-refs/heads/dev", cancel_in_progress=True)
    assert found.env == {"A": "${{ github.ref }}"}
    assert found.permissions == "read-all"


def test_without_run_name_and_concurrency_there_are_none() -> None:
    found = plan(loaded("on: push\njobs: {a: {runs-on: x}}"), push())
    assert (found.run_name, found.concurrency) == (None, None)


@pytest.mark.parametrize(
    ("concurrency", "expected"),
    [
        ("g", Concurrency("g")),
        ("'${{ github.nothing }}'", None),
        ("{group: g, queue: max}", Concurrency("g", queue="max")),
    ],
)
def test_forms_of_concurrency(concurrency: str, expected: Concurrency | None) -> None:
    assert (
        plan(loaded(f"on: push\nconcurrency: {concurrency}\njobs: {{a: {{runs-on: x}}}}"), push()).concurrency
        == expected
    )


def test_a_group_that_keeps_all_and_cancels_by_an_expression_is_refused() -> None:
    concurrency = "{group: g, queue: max, cancel-in-progress: '${{ github.ref != 1 }}'}"
    workflow = loaded(f"on: push\nconcurrency: {concurrency}\njobs: {{a: {{runs-on: x}}}}")
    with pytest.raises(PlanError, match="contradict"):
        plan(workflow, push())


def test_an_expression_that_fails_is_named() -> None:
    workflow = loaded("on: push\nrun-name: ${{ fromJSON(github.ref) }}\njobs: {a: {runs-on: x}}")
    with pytest.raises(PlanError, match="the run-name or concurrency cannot be evaluated"):
        plan(workflow, push())


def test_a_job_that_calls_a_workflow_is_planned_like_any_other() -> None:
    workflow = loaded("on: push\njobs:\n  a: {runs-on: x}\n  b: {needs: a, uses: ./w.yml}\n")
    first, second = plan(workflow, push()).jobs
    assert (second.key, second.needs, second.level) == ("b", ("a",), 1)
    assert first.level == 0
