"""Does what went wrong in other implementations go right here? Each test says where it was seen."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from ci.workflow import Event, Workflow, calls, legs, load, needs, triggers
from ci.workflow.expressions import condition, evaluate
from ci.workflow.inputs import payload
from ci.workflow.legs import Expansion
from ci.workflow.matrix import MatrixError, expand

from .support import PATH, loaded, only_problem, push, with_trigger

STATUS: dict[str, Callable[..., object]] = {
    "success": lambda: True,
    "failure": lambda: False,
    "always": lambda: True,
    "cancelled": lambda: False,
}


def expanded(
    workflow: Workflow, key: str, results: Mapping[str, str] | None = None, outputs: Mapping[str, Any] | None = None
) -> Expansion:
    """The job `key` once its needs have the given results; `results` holds every ancestor."""
    known = results or {}
    wanted = workflow.jobs[key]["needs"]
    contexts = {
        "github": {"event": {}},
        "inputs": {},
        "vars": {},
        "needs": {need: {"result": known[need], "outputs": (outputs or {}).get(need, {})} for need in wanted},
    }
    return legs.expand(workflow.jobs[key], contexts=contexts, ancestors=known, cancelled=False, key=key)


def names(expansion: Expansion) -> list[str]:
    return [leg.name for leg in expansion.legs]


# --- needs and if -----------------------------------------------------------------------------------------------------
SKIPPED = loaded(
    """
    on: push
    jobs:
      job1: {if: false, runs-on: x}
      job2: {needs: job1, if: always(), runs-on: x}
      job3: {needs: job1, if: "needs.job1.result == 'skipped' && needs.job1.outputs.x == '' && always()", runs-on: x}
    """
)


def test_a_job_with_always_runs_after_a_skipped_one() -> None:
    """Seen in Gitea."""
    assert expanded(SKIPPED, "job1").skipped
    assert not expanded(SKIPPED, "job2", {"job1": "skipped"}).skipped


def test_a_skipped_need_has_a_result_and_no_outputs_and_reading_them_is_no_error() -> None:
    """Seen in Gitea and act."""
    assert not expanded(SKIPPED, "job3", {"job1": "skipped"}).skipped


CHAIN = loaded(
    """
    on: push
    jobs:
      a: {if: false, runs-on: x}
      b: {needs: a, if: always(), runs-on: x}
      c: {needs: b, runs-on: x}
      d: {needs: a, if: success() || failure() || cancelled(), runs-on: x}
    """
)


def test_success_looks_at_all_ancestors_not_only_at_direct_needs() -> None:
    """Asked by users of GitHub."""
    graph = {key: job["needs"] for key, job in CHAIN.jobs.items()}
    assert needs.ancestors(graph)["c"] == {"a", "b"}
    assert expanded(CHAIN, "c", {"a": "skipped", "b": "success"}).skipped
    assert not expanded(CHAIN, "c", {"a": "success", "b": "success"}).skipped


def test_success_or_failure_or_cancelled_is_not_always_when_a_need_was_skipped() -> None:
    """Asked by users of GitHub."""
    assert expanded(CHAIN, "d", {"a": "skipped"}).skipped
    assert not expanded(CHAIN, "b", {"a": "skipped"}).skipped


@pytest.mark.parametrize("value", ["false", "0", "anything"])
def test_a_step_output_that_is_any_text_but_the_empty_one_is_true(value: str) -> None:
    """Seen in act."""
    contexts = {"steps": {"x": {"outputs": {"out": value, "none": ""}}}}
    assert condition("${{ steps.x.outputs.out }}", contexts, STATUS) is True
    assert condition("${{ steps.x.outputs.none }}", contexts, STATUS) is False


@pytest.mark.parametrize("text", ["false && '${{ env.E }}'", "${{ !always() }} ", "(${{ false }})", "!${{ true }}"])
def test_text_around_an_expression_makes_a_condition_a_text_which_is_true(text: str) -> None:
    """Asked by users of GitHub."""
    assert condition(text, {"env": {"E": "e"}}, STATUS) is True


def test_a_condition_may_hold_any_letters() -> None:
    """Seen in act."""
    text = "!contains(github.m, '[skip-ci]') && !contains(github.m, '👀')"
    assert condition(text, {"github": {"m": "a change"}}, STATUS) is True
    assert condition(text, {"github": {"m": "look 👀"}}, STATUS) is False


def test_an_unknown_name_in_a_condition_makes_the_workflow_invalid() -> None:
    """Seen in act."""
    problem = only_problem("on: push\njobs:\n  a:\n    if: foobar1\n    runs-on: x\n")
    assert problem.message.startswith("Unrecognized named-value: 'foobar1'")


def test_a_jobs_condition_comes_before_its_matrix_and_may_not_name_it() -> None:
    """Seen in Gitea."""
    text = "on: push\njobs:\n  a:\n    if: contains('x', matrix.m)\n    strategy: {matrix: {m: [x]}}\n    runs-on: x\n"
    assert only_problem(text).message.startswith("Unrecognized named-value: 'matrix'")


def test_hash_files_takes_several_patterns() -> None:
    """Seen in act."""
    given: list[tuple[object, ...]] = []
    functions: dict[str, Callable[..., object]] = {"hashFiles": lambda *patterns: given.append(patterns) or "h"}
    assert evaluate("hashFiles('lib/**/*.ex', 'mix.lock')", {}, functions) == "h"
    assert given == [("lib/**/*.ex", "mix.lock")]
    assert loaded("on: push\njobs: {a: {runs-on: x, steps: [{run: \"${{ hashFiles('a', 'b') }}\"}]}}\n")


# --- triggers ---------------------------------------------------------------------------------------------------------
def test_path_filters_are_not_evaluated_for_tags() -> None:
    """Seen in Gitea."""
    workflow = with_trigger("\n  push:\n    paths: ['foo/**']")
    assert triggers.matches(workflow, push("refs/tags/v1", paths=("bar/x",)))
    assert not triggers.matches(workflow, push(paths=("bar/x",)))


def test_a_push_to_a_branch_does_not_match_where_only_tags_are_filtered() -> None:
    """Seen in Gitea."""
    workflow = with_trigger("\n  push:\n    tags-ignore: ['**']\n    paths: [project.yaml]")
    assert not triggers.matches(workflow, push(paths=("project.yaml",)))


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        ("docs/**/*.md", "docs/a/b.md", "x/docs/a.md"),
        ("v[0-9]+", "v12", "v"),
        ("jsx?", "js", "jsxx"),
        ("**.js", "src/a.js", "a.jsx"),
    ],
)
def test_filter_patterns_are_those_of_the_cheat_sheet(pattern: str, matching: str, other: str) -> None:
    """Seen in Gitea."""
    workflow = with_trigger(f"\n  push:\n    paths: ['{pattern}']")
    assert triggers.matches(workflow, push(paths=(matching,)))
    assert not triggers.matches(workflow, push(paths=(other,)))


def test_a_later_pattern_takes_back_what_an_earlier_one_chose() -> None:
    """Seen in Gitea."""
    workflow = with_trigger("\n  push:\n    branches: ['rel/**', '!rel/old']")
    assert triggers.matches(workflow, push("refs/heads/rel/new"))
    assert not triggers.matches(workflow, push("refs/heads/rel/old"))


def test_a_dispatched_boolean_is_one_in_inputs_and_a_text_in_the_event() -> None:
    """Seen in Gitea."""
    workflow = with_trigger("\n  workflow_dispatch:\n    inputs: {b: {type: boolean}}")
    inputs = triggers.dispatch_inputs(workflow, {"b": "true"})
    assert inputs == {"b": True}
    assert payload(inputs) == {"b": "true"}


def test_a_called_workflow_sees_the_event_of_its_caller() -> None:
    """Seen in Gitea."""
    callee = "on: workflow_call\njobs: {c: {name: 'for ${{ github.event.inputs.who }}', runs-on: x}}\n"
    caller = "on: workflow_dispatch\njobs: {j: {uses: ./c.yml}}\n"
    called = load(PATH, {PATH: caller, "c.yml": callee}).jobs["j"]["called"]
    event = Event("workflow_dispatch", {"event": {"inputs": {"who": "me"}}})
    (job,) = calls.plan_call(called, github=event.github, inputs={}, vars={})
    assert job.name == "for me"


# --- matrix -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "matrix",
    ["{x: '${{ fromJSON(needs.a.outputs.x) }}'}", "'${{ fromJSON(format(''{{\"x\":{0}}}'', needs.a.outputs.x)) }}'"],
)
def test_a_matrix_from_an_output_is_expanded_when_its_job_has_ended(matrix: str) -> None:
    """Seen in Gitea and act."""
    workflow = loaded(
        f"on: push\njobs:\n  a: {{runs-on: x}}\n  b: {{needs: a, runs-on: x, strategy: {{matrix: {matrix}}}}}\n"
    )
    found = expanded(workflow, "b", {"a": "success"}, {"a": {"x": "[1, 2, 3]"}})
    assert [leg.matrix for leg in found.legs] == [{"x": 1}, {"x": 2}, {"x": 3}]


def test_outputs_of_the_legs_are_merged_and_an_empty_one_overwrites_nothing() -> None:
    """Seen in Gitea."""
    made = [{f"output_{one}": str(one) if one == leg else "" for one in (1, 2, 3)} for leg in (1, 2, 3)]
    assert needs.merge_outputs(made) == {"output_1": "1", "output_2": "2", "output_3": "3"}


def test_a_jobs_name_may_name_its_matrix() -> None:
    """Seen in Gitea."""
    text = (
        "on: push\njobs: {a: {name: '${{ matrix.mode }} (${{ matrix.arch }})', runs-on: x, strategy: {matrix: $M}}}\n"
    )
    workflow = loaded(text.replace("$M", "{mode: [fast], arch: [arm, x64]}"))
    assert names(expanded(workflow, "a")) == ["fast (arm)", "fast (x64)"]


def test_legs_that_may_run_one_at_a_time_say_so() -> None:
    """Seen in Gitea."""
    workflow = loaded("on: push\njobs: {a: {runs-on: x, strategy: {max-parallel: 1, matrix: {v: [1, 2]}}}}\n")
    assert [leg.max_parallel for leg in expanded(workflow, "a").legs] == [1, 1]


FRUIT = {"fruit": ["apple", "pear"], "animal": ["cat", "dog"]}
INCLUDES: list[dict[str, str]] = [
    {"color": "green"},
    {"color": "pink", "animal": "cat"},
    {"fruit": "apple", "shape": "circle"},
    {"fruit": "banana"},
    {"fruit": "banana", "animal": "cat"},
]


def test_the_example_of_the_documentation_makes_six_jobs() -> None:
    """Seen in act."""
    found = expand({**FRUIT, "include": INCLUDES})
    assert found == [
        {"fruit": "apple", "animal": "cat", "color": "pink", "shape": "circle"},
        {"fruit": "apple", "animal": "dog", "color": "green", "shape": "circle"},
        {"fruit": "pear", "animal": "cat", "color": "pink"},
        {"fruit": "pear", "animal": "dog", "color": "green"},
        {"fruit": "banana"},
        {"fruit": "banana", "animal": "cat"},
    ]


def test_of_two_includes_the_later_one_overwrites() -> None:
    """Seen in act."""
    turned = expand({**FRUIT, "include": [INCLUDES[1], INCLUDES[0]]})
    assert {leg["color"] for leg in turned} == {"green"}


def test_keys_of_a_matrix_compare_without_case_and_values_loosely() -> None:
    """Seen in act."""
    assert expand({"v": [0, 1], "include": [{"V": 1, "extra": "x"}]}) == [{"v": 0}, {"v": 1, "extra": "x"}]
    assert expand({"v": [0, "", False, 1], "exclude": [{"v": None}]}) == [{"v": 1}]


def test_an_include_that_fits_no_leg_becomes_one_and_nothing_is_merged_into_it() -> None:
    """Seen in act."""
    assert expand({"v": [1], "include": [{"v": 2}, {"v": 2, "x": 1}]}) == [{"v": 1}, {"v": 2}, {"v": 2, "x": 1}]


def test_a_matrix_of_includes_only_makes_one_job_an_item_and_no_empty_one() -> None:
    """Seen in act."""
    assert expand({"include": [{"site": "a", "x": 1}, {"site": "b"}]}) == [{"site": "a", "x": 1}, {"site": "b"}]


def test_includes_work_in_a_matrix_that_comes_as_json() -> None:
    """Seen in act."""
    workflow = loaded(
        """
        on: push
        jobs:
          a:
            runs-on: ${{ matrix.os }}
            strategy:
              matrix: ${{ fromJSON('{"include":[{"os":"a"},{"os":"b"}]}') }}
        """
    )
    assert [leg.labels for leg in expanded(workflow, "a").legs] == [("a",), ("b",)]


def test_an_exclude_of_an_unknown_key_is_refused() -> None:
    """Seen in act; GitHub's MatrixBuilder today."""
    with pytest.raises(MatrixError, match="Matrix exclude key 'w' does not match any key within the matrix"):
        expand({"v": [1], "exclude": [{"w": 1}]})


# --- documents --------------------------------------------------------------------------------------------------------
def test_an_anchor_in_one_job_serves_another() -> None:
    """Seen in Gitea."""
    workflow = loaded("on: push\njobs:\n  Test: {runs-on: x, env: &e {A: '1'}}\n  Test2: {runs-on: x, env: *e}\n")
    assert workflow.jobs["Test2"]["env"] == {"A": "1"}


def test_a_merge_key_is_refused() -> None:
    """Seen in Gitea."""
    text = "on: push\njobs:\n  a: {runs-on: x, env: &e {A: '1'}}\n  b: {runs-on: x, env: {<<: *e}}\n"
    assert only_problem(text).message.startswith("Unexpected value '<<'")


def test_a_job_that_is_allowed_to_fail_counts_as_a_success() -> None:
    """Seen in Gitea; dependents run, as in runner.server's job-continue-on-error.yml."""
    assert needs.result([("failure", True)]) == "success"
    assert needs.result([("failure", True), ("failure", False)]) == "failure"
    workflow = loaded("on: push\njobs:\n  a: {runs-on: x, continue-on-error: true}\n  b: {needs: a, runs-on: x}\n")
    assert expanded(workflow, "a").legs[0].continue_on_error is True
    assert not expanded(workflow, "b", {"a": "success"}).skipped


def test_the_result_of_a_job_is_the_worst_of_its_legs() -> None:
    """Seen in Gitea."""
    assert needs.result([("skipped", False), ("skipped", False)]) == "skipped"
    assert needs.result([("success", False), ("cancelled", False)]) == "cancelled"


def test_a_group_keeps_one_pending_member_unless_it_asks_for_all() -> None:
    """Seen in Gitea."""
    workflow = loaded(
        "on: push\njobs:\n  a: {runs-on: x, concurrency: main}\n"
        "  b: {runs-on: x, concurrency: {group: main, queue: max}}\n"
    )
    groups = [expanded(workflow, key).legs[0].concurrency for key in "ab"]
    assert [(one.group, one.cancel_in_progress, one.queue) for one in groups if one] == [
        ("main", False, "single"),
        ("main", False, "max"),
    ]
