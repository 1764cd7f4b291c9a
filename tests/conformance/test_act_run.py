"""Do the workflows of act's own tests end on the bundled runner as they do with act?

Every one that needs neither a container nor the network runs for real: planned by ci.workflow, each job carried out
by a runner process. What act itself brings along is given here too: the actor nektos/act and ACT=true in `env`."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ci.workflow import WorkflowErrors, load, triggers
from ci.workflow.workflow import Event
from tests.runner.conftest import Runners
from tests.runner.fake_server import FakeServer
from tests.runner.repositories import Repository
from tests.runner.whole_runs import WholeRun

from .conftest import SCORES, Score

CONTAINER = re.compile(r"^\s*(?:container|services):|docker://|using:\s*['\"]?docker|\bDockerfile\b", re.MULTILINE)
NETWORK = re.compile(r"\b(?:apt|apt-get|apk|curl|wget|ping|npm|pip)\s")
# The runner has this one built in.
BUILT_IN = "actions/checkout@"

Row = dict[str, Any]


def hindrance(row: Row) -> str | None:
    """Why a workflow cannot run here; None where it can."""
    texts = "\n".join(row["files"].values())
    used = [uses.strip("'\"") for uses in row["uses"]]
    if CONTAINER.search(texts):
        return "needs a container"
    if remote := [uses for uses in used if not uses.startswith(("./", BUILT_IN))]:
        return f"needs the network: {remote[0]}"
    if NETWORK.search(texts):
        return "needs the network: a script asks for it"
    if missing := [uses for uses in used if uses.startswith("./") and not published_with(row, uses)]:
        return f"its file is not published: {missing[0]}"
    if "/root" in texts and not os.access("/root", os.R_OK | os.X_OK):
        return "needs to be root: a step works in /root"
    if "pwsh" in texts and shutil.which("pwsh") is None:
        return "PowerShell is not installed here"
    return None


def published_with(row: Row, uses: str) -> bool:
    """Whether a local action or workflow is among the row's files, or made by its steps in the workspace itself."""
    path = uses.removeprefix("./").strip("/")
    if not path:
        return "action.yml" in "\n".join(row["files"].values())
    return any(f"{row['id']}/{name}" in (path, f"{path}/action.yml", f"{path}/action.yaml") for name in row["files"])


class Act:
    """A forge with a runner that takes whatever is asked of it."""

    def __init__(self, server: FakeServer, runners: Runners) -> None:
        self._server = server
        assert server.repositories is not None
        self._root = server.repositories
        self._runners = runners

    def ends(self, row: Row) -> tuple[str, str]:
        """The worst conclusion over the row's workflows that its event starts, and what their logs say."""
        repository = Repository(self._root, f"nektos/{re.sub('[^a-z0-9]+', '-', row['id'].lower())}")
        # As in act's tests: the workflow's folder is one of many in the repository.
        sha = repository.commit({f"{row['id']}/{name}": text for name, text in row["files"].items()})
        event = self._event(row["event"], repository.bare.stem, sha)
        ended: list[str] = []
        said: list[str] = []
        for name, text in row["files"].items():
            if "/" in name or not name.endswith((".yml", ".yaml")):
                continue
            try:
                workflow = load(f"{row['id']}/{name}", {f"{row['id']}/{name}": text})
            except WorkflowErrors as error:
                return "failure", str(error)
            if triggers.matches(workflow, event):
                run = WholeRun(self._server, event, env={"ACT": "true"})
                ended.append(run.run(workflow))
                said.append(run.text)
        worst = next((end for end in ("failure", "cancelled", "success") if end in ended), "nothing ran")
        return worst, "\n".join([*said, self._runners.log])

    def _event(self, name: str, repository: str, sha: str) -> Event:
        github = {
            "actor": "nektos/act", "event_name": name, "event": {"ref": "refs/heads/main"}, "ref": "refs/heads/main",
            "ref_name": "main", "repository": f"nektos/{repository}", "repository_owner": "nektos", "sha": sha,
        }  # fmt: skip
        return Event(name, github)


@pytest.fixture
def act(tmp_path: Path) -> Iterator[Act]:
    repositories = tmp_path / "repositories"
    repositories.mkdir()
    server = FakeServer(repositories)
    server.start()
    runners = Runners(server, tmp_path)
    try:
        runners.start("run")
        yield Act(server, runners)
    finally:
        runners.close()
        server.stop()


def test_every_published_workflow_that_can_run_here_ends_as_published(
    published: Path, act: Act, score: Score, pytestconfig: pytest.Config
) -> None:
    rows = [json.loads(line) for line in (published / "act_run.jsonl").open(encoding="utf-8")]
    left_out = {row["id"]: reason for row in rows if (reason := hindrance(row))}
    taken = [row for row in rows if row["id"] not in left_out]
    wrong = {}
    for row in taken:
        end, said = act.ends(row)
        if end != ("success" if row["expect_error"] is None else "failure"):
            wrong[row["id"]] = f"ended {end}\n{said}"
    score("act_run.jsonl", len(taken) - len(wrong), len(taken))
    for name, reason in left_out.items():
        pytestconfig.stash[SCORES][f"act_run.jsonl left out: {name}"] = reason
    assert not [row["id"] for row in rows if row["host"] and row["run_only"] and row["id"] in left_out]
    assert not wrong, "\n\n".join(f"=== {name} {text}" for name, text in wrong.items())
