"""manage.py workflow check and plan: no database, no push."""

import json
import textwrap
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

GOOD = """
    name: CI
    on:
      push: {branches: [main]}
      workflow_dispatch: {inputs: {level: {type: choice, options: [low, high], default: low}}}
    jobs:
      build:
        name: Build on ${{ matrix.os }}
        strategy: {matrix: {os: [linux, macos]}}
        runs-on: ${{ matrix.os }}
        outputs: {list: x}
        steps: [{run: echo}]
      each:
        needs: build
        strategy: {matrix: {item: "${{ fromJSON(needs.build.outputs.list) }}"}}
        runs-on: linux
        steps: [{run: echo}]
      deep:
        if: inputs.level == 'high'
        runs-on: linux
        steps: [{run: echo}]
      call: {uses: ./.github/workflows/called.yml}
"""
CALLED = "on: workflow_call\njobs: {inner: {runs-on: linux, steps: [{run: echo}]}}"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / ".github" / "workflows"
    folder.mkdir(parents=True)
    (folder / "ci.yml").write_text(textwrap.dedent(GOOD))
    (folder / "called.yml").write_text(CALLED)
    return folder


def run(*words: Any) -> str:
    out = StringIO()
    call_command("workflow", *map(str, words), stdout=out)
    return out.getvalue()


def test_check_accepts_a_good_file(project: Path) -> None:
    assert run("check", project / "ci.yml") == "1 file checked, no problem found.\n"


def test_check_names_every_problem_with_its_place(project: Path) -> None:
    bad = project / "bad.yml"
    bad.write_text("on: push\njobs:\n  a:\n    bogus: 1\n")
    out = StringIO()
    with pytest.raises(CommandError) as failed:
        call_command("workflow", "check", str(bad), stdout=out)
    assert failed.value.returncode == 1
    assert ".github/workflows/bad.yml:4:5: Unexpected value 'bogus'" in out.getvalue()
    assert "runs-on" in out.getvalue()


def test_check_speaks_json(project: Path) -> None:
    bad = project / "bad.yml"
    bad.write_text("on: push\n")
    out = StringIO()
    with pytest.raises(CommandError):
        call_command("workflow", "check", str(bad), "--json", stdout=out)
    (problem,) = json.loads(out.getvalue())
    assert (problem["line"], problem["column"], problem["level"]) == (1, 1, "problem")


NOTED = """
    on: {push: , issues: {types: [opened]}}
    jobs:
      build:
        runs-on: linux
        container: node:20
        steps: [{run: npm test}]
"""


def test_check_says_what_not_every_runner_or_no_event_here_does(project: Path) -> None:
    (project / "noted.yml").write_text(textwrap.dedent(NOTED))
    docker = "The bundled runner cannot start containers: this job needs a runner that has Docker"
    issues = "This server does not fire issues yet: it does not start the workflow"
    assert run("check", project / "noted.yml").splitlines() == [
        f".github/workflows/noted.yml:2:14: notice: {issues}",
        f".github/workflows/noted.yml:6:5: notice: {docker}",
        "1 file checked, no problem found.",
    ]
    found = json.loads(run("check", project / "noted.yml", "--json"))
    path = ".github/workflows/noted.yml"
    assert found == [
        {"path": path, "line": 2, "column": 14, "message": issues, "level": "notice"},
        {"path": path, "line": 6, "column": 5, "message": docker, "level": "notice"},
    ]


@pytest.mark.parametrize(("on", "column"), [("issues", 5), ("[push, issues]", 12)])
def test_check_finds_an_event_that_is_never_fired_in_every_form_of_on(project: Path, on: str, column: int) -> None:
    (project / "noted.yml").write_text(f"on: {on}\njobs: {{a: {{runs-on: x, steps: [{{run: a}}]}}}}\n")
    (notice,) = json.loads(run("check", project / "noted.yml", "--json"))
    assert (notice["line"], notice["column"]) == (1, column)


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="cannot be read"):
        run("check", tmp_path / "no.yml")


def test_plan_shows_the_jobs_a_push_would_start(project: Path) -> None:
    shown = json.loads(run("plan", project / "ci.yml", "--json"))
    assert shown["triggered"] is True
    rows = [(job["name"], job["outcome"], job["labels"]) for job in shown["jobs"]]
    assert rows == [
        ("Build on linux", "runs", ["linux"]),
        ("Build on macos", "runs", ["macos"]),
        ("deep", "skipped", []),
        ("call", "runs", []),
        ("call / inner", "runs", ["linux"]),
        ("each", "later", []),
    ]


def test_plan_says_when_the_event_would_not_start_it(project: Path) -> None:
    shown = run("plan", project / "ci.yml", "--ref", "feature")
    assert shown.startswith("push on feature does not start CI.\nIf it did:\n")


def test_plan_takes_inputs(project: Path) -> None:
    words = ("plan", project / "ci.yml", "--event", "workflow_dispatch", "--json", "--inputs", "level=high")
    outcomes = {job["name"]: job["outcome"] for job in json.loads(run(*words))["jobs"]}
    assert outcomes["deep"] == "runs"


REUSABLE = """
    on:
      workflow_call:
        inputs:
          level: {type: string, required: true}
          legs: {type: number, default: 2}
          where: {type: string, default: "${{ github.ref_name }}"}
          deep: {type: boolean}
    run-name: ${{ inputs.level }} at ${{ inputs.where }}
    jobs:
      a:
        strategy: {matrix: {leg: "${{ fromJSON(inputs.legs == 2 && '[1, 2]' || '[1]') }}"}}
        runs-on: ${{ inputs.level }}
        steps: [{run: echo}]
      b: {if: inputs.deep, runs-on: linux, steps: [{run: echo}]}
"""


def test_plan_takes_the_inputs_of_a_reusable_workflow(project: Path) -> None:
    (project / "reusable.yml").write_text(textwrap.dedent(REUSABLE))
    words = ("plan", project / "reusable.yml", "--event", "workflow_call", "--json", "--inputs", "LEVEL=high")
    shown = json.loads(run(*words, "deep=true"))
    assert (shown["triggered"], shown["run_name"]) == (True, "high at main")
    rows = [(job["name"], job["outcome"], job["labels"]) for job in shown["jobs"]]
    assert rows == [("a (1)", "runs", ["high"]), ("a (2)", "runs", ["high"]), ("b", "runs", ["linux"])]
    shorter = json.loads(run(*words, "legs=1"))
    assert [(job["name"], job["outcome"]) for job in shorter["jobs"]] == [("a (1)", "runs"), ("b", "skipped")]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "level: A value is required"),
        (["--inputs", "level=x", "legs=two"], "legs: Write a number"),
        (["--inputs", "level=x", "deep=maybe"], "deep: Write true or false"),
        (["--inputs", "level=x", "more=1"], "more: Unexpected input"),
    ],
)
def test_inputs_of_a_reusable_workflow_that_do_not_fit_are_said(project: Path, words: list[str], message: str) -> None:
    (project / "reusable.yml").write_text(textwrap.dedent(REUSABLE))
    with pytest.raises(CommandError, match=message):
        run("plan", project / "reusable.yml", "--event", "workflow_call", *words)


def test_plan_takes_the_branches_and_the_repository_from_the_payload(project: Path) -> None:
    (project / "pr.yml").write_text(
        "on: {pull_request: {branches: [main]}}\nrun-name: ${{ github.head_ref }} to ${{ github.base_ref }}\n"
        "jobs: {a: {if: github.repository == 'mona/tools', runs-on: linux, steps: [{run: echo}]}}"
    )
    body = {"action": "opened", "pull_request": {"base": {"ref": "main"}, "head": {"ref": "topic"}}}
    (project / "payload.json").write_text(json.dumps(body | {"repository": {"full_name": "mona/tools"}}))
    words = ("plan", project / "pr.yml", "--event", "pull_request", "--payload", project / "payload.json", "--json")
    shown = json.loads(run(*words))
    assert (shown["triggered"], shown["run_name"]) == (True, "topic to main")
    assert [job["outcome"] for job in shown["jobs"]] == ["runs"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--event", "pusch"], "There is no event pusch. Use one of: .*push"),
        (["--event", "workflow_dispatch", "--inputs", "level=huge"], "level"),
        (["--event", "workflow_dispatch", "--inputs", "level"], "NAME=VALUE"),
        (["--inputs", "level=low"], "--inputs belongs to --event workflow_dispatch or workflow_call; push has none"),
        (["--event", "workflow_call", "--inputs", "level=low"], "has no workflow_call under 'on:'"),
        (["--payload", "/nowhere.json"], "cannot be read"),
    ],
)
def test_what_does_not_fit_is_said(project: Path, words: list[str], message: str) -> None:
    with pytest.raises(CommandError, match=message):
        run("plan", project / "ci.yml", *words)
