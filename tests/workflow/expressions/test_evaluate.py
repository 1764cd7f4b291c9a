"""Has an expression the value GitHub gives it?"""

import math
from typing import Any

import pytest

from ci.workflow.expressions import ExpressionError, evaluate

CONTEXTS: dict[str, Any] = {
    "github": {
        "ref": "refs/heads/main",
        "event": {"commits": [{"author": {"username": "ada"}}, {"author": {"username": "bob"}}], "number": 7},
    },
    "env": {"EMPTY": "", "Mixed": "yes"},
    "list": ["zero", "one"],
    "nothing": None,
}


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("", None),
        ("  \n\t ", None),
        ("'it''s'", "it's"),
        ("''", ""),
        ("''''''", "''"),
        ("0xff", 255),
        ("0o17", 15),
        (".5", 0.5),
        ("-1.5e3", -1500),
        ("+Infinity", math.inf),
        ("GITHUB.REF", "refs/heads/main"),
        ("env.mixed", "yes"),
        ("env['MIXED']", "yes"),
        ("github.nothing.at.all", None),
        ("github.ref.length", None),
        ("nothing.x.*", []),
        ("list[1.9]", "one"),
        ("list['1']", "one"),
        ("list[true]", "one"),
        ("list[-1]", None),
        ("list[2]", None),
        ("list[list]", None),
        ("github.event.commits.*.author.username", ["ada", "bob"]),
        ("(github.event.commits.*.author)[0]", []),
        ("fromJSON(toJSON(github.event.commits.*.author.username))[0]", "ada"),
        ("!env.empty", True),
        ("'' || 'b'", "b"),
        ("'a' && ''", ""),
        ("null == 0", True),
        ("null == ''", True),
        ("null < 1", True),
        ("null <= null", True),
        ("null < null", False),
        ("'A' == 'a'", True),
        ("'straße' == 'STRASSE'", False),
        ("'10' > 9", True),
        ("'abc' == NaN", False),
        ("NaN != NaN", True),
        ("github == github", True),
        ("github == fromJSON('{}')", False),
        ("true > false", True),
        ("1 < 2 == true", True),
        ("'\U0001f600' < '\uffff'", True),
    ],
)
def test_it_gives_githubs_value(source: str, value: object) -> None:
    assert evaluate(source, CONTEXTS) == value


@pytest.mark.parametrize(
    ("number", "text"),
    [
        ("1.0", "1"),
        ("-0.0", "0"),
        ("0.1", "0.1"),
        ("123456789012345", "123456789012345"),
        ("1234567890123456", "1.23456789012346E+15"),
        ("0.0001", "0.0001"),
        ("0.00001", "1E-05"),
        ("1e400", "Infinity"),
        ("0xFFFFFFFF", "-1"),
    ],
)
def test_it_writes_numbers_with_fifteen_digits(number: str, text: str) -> None:
    assert evaluate(f"format('{{0}}', {number})", {}) == text


@pytest.mark.parametrize(
    ("source", "stage", "position"),
    [
        ("1 <", "parsing", 3),
        ("format('a',)", "parsing", 12),
        ("(1, 2)", "parsing", 3),
        ("list[]", "parsing", 6),
        ("list[0", "parsing", 6),
        ("list[* == 1]", "parsing", 8),
        ("'text'[0]", "parsing", 7),
        ("list.1", "parsing", 6),
        ("a\x1cb", "lexing", 1),
        ("'open", "lexing", 1),
        ("'\U0001f600' 1", "parsing", 6),
        ("unknown", "parsing", 1),
        ("unknown 2", "parsing", 1),
        ("hashFiles('a')", "parsing", 1),
        ("contains('a')", "parsing", 1),
        ("case(true, 1, false, 2)", "parsing", 1),
        ("fromJSON('{')", "evaluation", None),
        ("fromJSON('')", "evaluation", None),
        ("fromJSON('NaN')", "evaluation", None),
        ("format('{1}', 0)", "evaluation", None),
        ("format('{0:x}', 0)", "evaluation", None),
        ("case(1, 2, 3)", "evaluation", None),
    ],
)
def test_it_says_which_step_failed_and_where(source: str, stage: str, position: int | None) -> None:
    with pytest.raises(ExpressionError) as caught:
        evaluate(source, {"list": ["zero"]})

    assert (caught.value.stage, caught.value.position) == (stage, position)


def test_it_calls_the_functions_it_was_given_by_any_case() -> None:
    called: list[tuple[object, ...]] = []

    def hash_files(*patterns: object) -> str:
        called.append(patterns)
        return "abc"

    assert evaluate("HASHFILES('**/go.sum', 1) == 'abc'", {}, {"hashFiles": hash_files}) is True
    assert called == [("**/go.sum", 1)]


def test_a_wrong_number_of_arguments_for_a_given_function_is_the_expressions_fault() -> None:
    with pytest.raises(ExpressionError, match="called with 1 arguments"):
        evaluate("always('x')", {}, {"always": lambda: True})


def test_a_type_error_inside_a_given_function_is_not_hidden() -> None:
    def broken() -> object:
        return len(3)  # type: ignore[arg-type]

    with pytest.raises(TypeError):
        evaluate("always()", {}, {"always": broken})


def test_what_is_not_chosen_is_not_evaluated() -> None:
    bad = "fromJSON('{')"

    assert evaluate(f"true || {bad}", {}) is True
    assert evaluate(f"false && {bad}", {}) is False
    assert evaluate(f"case(true, 1, {bad})", {}) == 1
    assert evaluate(f"format('{{0}}', 1, {bad})", {}) == "1"
    assert evaluate(f"join('a', {bad})", {}) == "a"


def test_keys_of_json_that_differ_in_case_only_are_one_key() -> None:
    assert evaluate("""toJSON(fromJSON('{"Key": 1, "other": 2, "KEY": 3}'))""", {}) == '{\n  "Key": 3,\n  "other": 2\n}'


def test_json_keeps_big_integers_as_the_numbers_github_has() -> None:
    assert evaluate("fromJSON('123456789012345678901234567890')", {}) == 1.2345678901234568e29
    assert evaluate("fromJSON('-7')", {}) == -7


def test_a_filter_result_is_handed_out_as_a_plain_list() -> None:
    assert type(evaluate("list.*", CONTEXTS)) is list
