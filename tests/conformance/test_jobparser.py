"""Are workflows planned into the jobs that Gitea's published cases list?"""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from ci.workflow import Workflow, WorkflowErrors, legs, load, plan
from ci.workflow.expressions import to_string
from ci.workflow.uses import resolve
from ci.workflow.workflow import Event

from .conftest import Score

EVENT = Event("push", {"ref": "refs/heads/main", "event": {}})


def loaded(text: str) -> Workflow:
    """Gitea's cases leave `on` out. Those that call a workflow name a runner too, and a local file without `./`, both
    of which GitHub refuses; and the called files are not published."""
    document = yaml.load(text, yaml.BaseLoader)
    calls = [job for job in document["jobs"].values() if "uses" in job]
    if not calls:
        return load("w.yml", {"w.yml": text if "on" in document else f"on: push\n{text}"})
    files = {}
    for job in calls:
        job.pop("runs-on", None)
        job["uses"] = job["uses"] if "@" in job["uses"] or job["uses"].startswith("./") else f"./{job['uses']}"
        inputs = {name: {"type": "string"} for name in job.get("with", {})}
        callee = {"on": {"workflow_call": {"inputs": inputs}}, "jobs": {"called": {"runs-on": "x"}}}
        files[resolve(job["uses"]).key] = json.dumps(callee)
    return load("w.yml", {"w.yml": json.dumps({"on": "push", **document}), **files})


def planned(text: str) -> set[str]:
    """Every leg as a comparable text: key, name, labels, matrix, and what it gives to the workflow it calls."""
    workflow = loaded(text)
    found = set()
    for job in plan(workflow, EVENT).jobs:
        needs = {need: {"result": "success", "outputs": {}} for need in job.needs}
        contexts = {"github": EVENT.github, "inputs": {}, "vars": {}, "needs": needs}
        expansion = legs.expand(job.definition, contexts=contexts, ancestors={}, cancelled=False, key=job.key)
        for leg in expansion.legs:
            matrix = {name: to_string(value) for name, value in leg.matrix.items()}
            given = leg.call.inputs if leg.call else {}
            found.add(json.dumps([job.key, leg.name, list(leg.labels), matrix, given], sort_keys=True))
    return found


def listed(document: dict[str, Any]) -> str:
    ((key, job),) = document["jobs"].items()
    vectors = job.get("strategy", {}).get("matrix", {})
    matrix = {name: values[0] for name, values in vectors.items() if isinstance(values, list) and name != "include"}
    labels = job["runs-on"] if isinstance(job["runs-on"], list) else [job["runs-on"]]
    calls = "uses" in job
    # On GitHub a job that calls a workflow runs on no runner of its own.
    shown = [key, job.get("name", key), [] if calls else labels, matrix, job.get("with", {}) if calls else {}]
    return json.dumps(shown, sort_keys=True)


def test_every_published_workflow_is_planned_as_published(published: Path, score: Score) -> None:
    wrong = []
    rows = [json.loads(line) for line in (published / "jobparser.jsonl").open(encoding="utf-8")]
    for row in rows:
        if row["expected_text"] is None:
            with pytest.raises(WorkflowErrors):
                load("w.yml", {"w.yml": row["workflow"]})
            continue
        if planned(row["workflow"]) != {listed(document) for document in row["expected"]}:
            wrong.append(row["id"])
    score("jobparser.jsonl", len(rows) - len(wrong), len(rows))
    assert rows
    assert not wrong
