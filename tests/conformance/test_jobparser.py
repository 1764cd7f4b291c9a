"""Are workflows planned into the jobs that Gitea's published cases list?"""

import json
from pathlib import Path
from typing import Any

import pytest

from ci.workflow import WorkflowErrors, legs, load, plan
from ci.workflow.expressions import to_string
from ci.workflow.workflow import Event

EVENT = Event("push", {"ref": "refs/heads/main", "event": {}})


def planned(text: str) -> set[str]:
    """Every leg as a comparable text: key, name, labels, matrix. Gitea's cases leave `on` out."""
    text = text if "\non:" in f"\n{text}" else f"on: push\n{text}"
    workflow = load("w.yml", {"w.yml": text})
    found = set()
    for job in plan(workflow, EVENT).jobs:
        needs = {need: {"result": "success", "outputs": {}} for need in job.needs}
        contexts = {"github": EVENT.github, "inputs": {}, "vars": {}, "needs": needs}
        expansion = legs.expand(job.definition, contexts=contexts, ancestors={}, cancelled=False, key=job.key)
        for leg in expansion.legs:
            matrix = {name: to_string(value) for name, value in leg.matrix.items()}
            found.add(json.dumps([job.key, leg.name, list(leg.labels), matrix], sort_keys=True))
    return found


def listed(document: dict[str, Any]) -> str:
    ((key, job),) = document["jobs"].items()
    vectors = job.get("strategy", {}).get("matrix", {})
    matrix = {name: values[0] for name, values in vectors.items() if isinstance(values, list) and name != "include"}
    labels = job["runs-on"] if isinstance(job["runs-on"], list) else [job["runs-on"]]
    return json.dumps([key, job.get("name", key), labels, matrix], sort_keys=True)


def test_every_published_workflow_is_planned_as_published(published: Path) -> None:
    wrong, judged = [], 0
    rows = [json.loads(line) for line in (published / "jobparser.jsonl").open(encoding="utf-8")]
    for row in rows:
        if row["expected_text"] is None:
            with pytest.raises(WorkflowErrors):
                load("w.yml", {"w.yml": row["workflow"]})
            judged += 1
            continue
        documents = row["expected"]
        if any("uses" in job for document in documents for job in document["jobs"].values()):
            continue
        judged += 1
        if planned(row["workflow"]) != {listed(document) for document in documents}:
            wrong.append(row["id"])
    print(f"jobparser.jsonl: {judged - len(wrong)} of {len(rows)}, {len(rows) - judged} call reusable workflows")
    assert judged
    assert not wrong
