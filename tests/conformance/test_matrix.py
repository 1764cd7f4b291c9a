"""Do matrices expand as GitHub's published cases say?"""

import json
from pathlib import Path

from ci.workflow.matrix import MatrixError, expand

from .conftest import Score


def test_every_published_matrix_expands_as_published(published: Path, score: Score) -> None:
    wrong = []
    rows = [json.loads(line) for line in (published / "matrix.jsonl").open(encoding="utf-8")]
    for row in rows:
        try:
            found: object = expand(row["matrix"])
        except MatrixError as error:
            found = str(error)
        if found != row.get("expected", row.get("error")):
            wrong.append((row["id"], found))
    score("matrix.jsonl", len(rows) - len(wrong), len(rows))
    assert rows
    assert not wrong
