"""NUL characters and halves of surrogate pairs, which PostgreSQL cannot keep: refused with the reason, no crash."""

import json

import pytest

from ci.lifecycle.dispatch import dispatch_repository
from ci.lifecycle.errors import InvalidInput
from tests.playground import Playground, jobs_of

JSON = {"NUL": '"a\\u0000b"', "half a pair": '"a\\ud800b"'}
JOB = "jobs: {a: {runs-on: linux, KEY, steps: [{run: echo}]}}\n"


def expression(text: str) -> str:
    return json.dumps("${{ fromJSON('" + text + "') }}")


@pytest.mark.parametrize("text", JSON.values(), ids=JSON)
@pytest.mark.parametrize(
    "key", ["name: T", "concurrency: T", "environment: T", "continue-on-error: T", "strategy: {matrix: {x: [T]}}"]
)
def test_a_job_that_an_expression_gives_one_fails(playground: Playground, key: str, text: str) -> None:
    run = playground.run("on: push\n" + JOB.replace("KEY", key.replace("T", expression(text))))
    (job,) = jobs_of(run).values()
    assert (job.conclusion, run.conclusion) == ("failure", "failure")
    assert job.end_note.startswith("The job could not be planned: ")


@pytest.mark.parametrize("text", JSON.values(), ids=JSON)
@pytest.mark.parametrize("key", ["run-name", "concurrency"])
def test_a_run_that_an_expression_gives_one_fails_at_its_start(playground: Playground, key: str, text: str) -> None:
    run = playground.run(f"on: push\n{key}: {expression(text)}\n" + JOB.replace("KEY, ", ""))
    assert run.conclusion == "startup_failure"
    assert "holds a NUL character or half of a surrogate pair" in run.problems[0]["message"]


def test_a_matrix_from_an_output_cannot_keep_the_job_before_from_ending(playground: Playground) -> None:
    run = playground.run("""
        on: push
        jobs:
          a: {runs-on: linux, outputs: {list: x}, steps: [{run: echo}]}
          b: {needs: a, runs-on: linux, strategy: {matrix: {x: "${{ fromJSON(needs.a.outputs.list) }}"}}}
    """)
    playground.assigned().begin().complete(outputs={"list": '["a\\u0000b"]'})
    assert {key: job.conclusion for key, job in jobs_of(run).items()} == {"a": "success", "b": "failure"}


def test_one_in_the_file_is_a_problem_with_its_place(playground: Playground) -> None:
    run = playground.run("on: push\n" + JOB.replace("KEY", 'env: {A: "a\\0b"}'))
    assert run.conclusion == "startup_failure"
    (problem,) = run.problems
    assert (problem["line"], problem["message"][:22]) == (2, "The text holds \\u0000,")


def test_one_in_a_dispatch_is_refused(playground: Playground) -> None:
    playground.push({"README": "x"})
    with pytest.raises(InvalidInput):
        dispatch_repository(
            repository=playground.repository, event_type="x", client_payload={"a": ["\0"]}, actor=playground.alice
        )
