"""Which jobs wait for which, and what became of them?"""

import time

import pytest

from ci.workflow.needs import NeedsError, ancestors, levels, merge_outputs, order, ready, result

DIAMOND = {"d": ["b", "c"], "b": ["a"], "c": ["a"], "a": []}


def test_ancestors_reach_through_others() -> None:
    assert ancestors(DIAMOND) == {
        "d": frozenset("abc"),
        "b": frozenset("a"),
        "c": frozenset("a"),
        "a": frozenset(),
    }


def test_levels_count_the_longest_way() -> None:
    assert levels(DIAMOND | {"e": ["d", "a"]}) == {"d": 2, "b": 1, "c": 1, "a": 0, "e": 3}


def test_ready_are_the_undecided_whose_needs_are_decided() -> None:
    assert ready({}, DIAMOND) == ["a"]
    assert ready({"a": "failure", "b": None}, DIAMOND) == ["b", "c"]
    assert ready({"a": "success", "b": "success", "c": "skipped"}, DIAMOND) == ["d"]
    assert ready(dict.fromkeys(DIAMOND, "success"), DIAMOND) == []


@pytest.mark.parametrize("needs", [{"a": ["a"]}, {"a": ["b"], "b": ["a"]}, {"x": [], "y": ["z"], "z": ["y", "x"]}])
def test_a_circle_is_refused(needs: dict[str, list[str]]) -> None:
    with pytest.raises(NeedsError, match="creates a cycle"):
        order(needs)


def test_an_unknown_need_is_refused() -> None:
    with pytest.raises(NeedsError, match="Job 'a' depends on unknown job 'b'"):
        order({"a": ["b"]})


def test_a_chain_of_a_thousand_jobs_is_no_burden() -> None:
    started = time.thread_time()
    chain = {f"j{n}": [f"j{n - 1}"] if n else [] for n in range(1000)}
    assert len(ancestors(chain)["j999"]) == 999
    assert levels(chain)["j999"] == 999
    assert time.thread_time() - started < 10


def test_outputs_merge_in_order_and_an_empty_one_never_overwrites() -> None:
    legs = [{"one": "1", "two": "", "all": "a"}, {"one": "", "two": "2", "all": "b"}, {"three": ""}]
    assert merge_outputs(legs) == {"one": "1", "two": "2", "all": "b", "three": ""}


@pytest.mark.parametrize(
    ("legs", "expected"),
    [
        ([], "skipped"),
        ([("skipped", False)], "skipped"),
        ([("success", False), ("skipped", False)], "success"),
        ([("success", False), ("cancelled", False)], "cancelled"),
        ([("cancelled", False), ("failure", False)], "failure"),
        ([("failure", True)], "success"),
        ([("failure", True), ("failure", False)], "failure"),
        ([("cancelled", True), ("success", False)], "cancelled"),
    ],
)
def test_the_result_of_a_job_over_its_legs(legs: list[tuple[str, bool]], expected: str) -> None:
    assert result(legs) == expected
