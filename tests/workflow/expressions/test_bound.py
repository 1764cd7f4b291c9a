"""Does no expression, however hostile, cost more than its bounds or raise anything but ExpressionError?"""

import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ci.workflow.expressions import ExpressionError, check, condition, evaluate, parse, render

FUNCTIONS: dict[str, Any] = {"success": lambda: True, "always": lambda: True, "hashFiles": lambda *patterns: "h"}
NAMES = ("github", "env", "a", "A", "null", "true", "NaN", "Infinity", "insert")
CALLS = ("contains", "format", "join", "toJSON", "fromJSON", "case", "startsWith", "success", "hashFiles")
SYMBOLS = ("(", ")", "[", "]", ",", ".", "*", "!", "==", "!=", "<", "<=", ">", ">=", "&&", "||", "${{", "}}", "}", "{")
LITERALS = ("'x'", "'{0}'", "'{'", "'[1,{\"a\":2}]'", "''", "'", "0", "1", "-1.5", "0xff", "1e999")
WORDS = st.sampled_from((*NAMES, *CALLS, *SYMBOLS, *LITERALS))
EXPRESSIONS = st.one_of(
    st.lists(WORDS, max_size=25).map(" ".join), st.lists(WORDS, max_size=25).map("".join), st.text()
)
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=3), inner, max_size=4)),
    max_leaves=10,
)
# Without what GitHub itself does not keep: more than 15 digits, keys that differ in case only.
PLAIN_JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(10**14), 10**14), st.text(max_size=8)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text("abcdef-_ ", max_size=3), inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(max_examples=400)
@given(source=EXPRESSIONS, value=JSON)
def test_no_input_raises_anything_but_an_expression_error(source: str, value: object) -> None:
    contexts = {"github": value, "env": {"a": value}, "a": [value, {"a": "text"}]}
    calls: tuple[Callable[[], object], ...] = (
        lambda: evaluate(source, contexts, FUNCTIONS),
        lambda: render(source, contexts, FUNCTIONS),
        lambda: condition(source, contexts, FUNCTIONS),
        lambda: parse(source),
    )
    for call in calls:
        try:
            call()
        except ExpressionError as error:
            assert error.stage in ("lexing", "parsing", "evaluation")
            assert str(error)
    for message, offset in check(source, contexts=contexts, functions={"success": (0, 0)}, is_condition=True):
        assert message
        assert 0 <= offset <= len(source)


@settings(max_examples=200)
@given(value=PLAIN_JSON)
def test_json_that_was_written_reads_back_the_same(value: object) -> None:
    assert evaluate("fromJSON(toJSON(a))", {"a": value}) == value


@pytest.mark.parametrize(
    "source",
    [
        "(" * 20_000,
        "!" * 20_000,
        "!" * 20_000 + "1",
        "a[" * 10_000,
        "a" + ".a" * 10_000,
        "format(" * 3_000,
        "1==" * 6_000 + "1",
        "1&&" * 6_000 + "1",
        "'" + "''" * 10_000,
        "fromJSON(a)",
        "toJSON(b)",
        "c.*.*.*.*.*.*.*.*.*.*.*",
    ],
)
def test_deep_and_long_input_is_answered_quickly(source: str) -> None:
    deep: list[Any] = []
    for _ in range(50_000):
        deep = [deep]
    contexts = {"a": "[" * 100_000, "b": deep, "c": [[[[1] * 20] * 20] * 20] * 20}
    start = time.thread_time()

    try:
        evaluate(source, contexts)
    except ExpressionError as error:
        assert len(str(error)) < 50_000
    assert time.thread_time() - start < 10

    while deep:  # Python itself cannot free this depth at once
        deep = deep.pop()


def test_a_grouping_costs_no_depth() -> None:
    assert evaluate("(" * 5_000 + "1" + ")" * 5_000, {}) == 1


def test_fifty_levels_are_allowed_and_no_more() -> None:
    assert evaluate("!" * 49 + "true", {}) is False
    with pytest.raises(ExpressionError, match="Exceeded max expression depth 50"):
        evaluate("!" * 50 + "true", {})


def test_a_chain_of_one_logical_operator_is_one_level() -> None:
    assert evaluate("&&".join(["true"] * 200), {}) is True


def test_an_expression_is_at_most_21000_units_long() -> None:
    assert evaluate("'" + "x" * 20_998 + "'", {}) == "x" * 20_998
    with pytest.raises(ExpressionError, match="Exceeded max expression length 21000"):
        evaluate("'" + "x" * 20_999 + "'", {})
    with pytest.raises(ExpressionError, match="Exceeded max expression length 21000"):
        evaluate("'" + "\U0001f600" * 10_500 + "'", {})


def test_a_result_is_bounded() -> None:
    contexts = {"a": "x" * 300_000}

    with pytest.raises(ExpressionError, match="maximum allowed memory size was exceeded"):
        evaluate("format('{0}{0}', a)", contexts)
    assert len(str(render("${{ format('{0}{0}', a) }}", contexts))) == 600_000
    with pytest.raises(ExpressionError, match="maximum allowed memory size was exceeded"):
        render("${{ a }}" * 20, contexts)


def test_what_an_operator_consumed_is_given_back() -> None:
    contexts = {"a": "x" * 300_000}
    once = "format('{0}', a) == 'y'"

    assert evaluate(f"{once} || {once}", contexts) is False
    with pytest.raises(ExpressionError, match="maximum allowed memory size was exceeded"):
        evaluate("format('{0}', a) == format('{0}', a)", contexts)


def test_building_the_same_again_and_again_is_bounded() -> None:
    contexts = {"a": "x" * 300_000}

    with pytest.raises(ExpressionError, match="maximum allowed memory size was exceeded"):
        evaluate(" || ".join(["format('{0}', a) == 'y'"] * 700), contexts)


@pytest.mark.parametrize(
    "part",
    [
        "a.text == a.other",
        "a.text < a.other",
        "contains(a.text, 'x')",
        "startsWith(a.text, a.other)",
        "contains(a.list, 'x')",
        "contains(a.texts, a.other)",
        "a.number == 2",
        "a.keys.nope",
        "a[a.number]",
        "join(a.list) == 'x'",
        "toJSON(a.list) == 'x'",
        "a.list.* == 2",
        "a.list.*.b == 2",
    ],
)
def test_searching_long_values_again_and_again_is_bounded(part: str) -> None:
    text = "é" * 200_000
    values = {
        "text": text,
        "other": text[:-1] + "e",
        "texts": [text] * 5,
        "number": "1" * 200_000,
        "list": list(range(50_000)),
        "keys": {f"k{number}": number for number in range(50_000)},
    }
    source = " || ".join([part] * (20_000 // (len(part) + 4)))
    start = time.thread_time()

    with pytest.raises(ExpressionError, match="maximum allowed memory size was exceeded"):
        render(f"${{{{ {source} }}}}", {"a": values})
    assert time.thread_time() - start < 60


@pytest.mark.parametrize("wanted", ["x", "X", "1", "", "é", None, True, 1, 0])
def test_contains_finds_what_equals_one_item(wanted: object) -> None:
    items: tuple[object, ...] = ("x", "É", "1", "", None, True, False, 0, 1.0, [], {})
    for item in items:
        contexts = {"list": [item], "wanted": wanted}
        assert evaluate("contains(list, wanted)", contexts) is evaluate("list[0] == wanted", contexts), item
