"""Do filter patterns match as GitHub's cheat sheet says?"""

import json
from pathlib import Path

from ci.workflow.patterns import ignores, skips

from .conftest import Score


def test_every_published_pattern_matches_as_published(published: Path, score: Score) -> None:
    rows = [json.loads(line) for line in (published / "act_patterns.jsonl").open(encoding="utf-8")]
    wrong = [
        row
        for row in rows
        if (skips(row["patterns"], row["inputs"]), ignores(row["patterns"], row["inputs"]))
        != (row["skipResult"], row["filterResult"])
    ]
    score("act_patterns.jsonl", len(rows) - len(wrong), len(rows))
    assert rows
    assert not wrong
