"""Does a push with the real git program start what it should, and tell the person so?"""

from __future__ import annotations

import re
from pathlib import Path

import httpx
import pytest

from tests.e2e.conftest import NewProject
from tests.e2e.people import Person
from tests.e2e.product import Product
from tests.e2e.projects import Project, Run, as_seen
from tests.forge.git.worktree import WorkTree

HELLO = """
name: Hello
on: push
jobs:
  greet:
    runs-on: ubuntu-latest
    steps:
      - run: echo "hello from $GITHUB_REF"
"""
NO_RUNS_ON = """
name: Broken
on: push
jobs:
  greet:
    steps:
      - run: echo
"""
PATH = ".github/workflows/hello.yml"


@pytest.fixture(scope="module")
def project(new_project: NewProject) -> Project:
    """With a first commit pushed; the tests that follow add to it."""
    made = new_project("pushed", private=False)
    made.start({PATH: HELLO})["Hello"].wait()
    return made


def test_the_first_push_to_an_empty_repository_starts_its_workflow(new_project: NewProject, tmp_path: Path) -> None:
    project = new_project()
    clone = WorkTree(tmp_path).attempt("clone", project.owner.remote(project.name), "clone")
    assert "empty repository" in clone.stderr
    tree = WorkTree(tmp_path / "clone")
    tree.git("checkout", "-q", "-B", "main")
    sha = tree.commit({PATH: HELLO}, "Say hello")
    pushed = as_seen(tree.attempt("push", "-u", "origin", "main"))
    assert pushed.status == 0, pushed.stderr
    said = [re.fullmatch(r"Workflow Hello #1 started: (http://\S+/runs/(\d+)/)", line) for line in pushed.lines]
    assert len(said) == 1 and said[0], pushed.stderr
    run = Run(project, int(said[0][2])).wait()
    assert run.state()["sha"] == sha
    assert run.state()["title"] == "Say hello"
    assert "hello from refs/heads/main" in run.log("greet").splitlines()
    assert project.owner.pages.get(said[0][1]).status_code == 200


def test_a_push_with_the_password_works_as_with_a_token(project: Project) -> None:
    project.tree.commit({"password.txt": "1"})
    address = project.owner.remote(project.name, project.owner.password)
    pushed = as_seen(project.tree.attempt("push", address, "HEAD:main"))
    assert pushed.status == 0, pushed.stderr
    assert any(line.startswith("Workflow Hello #") for line in pushed.lines), pushed.stderr


def test_a_broken_workflow_is_told_with_file_line_and_column(new_project: NewProject) -> None:
    project = new_project()
    project.tree.commit({".github/workflows/broken.yml": NO_RUNS_ON, PATH: HELLO})
    pushed = project.push()
    assert pushed.status == 0, pushed.stderr
    assert any(line.startswith("Workflow .github/workflows/broken.yml cannot run: http") for line in pushed.lines)
    assert any(re.match(r"\.github/workflows/broken\.yml:6:5: .*runs-on", line) for line in pushed.lines), pushed.stderr
    assert any(line.startswith("Workflow Hello #1 started") for line in pushed.lines), (
        "the good one starts all the same"
    )
    (broken,) = project.runs(workflow="broken.yml")
    assert broken["conclusion"] == "startup_failure"
    assert broken["problems"][0]["line"] == 6


def test_yaml_that_cannot_be_read_is_told_too(new_project: NewProject) -> None:
    project = new_project()
    project.tree.commit({PATH: "on: push\njobs:\n\tgreet: {}\n", ".github/workflows/latin.yml": b"name: caf\xe9\n"})
    pushed = project.push()
    assert pushed.status == 0, pushed.stderr
    assert any(line.startswith(f"{PATH}:3:1: ") for line in pushed.lines), pushed.stderr
    assert any("latin.yml" in line and "UTF-8" in line for line in pushed.lines), pushed.stderr


def test_branches_and_tags_start_runs_with_their_ref(project: Project) -> None:
    project.tree.commit({"a.txt": "a"})
    project.tree.git("tag", "-a", "v1.0", "-m", "One")
    pushed = project.push("HEAD:refs/heads/feature/x", "v1.0")
    assert pushed.status == 0, pushed.stderr
    refs = [run["ref"] for run in project.runs()[: len(pushed.lines)]]
    assert sorted(refs) == ["refs/heads/feature/x", "refs/tags/v1.0"]


def test_a_deleted_branch_starts_nothing(project: Project) -> None:
    assert project.push("HEAD:refs/heads/short-lived").status == 0
    before = len(project.runs())
    pushed = project.push("--delete", "short-lived")
    assert pushed.status == 0, pushed.stderr
    assert pushed.lines == []
    assert len(project.runs()) == before
    assert "short-lived" not in project.tree.git("ls-remote", "--heads", "origin")


def test_a_forced_push_runs_the_new_history(project: Project) -> None:
    project.tree.git("checkout", "-q", "-b", "moved")
    project.tree.commit({"b.txt": "old"})
    assert project.push("moved").status == 0
    project.tree.git("reset", "-q", "--hard", "HEAD~1")
    sha = project.tree.commit({"b.txt": "new"}, "Another way")
    assert project.push("moved").status != 0
    pushed = project.push("--force", "moved")
    assert pushed.status == 0, pushed.stderr
    assert project.runs(branch="moved")[0]["sha"] == sha
    assert project.runs(branch="moved")[0]["title"] == "Another way"
    project.tree.git("checkout", "-q", "main")


def test_many_refs_in_one_push_each_start_their_run(project: Project) -> None:
    names = [f"refs/heads/many/{number}" for number in range(5)]
    pushed = project.push(*(f"HEAD:{name}" for name in names))
    assert pushed.status == 0, pushed.stderr
    assert len([line for line in pushed.lines if line.startswith("Workflow Hello #")]) == 5
    assert {run["ref"] for run in project.runs()[:5]} == set(names)


@pytest.mark.parametrize("message", ["Change [skip ci]", "Change\n\nskip-checks: true"])
def test_a_commit_can_ask_for_no_run(project: Project, message: str) -> None:
    before = len(project.runs())
    project.tree.commit({"skip.txt": message}, message)
    pushed = project.push()
    assert pushed.status == 0, pushed.stderr
    assert pushed.lines == []
    assert len(project.runs()) == before


def test_a_commit_without_a_workflow_is_just_pushed(new_project: NewProject) -> None:
    project = new_project()
    project.tree.commit({"README.md": "# Nothing"})
    pushed = project.push()
    assert pushed.status == 0, pushed.stderr
    assert pushed.lines == []
    assert project.runs() == []


def test_a_private_repository_is_not_there_for_strangers(
    new_project: NewProject, mallory: Person, product: Product, tmp_path: Path
) -> None:
    project = new_project()
    project.tree.commit({"secret.txt": "1"})
    assert project.push().status == 0
    stranger = WorkTree(tmp_path).attempt("ls-remote", mallory.remote(project.name))
    assert stranger.returncode != 0
    assert "not found" in stranger.stderr
    missing = WorkTree(tmp_path).attempt("ls-remote", mallory.remote("alice/there-is-none"))
    assert missing.stderr.replace("there-is-none", project.name.split("/")[1]) == stranger.stderr
    nobody = httpx.get(f"{product.url}/{project.name}.git/info/refs?service=git-upload-pack", timeout=30)
    assert nobody.status_code == 401
    wrong = WorkTree(tmp_path).attempt("ls-remote", mallory.remote(project.name, "frp_wrong"))
    assert "Authentication failed" in wrong.stderr


def test_a_stranger_cannot_push_to_a_public_repository(project: Project, mallory: Person, tmp_path: Path) -> None:
    clone = WorkTree(tmp_path)
    clone.git("clone", "-q", mallory.remote(project.name), "clone")
    tree = WorkTree(tmp_path / "clone")
    tree.commit({"x.txt": "x"})
    refused = tree.attempt("push", "origin", "HEAD:main")
    assert refused.returncode != 0
    assert project.tree.git("rev-parse", "HEAD") in project.tree.git("ls-remote", "origin", "refs/heads/main")


JOB_TOKEN = """
name: Token
on: push
jobs:
  clone:
    runs-on: ubuntu-latest
    steps:
      - shell: bash
        env:
          TOKEN: ${{ secrets.GITHUB_TOKEN }}
        run: |
          test "$TOKEN" = '${{ github.token }}'
          (umask 077; printf %s "$TOKEN" > '${{ vars.DROP }}')
          git clone "http://x-access-token:$TOKEN@${GITHUB_SERVER_URL#http://}/$GITHUB_REPOSITORY" here
          test "$(git -C here rev-parse HEAD)" = "$GITHUB_SHA"
          echo "seen: $TOKEN"
"""


def test_the_jobs_token_clones_its_private_repository_and_dies_with_the_job(
    new_project: NewProject, product: Product, tmp_path: Path
) -> None:
    project = new_project()
    dropped = tmp_path / "token"
    project.owner.call("PUT", f"{project.api}/variables/DROP", {"value": str(dropped)})
    run = project.start({".github/workflows/token.yml": JOB_TOKEN})["Token"].wait()
    token = dropped.read_text()
    assert token.startswith("frj_")
    assert "seen: ***" in run.log("clone")
    assert token.encode() not in run.raw_log("clone")
    late = WorkTree(tmp_path).attempt(
        "ls-remote", f"http://x-access-token:{token}@127.0.0.1:{product.port}/{project.name}"
    )
    assert late.returncode != 0
    assert "Authentication failed" in late.stderr
