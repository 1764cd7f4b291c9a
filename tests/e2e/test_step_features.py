"""Do workflows mean on this product, through its own runners, what they mean on GitHub?

The workflows in features/ check themselves by their exit codes; the tests look at what only the API tells.
"""

from __future__ import annotations

import base64
import os
import shutil
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import pytest

from tests.e2e.conftest import NewProject
from tests.e2e.product import command_of, eventually
from tests.e2e.projects import Project, Run

HERE = Path(__file__).parent
WORD = "sesame-open-42+/="
KEY = "-----BEGIN KEY-----\nabcdefghij0123456789\nklmnopqrst9876543210\n-----END KEY-----\n"
NEVER = "this line must not run"


@pytest.fixture(scope="module")
def project(new_project: NewProject) -> Project:
    """A repository with all of features/, and the other repositories that its workflows use."""
    part, library = new_project("part"), new_project("library")
    actions = new_project("actions", private=False)  # a job's token opens no other private repository
    commit = part.tree.commit({"part.txt": "part\n"})
    library.tree.commit(
        {"library.txt": "library\n", ".gitmodules": '[submodule "part"]\n\tpath = part\n\turl = ../part.git\n'}
    )
    library.tree.git("update-index", "--add", "--cacheinfo", f"160000,{commit},part")
    library.tree.git("commit", "-q", "-m", "Add the part")
    actions.tree.commit(files_of("actions"))
    actions.tree.git("tag", "v1")
    for other in (part, library):
        assert other.push().status == 0
    assert actions.push("HEAD", "v1").status == 0
    made = new_project("features")
    api = made.api
    for name, value in (("WORD", WORD), ("PRIVATE_KEY", KEY), ("READ_TOKEN", made.owner.token)):
        made.owner.call("PUT", f"{api}/secrets/{name}", {"value": value})
    made.owner.call("PUT", f"{api}/variables/GREETING", {"value": "hello from a variable"})
    made.tree.commit({"old.txt": "old"})
    made.tree.git("tag", "v0.1")
    assert made.push("HEAD", "v0.1").status == 0
    return made


@pytest.fixture(scope="module")
def runs(project: Project) -> dict[str, Run]:
    """All workflows of features/, started by one push."""
    counter = {f"counter/{name}": text for name, text in files_of("actions/counter").items()}
    return project.start({"new.txt": "new", **files_of("features"), **counter}, message="All features")


def files_of(folder: str) -> dict[str, str]:
    root = HERE / folder
    return {str(file.relative_to(root)): file.read_text() for file in root.rglob("*") if file.is_file()}


def test_shells_folders_and_env_layers(runs: dict[str, Run]) -> None:
    run = runs["Shells"].wait()
    assert "python says workflow" in run.log("run").splitlines()
    assert f"\n{NEVER}\n" not in run.log("run")
    assert run.steps("run")["the first failing line ends a script"] == "success"


def test_conditions_failures_and_timeouts(runs: dict[str, Run]) -> None:
    run = runs["Flow"].wait("failure")
    assert run.steps("broken") == {
        "Set up job": "success",
        "skipped by its if": "skipped",
        "runs by its if": "success",
        "tolerated": "success",
        "fails": "failure",
        "skipped after a failure": "skipped",
        "on failure": "success",
        "on cancel only": "skipped",
        "always": "success",
        "Complete job": "success",
    }
    assert "##[error]Process completed with exit code 4." in run.log("broken").splitlines()
    assert run.steps("step-timeout")["too slow"] == "failure"
    assert run.steps("step-timeout")["always"] == "success"
    log = run.log("step-timeout")
    assert "has timed out after 0.1 minutes" in log
    sleeper = next(line for line in log.splitlines() if line.startswith("sleeper "))
    assert "sleep 300" not in command_of(int(sleeper.split()[1]))
    timed_out = run.jobs()["job-timeout"]
    assert (timed_out["conclusion"], timed_out["cancel_reason"]) == ("cancelled", "time_budget")
    assert run.steps("job-timeout") | {"Complete job": None} == {
        "Set up job": "success",
        "too slow": "cancelled",
        "skipped": "skipped",
        "always": "success",
        "Complete job": None,
    }
    assert run.jobs()["tolerated"]["conclusion"] == "failure"


def test_files_hand_values_to_later_steps_and_jobs(runs: dict[str, Run]) -> None:
    run = runs["Files"].wait()
    outputs = run.jobs()["write"]["outputs"]
    assert outputs == {"plain": "out", "lines": "first\nsecond"}
    assert "Skip output 'hidden'" in run.log("write")
    assert run.steps("write")["a broken line fails the step"] == "success"
    page = run.project.owner.pages.get(run.path).text
    assert "<h2>Result</h2>" in page or ">Result</h" in page
    assert "<td>2</td>" in page
    assert "<script>alert(1)" not in page


def test_commands_annotate_group_mask_and_stop(runs: dict[str, Run]) -> None:
    run = runs["Commands"].wait()
    lines = run.log("say").splitlines()
    start = lines.index("##[group]A title")
    assert lines[start : start + 3] == ["##[group]A title", "inside", "##[endgroup]"]
    assert "##[notice]By the way" in lines
    assert "now *** is masked" in lines and "again ***" in lines
    assert "::error::this is plain text" in lines and "::unknown::stays" in lines
    assert not any("only for debugging" in line and "echo" not in line for line in lines)
    (step,) = [step for step in run.job("say")["steps"] if step["name"] == "say"]
    assert step["annotations"] == [
        {
            "level": "error",
            "message": "It is\nwrong",
            "title": "Wrong: here",
            "path": "src/a.py",
            "line": 3,
            "end_line": 4,
            "column": 5,
            "end_column": 6,
        },
        {"level": "warning", "message": "Careful", "path": "src/b.py", "line": 7},
        {"level": "notice", "message": "By the way"},
    ]


def test_secrets_never_reach_the_log(runs: dict[str, Run]) -> None:
    run = runs["Secrets"].wait()
    raw = run.raw_log("tell")
    assert b"the word is *** and ***" in raw
    assert b"piece *** end" in raw
    told = repr(run.job("tell")) + run.project.owner.pages.get(run.path).text
    parts = [WORD, *(line for line in KEY.splitlines()), base64.b64encode(WORD.encode()).decode()]
    for part in parts:
        assert part.encode() not in raw, part
        assert part not in told, part
    assert WORD[:8].encode() not in raw
    assert KEY.splitlines()[1][:10].encode() not in raw
    assert "annotated ***" in run.steps("tell")


def test_contexts_of_a_push(runs: dict[str, Run]) -> None:
    run = runs["Contexts"].wait()
    assert run.state()["title"] == "Contexts of main by @alice"
    name = "all ubuntu-latest-7"
    assert run.jobs()[name]["conclusion"] == "success"
    raw = run.raw_log(name)
    assert b"GITHUB_CONTEXT: {" in raw, "the step shows its env"
    for secret in (WORD, KEY.splitlines()[1], run.project.owner.token):
        assert secret.encode() not in raw


def test_contexts_of_a_dispatch(runs: dict[str, Run], project: Project) -> None:
    run = project.dispatch("contexts.yml", word="bye", flag=True, count=2.5, pick="b").wait()
    assert run.state()["event"] == "workflow_dispatch"


def test_a_matrix_runs_its_legs_within_its_limits(runs: dict[str, Run]) -> None:
    run = runs["Matrix"].wait("failure")
    jobs = run.jobs()
    legs = [jobs[name] for name in ("legs (a, 1)", "legs (a, 2)", "legs (b, 1)", "legs (c, 9)")]
    assert {leg["conclusion"] for leg in legs} == {"success"}
    spans = sorted((moment(leg["started_at"]), moment(leg["ended_at"])) for leg in legs)
    assert all(before[1] <= after[0] for before, after in pairwise(spans)), spans
    fast = {name: job for name, job in jobs.items() if name.startswith("fast")}
    assert {name: job["conclusion"] for name, job in fast.items()} == {
        "fast 0": "failure",
        "fast 300": "cancelled",
        "fast 301": "cancelled",
    }
    assert fast["fast 300"]["cancel_reason"] == "fail_fast"
    assert fast["fast 301"]["started_at"] is None, "only two at once"
    assert jobs["after"]["conclusion"] == "success"
    assert jobs["never"]["conclusion"] == "skipped"


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def test_composite_actions_local_and_from_another_repository(runs: dict[str, Run]) -> None:
    run = runs["Actions"].wait("failure")
    assert run.jobs()["use"]["conclusion"] == "success", run.story()
    assert run.jobs()["missing"]["conclusion"] == "failure"
    assert "Unable to resolve action `alice/no-such-action@v1`" in run.log("missing")


@pytest.mark.skipif(shutil.which("node") is None, reason="JavaScript actions need node, which is not installed here")
def test_javascript_actions_with_pre_and_post(runs: dict[str, Run]) -> None:
    run = runs["JavaScript"].wait("failure")
    told = [line.removeprefix("counter: ") for line in run.log("use").splitlines() if line.startswith("counter: ")]
    assert told == [
        "pre of far one",
        "main of local one",
        "main of far one after pre",
        "post of local one after main",
        "post of far one after pre,main",  # last: its pre stage made it the first to be registered
    ], run.story()
    steps = run.steps("use")
    assert steps["Pre elsewhere"] == steps["Post elsewhere"] == steps["Post local"] == "success"


def test_checkout_with_its_inputs(runs: dict[str, Run]) -> None:
    run = runs["Checkout"].wait()
    assert run.project.owner.token.encode() not in run.raw_log("inputs")


def test_noise_in_a_log_stays_readable(runs: dict[str, Run]) -> None:
    run = runs["Noise"].wait()
    lines = run.raw_log("shout").decode().split("\n")  # UTF-8, or this fails
    long = [line for line in lines if line.startswith("a" * 1000)]
    assert len(long) == 1 and len(long[0].encode()) <= 65536 + 100 and "[…]" in long[0]
    for expected in (
        "nul:�:end",
        "ansi:\x1b[31mred\x1b[0m\x1b[999;999H\x1b]0;title\x07\x1b[?25l\x1b[38;5;999m:end",
        "html:<script>alert('x')</script>&amp;\x1b[1m<b>:end",
        "no newline at the end",
        "after the noise",
    ):
        assert expected in lines, expected
    assert any(line.startswith("invalid:�") and line.endswith("(:end") for line in lines)
    assert any(line.startswith("surrogate:�") for line in lines)
    job = run.jobs()["shout"]
    page = run.project.owner.pages.get(f"{run.path}jobs/{job['id']}/")
    assert page.status_code == 200
    assert "<script>alert(" not in page.text and "&lt;script&gt;alert(" in page.text


def test_a_container_job_says_clearly_that_it_cannot_run(runs: dict[str, Run]) -> None:
    run = runs["Container"].wait("failure")
    log = run.log("boxed")
    assert "##[error]This job needs a container ('alpine:3')" in log
    assert NEVER not in log
    assert run.steps("boxed")["Set up job"] == "failure"


def test_every_job_finds_a_clean_workspace(runs: dict[str, Run]) -> None:
    run = runs["Clean"].wait()
    runners = {job["runner_name"] for job in run.jobs().values()}
    assert len(runners) < len(run.jobs()), "no runner had two of the jobs"


def test_a_cancelled_job_cleans_up_and_loses_its_processes(runs: dict[str, Run], tmp_path: Path) -> None:
    project = runs["Clean"].project
    pids_file = tmp_path / "pids"
    run = project.dispatch("cancel.yml", pids=str(pids_file))
    run.wait_for_line("stubborn", "\nready to be cancelled")
    pids = [int(line) for line in pids_file.read_text().split()]
    assert len(pids) == 4 and all(command_of(pid) for pid in pids), run.story()
    run.cancel()
    run.wait("cancelled")
    assert run.jobs()["stubborn"]["end_note"] == "Cancelled by alice."
    assert run.jobs()["waiting"]["conclusion"] == "cancelled"
    steps = run.steps("stubborn")
    assert steps["holds on"] == "cancelled" and steps["skipped"] == "skipped"
    assert steps["when cancelled"] == steps["always"] == "success"
    lines = run.log("stubborn").splitlines()
    assert {"asked to end", "cleaned up", "always runs"} <= set(lines)
    assert "##[error]The operation was canceled." in lines
    eventually(
        lambda: not any(os.path.exists(f"/proc/{pid}") and command_of(pid) for pid in pids),
        seconds=60,
        what="all processes of the cancelled job are gone",
        otherwise=lambda: str({pid: command_of(pid) for pid in pids}),
    )
