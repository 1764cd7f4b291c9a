"""Which blocked jobs go on, and as what, in Gitea's published cases?"""

import json
from pathlib import Path
from typing import Any

from ci.workflow import legs, load, needs

from .conftest import Score

RESULTS = {"Success": "success", "Failure": "failure", "Cancelled": "cancelled", "Skipped": "skipped"}


def next_statuses(jobs: list[dict[str, Any]]) -> dict[str, str]:
    graph = {job["JobID"]: list(job["Needs"] or []) for job in jobs}
    results = {job["JobID"]: RESULTS.get(job["Status"].removeprefix("actions_model.Status")) for job in jobs}
    decided: dict[str, str] = {}
    for key in needs.ready(results, graph):
        job = next(job for job in jobs if job["JobID"] == key)
        text = job.get("WorkflowPayload") or f"on: push\njobs:\n  job{key}: {{runs-on: x}}\n"
        (definition,) = load("w.yml", {"w.yml": text}).jobs.values() if "needs:" not in text else definitions(text)
        known = {need: str(results[need]) for need in graph[key]}
        contexts = {
            "github": {},
            "inputs": {},
            "vars": {},
            "needs": {need: {"result": result, "outputs": {}} for need, result in known.items()},
        }
        expansion = legs.expand(definition, contexts=contexts, ancestors=known, cancelled=False, key=key)
        decided[str(job["ID"])] = f"actions_model.Status{'Skipped' if expansion.skipped else 'Waiting'}"
    return decided


def definitions(text: str) -> list[dict[str, Any]]:
    """The one job of a payload; Gitea leaves its needs out of the file, and so they are added here."""
    workflow = load("w.yml", {"w.yml": f"{text}  job1: {{runs-on: x}}\n"})
    return [definition for key, definition in workflow.jobs.items() if key != "job1"]


def test_every_published_status_follows_as_published(published: Path, score: Score) -> None:
    rows = [json.loads(line) for line in (published / "gitea_job_status.jsonl").open(encoding="utf-8")]
    wrong = [(row["name"], found) for row in rows if (found := next_statuses(row["jobs"])) != row["want"]]
    score("gitea_job_status.jsonl", len(rows) - len(wrong), len(rows))
    assert rows
    assert not wrong
