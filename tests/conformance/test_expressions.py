"""Do expressions mean what GitHub's published cases say?"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ci.workflow.expressions import ExpressionError, condition, evaluate

from .conftest import Score

# act hashes files that are not published.
UNPUBLISHED_FILES = {
    "functions/TestFunctionHashFiles/3:hash-multiple-files",
    "functions/TestFunctionHashFiles/7:hash-nested-directories-2",
}
# act rows GitHub's TypeScript prints as JavaScript does; the published rule is 15 digits, as act has it.
FIFTEEN_DIGITS = "functions/TestFunctionFormat/14:format-floats"
# The TypeScript evaluates what case() does not choose; the C# engine, which runs the workflows, does not.
EAGER_CASE = "case(false, fromJSON(format('invalid-{0}', github.run_id)), true, 'matched',"
STATUS: dict[str, Callable[..., object]] = {
    "success": lambda: True,
    "failure": lambda: False,
    "always": lambda: True,
    "cancelled": lambda: False,
}


def rows(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def kind(value: object) -> str:
    if value is None:
        return "Null"
    for types, name in ((bool, "Boolean"), ((int, float), "Number"), (str, "String"), (list, "Array")):
        if isinstance(value, types):
            return name
    return "Object"


def outcome(row: dict[str, Any], functions: dict[str, Callable[..., object]] | None = None) -> dict[str, Any]:
    try:
        value = evaluate(row["expr"], row["contexts"], functions)
    except ExpressionError as error:
        return {"error": {"kind": error.stage, "value": str(error)}}
    return {"result": {"kind": kind(value), "value": value}}


def agrees(expected: dict[str, Any], actual: dict[str, Any], *, text: bool = False) -> bool:
    if "error" in expected:
        if "error" not in actual or not isinstance(expected["error"], dict):
            return "error" in actual
        rule, said = expected["error"], actual["error"]
        return bool(rule["kind"] == said["kind"] and (not text or rule["value"] in said["value"]))
    if "result" not in actual or expected["result"]["kind"] != actual["result"]["kind"]:
        return False
    wanted, got = expected["result"]["value"], actual["result"]["value"]
    if actual["result"]["kind"] == "Number":
        wanted = float(wanted)
    return bool(wanted == got or (wanted != wanted and got != got))


def differences(cases: list[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]], *, text: bool = False) -> list[str]:
    return [
        f"{row['id']}: {row['expr'][:200]} -> {actual}, wanted {expected}"
        for row, expected, actual in cases
        if not agrees(expected, actual, text=text)
    ]


def test_every_case_of_github_itself_holds(published: Path, score: Score) -> None:
    cases = [(row, row, outcome(row)) for row in rows(published / "expressions.jsonl")]
    wrong = differences(cases, text=True)
    score("expressions.jsonl", len(cases) - len(wrong), len(cases))

    assert len(cases) > 500
    assert wrong == []


def test_the_cases_of_act_hold_with_githubs_verdict_first(published: Path, score: Score) -> None:
    functions = {**STATUS, "hashFiles": lambda *patterns: ""}
    cases = []
    for row in rows(published / "act_expressions.jsonl"):
        if row["id"] in UNPUBLISHED_FILES:
            continue
        expected = row if row["id"] == FIFTEEN_DIGITS else row.get("github_ts_says", row)
        cases.append((row, expected, outcome(row, functions)))
    wrong = differences(cases)
    score("act_expressions.jsonl", len(cases) - len(wrong), len(cases))

    assert len(cases) > 240
    assert wrong == []


def test_conditions_are_true_when_act_says_so(published: Path, score: Score) -> None:
    cases = [row for row in rows(published / "act_if.jsonl") if "if" in row]
    wrong = [
        row["id"]
        for row in cases
        if condition(row["if"], {"env": row["env"], "github": row["github"]}, STATUS) is not row["result"]
    ]
    score("act_if.jsonl, conditions", len(cases) - len(wrong), len(cases))

    assert len(cases) > 30
    assert wrong == []


def test_expressions_of_real_workflows_have_githubs_values(published: Path, score: Score) -> None:
    cases = []
    for row in rows(published / "corpus_eval.jsonl"):
        values = row["functions"]
        functions = {name: (lambda value=value: value) for name, value in values.items()}
        cases.append((row, row, outcome(row, functions)))
    wrong = [line for line in differences(cases) if EAGER_CASE not in line]
    score("corpus_eval.jsonl", len(cases) - len(wrong), len(cases))

    assert len(cases) > 2900
    assert wrong == []
