"""Are the published files accepted and refused as by GitHub's engine, at the same places?"""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from ci.workflow.document.loading import accept
from ci.workflow.problems import Problems, WorkflowErrors

# What needs the called workflows, a limit of the test run, or anchors switched off: no fault of the file alone.
BEYOND_ONE_FILE = re.compile(r"reusable-workflow|max-file-size|max-result-size|anchor-tag")
# The position GitHub gives an expression whose literal value has the wrong type is its second problem there.
PLACE = re.compile(r"\(Line: \d+, Col: \d+\)")


@pytest.fixture(scope="module")
def rows(published: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (published / "workflows.jsonl").open(encoding="utf-8")]


def found(row: dict[str, Any]) -> list[str]:
    """The problems by the rules of GitHub's engine, which finds fault with `on:` only in rows that say so."""
    on_counts = "errors" in row and "C#" in row["options"].get("skip", [])
    problems = Problems(row["path"], github_only=not on_counts)
    accept(row["files"][row["path"]], problems)
    try:
        problems.raise_if_any()
    except WorkflowErrors as error:
        return [str(problem) for problem in error.problems]
    return []


def test_every_good_file_is_accepted(rows: list[dict[str, Any]]) -> None:
    good = [row for row in rows if "expected" in row]
    refused = {row["name"]: problems for row in good if (problems := found(row))}
    print(f"workflows.jsonl, templates: {len(good) - len(refused)} of {len(good)} accepted")
    assert good
    assert not refused


def test_every_bad_file_is_refused_at_githubs_places(rows: list[dict[str, Any]]) -> None:
    bad = [row for row in rows if "errors" in row and not BEYOND_ONE_FILE.search(row["name"])]
    accepted = [row["name"] for row in bad if not found(row)]
    placed = [row for row in bad if PLACE.search(row["errors"][0])]
    elsewhere = [
        row["name"]
        for row in placed
        if set(PLACE.findall("".join(row["errors"]))) != set(PLACE.findall("".join(found(row))))
    ]
    print(f"workflows.jsonl, errors: {len(bad) - len(accepted)} of {len(bad)} refused, elsewhere: {elsewhere}")
    assert bad
    assert not accepted
    assert len(elsewhere) <= len(placed) // 10
