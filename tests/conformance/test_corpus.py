"""Do the workflows of real repositories load and plan?"""

import json
from pathlib import Path

import pytest

from ci.workflow import Event, Options, Workflow, WorkflowErrors, load, plan, triggers

from .conftest import Score

# GitHub's own parser refuses these four, though its server runs them.
REFUSED_BY_GITHUBS_PARSER = {
    "etcd-io+etcd/antithesis-test.yml",
    "helm+helm/release.yml",
    "mesonbuild+meson/images.yml",
    "pycontribs+ansi2html/tox.yml",
}
FOLDER = ".github/workflows"
# Called workflows of other repositories are not part of the corpus.
OPEN = Options(require_called=False)


@pytest.fixture(scope="module")
def corpus(published: Path, score: Score) -> dict[str, Workflow]:
    files = sorted(path for path in (published / "corpus").glob("*/*") if path.suffix in {".yml", ".yaml"})
    assert files
    loaded: dict[str, Workflow] = {}
    refused: dict[str, str] = {}
    for path in files:
        name = f"{path.parent.name}/{path.name}"
        siblings = {f"{FOLDER}/{other.name}": other.read_bytes() for other in path.parent.iterdir()}
        try:
            loaded[name] = load(f"{FOLDER}/{path.name}", siblings, options=OPEN)
        except WorkflowErrors as error:
            refused[name] = str(error)
    score("corpus, files that load", len(loaded), len(files))
    assert not {name: text for name, text in refused.items() if name not in REFUSED_BY_GITHUBS_PARSER}
    return loaded


def github(name: str) -> dict[str, object]:
    payload = {"action": "opened", "inputs": {}, "repository": {"default_branch": "main"}}
    return {"ref": "refs/heads/main", "ref_name": "main", "event_name": name, "event": payload, "workflow": "w"}


def test_every_file_loads_into_plain_json(corpus: dict[str, Workflow]) -> None:
    for workflow in corpus.values():
        definitions = dict(workflow.jobs)
        assert json.loads(json.dumps(definitions, allow_nan=False)) == definitions


def test_every_file_plans_for_each_of_its_events(corpus: dict[str, Workflow], score: Score) -> None:
    planned = 0
    for name, workflow in corpus.items():
        for event in workflow.on:
            triggers.matches(workflow, Event(event, github(event)))
            found = plan(workflow, Event(event, github(event)))
            assert [job.key for job in found.jobs] == list(workflow.jobs), name
            planned += 1
    score("corpus, events that plan", planned, planned)
    assert planned > 0
