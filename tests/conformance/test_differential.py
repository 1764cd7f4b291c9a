"""Do made-up expressions and workflows, and the corpus, mean what GitHub's own npm packages say?

Skipped where node, npm or the packages are absent; `oracle_process` says how they come here."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from ci.workflow import Options
from ci.workflow.expressions import ExpressionError, evaluate
from ci.workflow.loading import judge
from ci.workflow.problems import MAX_PROBLEMS, Problems

from .conftest import Score
from .generated import CONTEXTS, FUNCTIONS, expressions, workflows
from .github_template import render
from .oracle_process import Absent, Oracle, install
from .test_corpus import REFUSED_BY_GITHUBS_PARSER
from .test_expressions import kind
from .test_workflows import PLACE, canonical

Json = Any
SOME = settings(
    max_examples=1000,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
OPEN = Options(require_called=False)
# What GitHub's TypeScript emits of a job and a step; its C# has more.
JOB_KEYS = frozenset(
    {
        *("type", "id", "name", "needs", "if", "env", "concurrency", "environment", "strategy", "runs-on", "container"),
        *("services", "outputs", "steps", "ref", "input-values", "secret-values", "inherit-secrets"),
    }
)
STEP_KEYS = frozenset({"id", "name", "if", "continue-on-error", "env", "run", "uses"})
FIRST_LARGE = 1e15
ABOUT_NEEDS = re.compile(r"depends on (unknown )?job|at least one job with no dependencies")


# --- known differences ------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Difference:
    """Where the TypeScript differs from the C# engine that runs the workflows, and how the two are made comparable:
    `token` changes any object of its template. Whatever is not in this table fails the tests."""

    reason: str
    token: Callable[[dict[str, Json]], dict[str, Json]]


def _without_source_layout(token: dict[str, Json]) -> dict[str, Json]:
    text = token.get("expr")
    return token | {"expr": _squeezed(text)} if isinstance(text, str) else token


def _squeezed(text: str) -> str:
    bare = re.sub(r"\s+", "", text)
    return re.sub(r"format\('\{0\}',(.*)\)(?=\)?$)", r"\1", bare)


def _final_newline(token: dict[str, Json]) -> dict[str, Json]:
    return {
        key: value.rstrip("\n") if key == "run" and isinstance(value, str) else value for key, value in token.items()
    }


def _insert(token: dict[str, Json]) -> dict[str, Json]:
    return {"type": 4, "directive": "insert"} if token.get("type") == 4 else token


def _digits(token: dict[str, Json]) -> dict[str, Json]:
    def fifteen(value: Json) -> Json:
        large = isinstance(value, str) and value.lstrip("-").isdigit() and abs(float(value)) >= FIRST_LARGE
        return f"{float(value):.15G}" if large else value

    return {key: fifteen(value) for key, value in token.items()}


def _no_needs(token: dict[str, Json]) -> dict[str, Json]:
    empty = token.get("type") == "job" and token.get("needs") == []
    return {key: value for key, value in token.items() if not (empty and key == "needs")}


def _no_steps(token: dict[str, Json]) -> dict[str, Json]:
    empty = token.get("type") == "job" and token.get("steps") == []
    return {key: value for key, value in token.items() if not (empty and key == "steps")}


DIFFERENCES = (
    Difference("an expression in a block text is read from the source, with its indentation", _without_source_layout),
    Difference("a block text at the end of a file without a final newline gets one", _final_newline),
    Difference("an insert directive is serialized as an expression", _insert),
    Difference("numbers become text as in JavaScript, not with 15 digits", _digits),
    Difference("a job with an empty list of needs keeps it", _no_needs),
    Difference("a job without steps gets an empty list", _no_steps),
)
# Expressions alone: how the TypeScript ends differently, which no part of its answer shows.
EXPRESSION_DIFFERENCES: dict[str, Callable[[str, dict[str, Json], dict[str, Json]], bool]] = {
    "an empty expression crashes it": lambda source, theirs, ours: not source.strip(),
    "it reads all tokens before it parses, so that the later of two faults counts": lambda source, theirs, ours: (
        {theirs.get("stage"), ours.get("stage")} <= {"lexing", "parsing"}
    ),
    "it evaluates the index of what cannot be indexed": lambda source, theirs, ours: (
        "could not evaluate index" in theirs.get("message", "") and "stage" not in ours
    ),
    "it evaluates what case() does not choose": lambda source, theirs, ours: (
        "case(" in source and theirs.get("stage") == "evaluation" and "stage" not in ours
    ),
    "numbers become text as in JavaScript, not with 15 digits": lambda source, theirs, ours: (
        ours.get("kind") == theirs.get("kind") == "String"
        and re.search(r"E[+-]\d|\d{16}", str(ours["value"])) is not None
    ),
}


def comparable(value: Json) -> Json:
    if isinstance(value, list):
        return [comparable(item) for item in value]
    if not isinstance(value, dict):
        return value
    token = {key: comparable(item) for key, item in value.items()}
    for difference in DIFFERENCES:
        token = difference.token(token)
    return token


# --- fixtures ---------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    try:
        install()
    except Absent as absent:
        pytest.skip(f"GitHub's npm packages are not here: {absent}")
    process = Oracle()
    yield process
    process.close()


# --- tests ------------------------------------------------------------------------------------------------------------
def outcome(source: str) -> dict[str, Json]:
    functions: dict[str, Callable[..., object]] = {
        name: (lambda *_, value=value: value) for name, value in FUNCTIONS.items()
    }
    try:
        value = evaluate(source, CONTEXTS, functions)
    except ExpressionError as error:
        return {"stage": error.stage, "message": str(error)}
    return {"kind": kind(value), "value": value}


def same(theirs: dict[str, Json], ours: dict[str, Json]) -> bool:
    if "stage" in theirs or "stage" in ours:
        return theirs.get("stage") == ours.get("stage")
    if theirs["kind"] != ours["kind"]:
        return False
    if theirs["kind"] == "Number":
        wanted, found = float(theirs["value"]), float(ours["value"])
        return wanted == found or (math.isnan(wanted) and math.isnan(found))
    return canonical(theirs["value"]) == canonical(ours["value"])


@SOME
@given(source=expressions)
def test_made_up_expressions_mean_the_same(oracle: Oracle, source: str) -> None:
    theirs, ours = oracle.evaluate(source, CONTEXTS, FUNCTIONS), outcome(source)
    if not same(theirs, ours):
        known = [reason for reason, applies in EXPRESSION_DIFFERENCES.items() if applies(source, theirs, ours)]
        assert known, (theirs, ours)


def emitted(template: Json) -> Json:
    """Of our template what the TypeScript emits."""
    kept = {key: template[key] for key in ("events", "env", "concurrency") if key in template}
    kept["jobs"] = [{key: value for key, value in job.items() if key in JOB_KEYS} for job in template["jobs"]]
    for job in kept["jobs"]:
        if "steps" in job:
            job["steps"] = [{key: value for key, value in step.items() if key in STEP_KEYS} for step in job["steps"]]
    return kept


def _without_needs(errors: list[str]) -> list[str]:
    """The TypeScript judges needs also where jobs have other faults; the C# engine then stops before."""
    others = [text for text in errors if not ABOUT_NEEDS.search(text)]
    return others or errors


def compare(oracle: Oracle, text: str) -> str | None:
    """What differs between GitHub's verdict on a file and ours; None where nothing does."""
    theirs = oracle.template("w.yml", text)
    problems = Problems("w.yml", github_only=True)
    workflow = judge("w.yml", {"w.yml": text}, problems, OPEN)
    if "errors" in theirs or workflow is None:
        wanted, found = _without_needs(theirs.get("errors", [])), [str(problem) for problem in problems]
        places = [set(PLACE.findall("".join(texts))) for texts in (wanted, found)]
        # Of more than ten problems each side shows ten of its own choice.
        alike = places[0] == places[1] or len(wanted) >= MAX_PROBLEMS
        return None if wanted and found and alike else f"refused: {wanted}, we: {found}"
    ours = comparable(emitted(render(workflow, events=True)))
    expected = comparable(theirs["template"])
    return None if canonical(ours) == canonical(expected) else f"{json.dumps(expected)}\nwe: {json.dumps(ours)}"


@settings(SOME, max_examples=250)
@given(text=workflows())
def test_made_up_workflows_are_judged_the_same(oracle: Oracle, text: str) -> None:
    assert compare(oracle, text) is None


def test_the_corpus_renders_the_same(oracle: Oracle, published: Path, score: Score) -> None:
    files = sorted(path for path in (published / "corpus").glob("*/*") if path.suffix in {".yml", ".yaml"})
    found = {f"{path.parent.name}/{path.name}": compare(oracle, path.read_text(encoding="utf-8")) for path in files}
    wrong = {name: text for name, text in found.items() if text and name not in REFUSED_BY_GITHUBS_PARSER}
    judged = found.keys() - REFUSED_BY_GITHUBS_PARSER
    score("corpus, templates as GitHub's", len(judged) - len(wrong), len(judged))
    assert files
    assert not wrong
