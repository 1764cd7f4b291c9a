"""Is a job enabled by its `if` and the results of its needs as the published cases say?"""

import json
import textwrap
from pathlib import Path
from typing import Any

from ci.workflow import legs, load, needs

from .conftest import Score


def enabled(row: dict[str, Any]) -> bool:
    jobs = "".join(f"  {key}:\n{textwrap.indent(text, '    ')}\n" for key, text in row["jobs"].items())
    workflow = load("w.yml", {"w.yml": f"on: push\njobs:\n{jobs}"})
    graph = {key: definition["needs"] for key, definition in workflow.jobs.items()}
    above = needs.ancestors(graph)[row["job"]]
    results = {key: row["results"].get(key, "success") for key in above}
    contexts = {"github": {}, "inputs": {}, "vars": {}, "needs": {}}
    return legs.enabled(workflow.jobs[row["job"]], contexts=contexts, ancestors=results, cancelled=False)


def test_every_published_job_is_enabled_as_published(published: Path, score: Score) -> None:
    rows = [json.loads(line) for line in (published / "act_if.jsonl").open(encoding="utf-8")]
    cases = [row for row in rows if "jobs" in row]
    wrong = [row["id"] for row in cases if enabled(row) != row["enabled"]]
    score("act_if.jsonl, jobs", len(cases) - len(wrong), len(cases))
    assert cases
    assert not wrong
