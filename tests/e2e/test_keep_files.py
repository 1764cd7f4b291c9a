"""Do artifacts and caches go from job to job and run to run, through the runner's built-in actions?"""

from __future__ import annotations

import hashlib
import io
import shutil
import zipfile
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.conftest import NewProject
from tests.e2e.projects import Project, Run
from tests.interop import npm_clients

KEEPING = Path(__file__).parent / "keeping"


@pytest.fixture(scope="module")
def project(new_project: NewProject) -> Project:
    return new_project("keeping")


@pytest.fixture(scope="module")
def first(project: Project) -> Run:
    return start(project, "keep.yml")


def start(project: Project, workflow: str) -> Run:
    """The run of that workflow, ended."""
    files = {str(file.relative_to(KEEPING)): file.read_text() for file in KEEPING.rglob("*") if file.is_file()}
    chosen = {name: text for name, text in files.items() if not name.startswith(".github/") or name.endswith(workflow)}
    [run] = project.start(chosen).values()
    return run.wait()


def listed(run: Run) -> dict[str, dict[str, Any]]:
    path = f"repos/{run.project.name}/actions/runs/{run.id}/artifacts"
    return {one["name"]: one for one in run.project.owner.call("GET", path)["artifacts"]}


def downloaded(project: Project, artifact: int) -> bytes:
    url = f"{project.owner.product.url}/api/v1/repos/{project.name}/actions/artifacts/{artifact}/zip"
    headers = {"Authorization": f"Bearer {project.owner.token}"}
    answer = httpx.get(url, headers=headers, follow_redirects=True, timeout=60, trust_env=False)
    assert answer.status_code == 200, answer.text[:500]
    return answer.content


def test_jobs_hand_files_on_as_artifacts(first: Run) -> None:
    assert set(listed(first)) == {"part ü-a", "part ü-b", "folder"}
    log = first.log("make (a)")
    assert "Artifact part ü-a has been successfully uploaded!" in log and "sig=" not in log
    assert "a.bin: OK" in first.log("use") and "b.bin: OK" in first.log("use")
    one = listed(first)["part ü-a"]
    content = downloaded(first.project, one["id"])
    assert one["digest"] == f"sha256:{hashlib.sha256(content).hexdigest()}" and one["size_in_bytes"] == len(content)
    with zipfile.ZipFile(io.BytesIO(content)) as opened:
        assert sorted(opened.namelist()) == ["a.bin", "a.sum", "deep dir/a ü%#.txt"]


def test_another_run_finds_the_cache_and_the_artifacts_of_the_first(project: Project, first: Run) -> None:
    assert "no cache" in first.log("use") and "Cache saved with key: kept-" in first.log("use")
    second = project.dispatch("keep.yml", earlier=str(first.id)).wait()
    log = second.log("use")
    assert f"Cache restored from key: kept-{first.id}" in log and "no cache" not in log.splitlines()
    assert second.steps("use")["compare"] == "success"


@pytest.mark.skipif(shutil.which("npm") is None, reason="node and npm are not installed here")
def test_githubs_own_client_and_the_built_in_action_find_each_others_caches(new_project: NewProject) -> None:
    project = new_project("sharing")
    modules = str(npm_clients.install() / "node_modules")
    project.owner.call("PUT", f"{project.api}/variables/MODULES", {"value": modules})
    assert "Cache hit for: theirs" in start(project, "share.yml").log("share")
