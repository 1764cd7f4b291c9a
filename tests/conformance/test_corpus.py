"""Do the workflows of real repositories load and plan?"""

import json
from pathlib import Path

import pytest

from ci.workflow import Event, PlanError, Workflow, WorkflowErrors, load, plan, triggers

# GitHub's own parser refuses these four, though its server runs them.
REFUSED_BY_GITHUBS_PARSER = {
    "etcd-io+etcd/antithesis-test.yml",
    "helm+helm/release.yml",
    "mesonbuild+meson/images.yml",
    "pycontribs+ansi2html/tox.yml",
}


@pytest.fixture(scope="module")
def corpus(published: Path) -> dict[str, Workflow]:
    files = sorted(path for path in (published / "corpus").glob("*/*") if path.suffix in {".yml", ".yaml"})
    assert files
    loaded: dict[str, Workflow] = {}
    refused: dict[str, str] = {}
    for path in files:
        name = f"{path.parent.name}/{path.name}"
        try:
            loaded[name] = load(path.name, {path.name: path.read_bytes()})
        except WorkflowErrors as error:
            refused[name] = str(error)
    print(f"corpus: {len(loaded)} of {len(files)} load")
    assert not {name: text for name, text in refused.items() if name not in REFUSED_BY_GITHUBS_PARSER}
    return loaded


def github(name: str) -> dict[str, object]:
    payload = {"action": "opened", "inputs": {}, "repository": {"default_branch": "main"}}
    return {"ref": "refs/heads/main", "ref_name": "main", "event_name": name, "event": payload, "workflow": "w"}


def test_every_file_loads_into_plain_json(corpus: dict[str, Workflow]) -> None:
    for workflow in corpus.values():
        definitions = dict(workflow.jobs)
        assert json.loads(json.dumps(definitions, allow_nan=False)) == definitions


def test_every_file_plans_for_each_of_its_events(corpus: dict[str, Workflow]) -> None:
    planned = calling = 0
    for name, workflow in corpus.items():
        calls = any("uses" in job for job in workflow.jobs.values())
        for event in workflow.on:
            triggers.matches(workflow, Event(event, github(event)))
            if calls:
                with pytest.raises(PlanError, match="reusable workflows"):
                    plan(workflow, Event(event, github(event)))
                calling += 1
                continue
            found = plan(workflow, Event(event, github(event)))
            assert [job.key for job in found.jobs] == list(workflow.jobs), name
            planned += 1
    print(f"corpus: {planned} events plan, {calling} call reusable workflows")
    assert planned > 0
