"""Does a job run once its needs have ended, and as which legs?"""

from typing import Any

import pytest

from ci.workflow import Concurrency, MatrixError, PlanError
from ci.workflow.expressions import ExpressionError
from ci.workflow.legs import Expansion, expand

from .support import loaded


def expanded(
    job: str, *, cancelled: bool = False, ancestors: dict[str, str] | None = None, **contexts: Any
) -> Expansion:
    """The job `b` of these lines; it may need a job `a`."""
    lines = "".join(f"    {line}\n" for line in job.strip("\n").split("\n"))
    definition = loaded(f"on: push\njobs:\n  a: {{runs-on: x}}\n  b:\n    runs-on: linux\n{lines}").jobs["b"]
    given = {"github": {"ref": "refs/heads/main"}, "inputs": {}, "vars": {}, "needs": {}} | contexts
    return expand(definition, contexts=given, ancestors=ancestors or {}, cancelled=cancelled, key="b")


def names(expansion: Expansion) -> list[str]:
    return [leg.name for leg in expansion.legs]


def test_a_plain_job_is_one_leg_with_githubs_defaults() -> None:
    (leg,) = expanded("").legs
    assert (leg.name, leg.matrix, leg.index, leg.total, leg.labels) == ("b", {}, 0, 1, ("linux",))
    assert (leg.fail_fast, leg.max_parallel, leg.timeout_minutes, leg.continue_on_error) == (True, None, 360.0, False)
    assert (leg.concurrency, leg.environment, leg.environment_url) == (None, None, None)
    assert leg.strategy == {"fail-fast": True, "job-index": 0, "job-total": 1, "max-parallel": 1}


# the if, results of ancestors, cancelled, whether the job is skipped
CONDITIONS = [
    ("", {}, False, False),
    ("", {"a": "success"}, False, False),
    ("", {"a": "failure"}, False, True),
    ("", {"a": "skipped"}, False, True),
    ("", {"a": "success", "older": "skipped"}, False, True),
    ("", {"a": "success"}, True, True),
    ("if: false", {}, False, True),
    ("if: ${{ 'false' }}", {}, False, True),
    ("if: 'yes ${{ false }}'", {}, False, False),
    ("if: always()", {"a": "failure"}, False, False),
    ("if: always()", {"a": "success"}, True, False),
    ("if: failure()", {"a": "failure"}, False, False),
    ("if: failure()", {"a": "skipped", "older": "failure"}, False, False),
    ("if: failure()", {"a": "success"}, False, True),
    ("if: cancelled()", {"a": "success"}, True, False),
    ("if: '!cancelled()'", {"a": "skipped"}, False, False),
    ("if: success() || failure() || cancelled()", {"a": "skipped"}, False, True),
    ("if: github.ref == 'refs/heads/main'", {"a": "success"}, False, False),
    ("if: github.ref == 'refs/heads/main'", {"a": "failure"}, False, True),
    ("if: success('a')", {"a": "success", "older": "failure"}, False, False),
    ("if:", {"a": "failure"}, False, True),
]


@pytest.mark.parametrize(("text", "ancestors", "cancelled", "skipped"), CONDITIONS)
def test_the_if_sees_all_ancestors(text: str, ancestors: dict[str, str], cancelled: bool, skipped: bool) -> None:
    expansion = expanded(f"needs: a\n{text}", ancestors=ancestors, cancelled=cancelled)
    assert expansion.skipped is skipped
    assert bool(expansion.legs) is not skipped


def test_results_and_outputs_of_a_skipped_need_are_readable() -> None:
    needs = {"a": {"result": "skipped", "outputs": {}}}
    text = "needs: a\nif: always() && needs.a.result == 'skipped' && needs.a.outputs.x == ''"
    assert not expanded(text, ancestors={"a": "skipped"}, needs=needs).skipped


def test_the_if_comes_before_the_matrix() -> None:
    assert expanded("if: false\nstrategy: {matrix: '${{ fromJSON(github.nothing) }}'}").skipped


def test_a_matrix_from_the_outputs_of_a_need() -> None:
    needs = {"a": {"result": "success", "outputs": {"v": "[1, 2]", "m": '{"include": [{"x": "p"}, {"x": "q"}]}'}}}
    vector = expanded("needs: a\nstrategy: {matrix: {v: '${{ fromJSON(needs.a.outputs.v) }}'}}", needs=needs)
    assert [leg.matrix for leg in vector.legs] == [{"v": 1}, {"v": 2}]
    whole = expanded("needs: a\nstrategy: {matrix: '${{ fromJSON(needs.a.outputs.m) }}'}", needs=needs)
    assert names(whole) == ["b (p)", "b (q)"]
    assert len(whole.legs) == 2


def test_every_key_sees_the_matrix() -> None:
    first, second = expanded(
        """
name: test ${{ matrix.v }} of ${{ strategy.job-total }}
strategy: {fail-fast: false, max-parallel: 1, matrix: {v: [3, 4.5], include: [{v: 3, slow: true}]}}
timeout-minutes: ${{ matrix.v }}
continue-on-error: ${{ matrix.slow || false }}
concurrency: {group: 'g-${{ matrix.v }}', cancel-in-progress: true}
environment: {name: 'env-${{ matrix.v }}', deployment: '${{ matrix.v == 3 }}', url: 'https://${{ steps.x.outputs.y }}'}
"""
    ).legs
    assert (first.name, second.name) == ("test 3 of 2", "test 4.5 of 2")
    assert (first.timeout_minutes, second.timeout_minutes) == (3.0, 4.5)
    assert (first.continue_on_error, second.continue_on_error) == (True, False)
    assert first.concurrency == Concurrency("g-3", cancel_in_progress=True)
    assert (first.environment, first.environment_url) == ("env-3", "https://${{ steps.x.outputs.y }}")
    assert (first.deploys, second.deploys) == (True, False)
    assert (first.fail_fast, first.max_parallel) == (False, 1)


def test_names_list_the_values_unless_they_have_an_expression_themselves() -> None:
    strategy = "strategy: {matrix: {v: [1, {x: [y, '', true]}]}}"
    assert names(expanded(strategy)) == ["b (1)", "b (y, true)"]
    assert names(expanded(f"name: Build\n{strategy}")) == ["Build (1)", "Build (y, true)"]
    assert names(expanded(f"name: '${{{{ github.ref }}}}'\n{strategy}")) == ["refs/heads/main"] * 2


def test_a_long_name_is_cut_to_100_characters() -> None:
    (name,) = names(expanded(f"strategy: {{matrix: {{v: ['{'x' * 200}']}}}}"))
    assert len(name) == 100
    assert name.endswith("x...")


@pytest.mark.parametrize(
    ("runs_on", "labels"),
    [
        ("x", ("x",)),
        ("[self-hosted, x]", ("self-hosted", "x")),
        ("{labels: [a, b]}", ("a", "b")),
        ('${{ fromJSON(\'["a", "b"]\') }}', ("a", "b")),
        ("['${{ github.ref }}', y]", ("refs/heads/main", "y")),
    ],
)
def test_runs_on_in_all_its_forms(runs_on: str, labels: tuple[str, ...]) -> None:
    definition = loaded(f"on: push\njobs:\n  b:\n    runs-on: {runs_on}\n").jobs["b"]
    contexts = {"github": {"ref": "refs/heads/main"}, "inputs": {}, "vars": {}, "needs": {}}
    expansion = expand(definition, contexts=contexts, ancestors={}, cancelled=False, key="b")
    assert expansion.legs[0].labels == labels


@pytest.mark.parametrize(
    ("job", "error", "message"),
    [
        ("timeout-minutes: ${{ github.ref }}", PlanError, "timeout-minutes must be a number, not 'refs/heads/main'"),
        ("timeout-minutes: ${{ fromJSON('-1') }}", PlanError, "timeout-minutes must not be negative, but it is -1"),
        ("cancel-timeout-minutes: ${{ fromJSON('-1') }}", PlanError, "cancel-timeout-minutes must not be negative"),
        ("continue-on-error: ${{ github.ref }}", PlanError, "continue-on-error must be true or false"),
        ("strategy: ${{ fromJSON('[]') }}", PlanError, "The strategy must be a mapping"),
        ("strategy: {matrix: '${{ github.ref }}'}", MatrixError, "The matrix must be a mapping"),
        ("strategy: {matrix: {v: '${{ fromJSON(''[]'') }}'}}", MatrixError, "Matrix vector 'v' does not contain"),
        ("strategy: {max-parallel: '${{ 0 }}'}", PlanError, "strategy.max-parallel must be at least 1"),
        ("strategy: {matrix: '${{ fromJSON(github.ref) }}'}", ExpressionError, "Error parsing fromJson"),
        ("concurrency: ${{ github }}", PlanError, "The concurrency has no group"),
    ],
)
def test_a_job_that_cannot_be_prepared_says_why(job: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as refused:
        expanded(job)
    assert str(refused.value).startswith(message)


def test_an_empty_runs_on_says_so() -> None:
    definition = loaded("on: push\njobs: {b: {runs-on: '${{ github.nothing }}'}}").jobs["b"]
    with pytest.raises(PlanError, match="runs-on evaluated to an empty label"):
        expand(definition, contexts={"github": {}}, ancestors={}, cancelled=False, key="b")


def test_a_cancelled_job_gets_the_minutes_it_asks_for_and_else_five() -> None:
    assert expanded("").legs[0].cancel_timeout_minutes == 5.0
    assert expanded("cancel-timeout-minutes: ${{ fromJSON('0.5') }}").legs[0].cancel_timeout_minutes == 0.5


def test_a_cancelled_job_gets_a_minute_at_least_where_it_asks_for_none() -> None:
    assert expanded("cancel-timeout-minutes: 0").legs[0].cancel_timeout_minutes == 1.0


@pytest.mark.parametrize("zero", ["0", "${{ fromJSON('0') }}", "0.0"])
def test_a_timeout_of_zero_is_none_but_the_longest_a_run_may_take(zero: str) -> None:
    assert expanded(f"timeout-minutes: {zero}").legs[0].timeout_minutes == 35 * 24 * 60


def test_what_no_leg_can_change_is_evaluated_once_for_all_legs() -> None:
    job = """
strategy: {matrix: {v: [1, 2]}}
concurrency: {group: 'g-${{ github.ref }}'}
environment: prod-${{ matrix.v }}
timeout-minutes: ${{ fromJSON('[7, 8]')[strategy.job-index] }}
"""
    first, second = expanded(job).legs
    assert first.labels is second.labels
    assert first.concurrency is second.concurrency
    assert (first.environment, second.environment) == ("prod-1", "prod-2")
    assert (first.timeout_minutes, second.timeout_minutes) == (7, 8)


def test_a_value_that_names_the_matrix_in_another_case_or_in_a_key_is_evaluated_for_each_leg() -> None:
    job = """
strategy: {matrix: {v: [x, y]}}
continue-on-error: ${{ MATRIX.V == 'y' }}
concurrency: {group: "${{ github['ref'] }}${{ Matrix['v'] }}"}
"""
    first, second = expanded(job).legs
    assert (first.continue_on_error, second.continue_on_error) == (False, True)
    assert first.concurrency != second.concurrency


def test_a_fault_in_one_leg_only_is_told() -> None:
    with pytest.raises(PlanError, match="must be a number, not 'soon'"):
        expanded("strategy: {matrix: {v: [1, soon]}}\ntimeout-minutes: ${{ matrix.v }}")
