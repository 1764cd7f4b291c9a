"""Are the published files rendered and refused as by GitHub's engine, at the same places?"""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from ci.workflow import Options, Workflow
from ci.workflow.loading import judge
from ci.workflow.problems import Problems

from .conftest import Score
from .github_template import render

PLACE = re.compile(r"\(Line: \d+, Col: \d+\)")
# Says that anchors are refused, which they no longer are on GitHub: judged with anchors switched off.
STALE = "errors-anchor-tag"
# GitHub's name of an option -> ours.
LIMITS = {
    "max-depth": "max_depth",
    "max-file-size": "max_file_size",
    "max-result-size": "max_result_size",
    "max-job-limit": "max_jobs",
    "max-nested-reusable-workflows-depth": "max_nested_calls",
    "permissions-policy": "permissions_policy",
}


@pytest.fixture(scope="module")
def rows(published: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (published / "workflows.jsonl").open(encoding="utf-8")]


def options_of(row: dict[str, Any]) -> Options:
    given = row["options"]
    limits = {ours: given[theirs] for theirs, ours in LIMITS.items() if theirs in given}
    return Options(
        **limits,
        anchors=row["name"] != STALE,
        follow_calls=not given.get("skip-reusable-workflows", False),
    )


def judged(row: dict[str, Any]) -> tuple[Workflow | None, list[str]]:
    """The workflow by the rules of GitHub's engine, which finds fault with `on:` only in rows that say so."""
    on_counts = "errors" in row and "C#" in row["options"].get("skip", [])
    problems = Problems(row["path"], github_only=not on_counts)
    workflow = judge(row["path"], row["files"], problems, options_of(row))
    return workflow, [str(problem) for problem in problems]


def canonical(value: Any) -> str:
    """A text that is equal only for equal JSON: 1 and true differ, 1 and 1.0 do not."""

    def exact(part: Any) -> Any:
        if isinstance(part, dict):
            return {key: exact(item) for key, item in part.items()}
        if isinstance(part, list):
            return [exact(item) for item in part]
        return float(part) if isinstance(part, int) and not isinstance(part, bool) else part

    return json.dumps(exact(value), sort_keys=True)


def test_every_good_file_renders_to_githubs_template(rows: list[dict[str, Any]], score: Score) -> None:
    good = [row for row in rows if "expected" in row]
    wrong: dict[str, Any] = {}
    for row in good:
        workflow, problems = judged(row)
        if workflow is None:
            wrong[row["name"]] = problems
            continue
        # Only GitHub's TypeScript has events, in rows that the other two leave out.
        events = {"C#", "Go"} <= set(row["options"].get("skip", []))
        found = render(workflow, include_source=row["options"].get("include-source", False), events=events)
        wanted = row["expected"] if events else {key: part for key, part in row["expected"].items() if key != "events"}
        if canonical(found) != canonical(wanted):
            wrong[row["name"]] = found
    score("workflows.jsonl, templates", len(good) - len(wrong), len(good))
    assert good
    assert not wrong


def test_every_bad_file_is_refused_at_githubs_places(rows: list[dict[str, Any]], score: Score) -> None:
    bad = [row for row in rows if "errors" in row]
    found = {row["name"]: judged(row)[1] for row in bad}
    accepted = [name for name, problems in found.items() if not problems]
    placed = [row for row in bad if PLACE.search(row["errors"][0])]
    elsewhere = [
        row["name"]
        for row in placed
        if set(PLACE.findall("".join(row["errors"]))) != set(PLACE.findall("".join(found[row["name"]])))
    ]
    score("workflows.jsonl, errors refused", len(bad) - len(accepted), len(bad))
    score("workflows.jsonl, errors placed", len(placed) - len(elsewhere), len(placed))
    assert bad
    assert not accepted
    assert len(elsewhere) <= len(placed) // 10


def test_most_messages_begin_with_what_github_says(rows: list[dict[str, Any]], score: Score) -> None:
    """Ours go on where they can say what to write instead. A few differ: GitHub writes a place into the text, says the
    same twice, or names keys that this server does not honour."""
    bad = [row for row in rows if "errors" in row]
    other = []
    for row in bad:
        found = [PLACE.sub("", text) for text in judged(row)[1]]
        wanted = [PLACE.sub("", text)[:480] for text in row["errors"]]
        if not all(any(ours.startswith(theirs) for ours in found) for theirs in wanted):
            other.append((row["name"], wanted, found))
    score("workflows.jsonl, error texts", len(bad) - len(other), len(bad))
    assert len(other) <= len(bad) // 5, other
