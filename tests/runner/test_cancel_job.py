"""What happens to a running job when it is cancelled, lost or the runner is told to stop?"""

from __future__ import annotations

import shutil
import signal
import time
from pathlib import Path

import pytest

from ci.runner.worker import POLL_SECONDS
from tests.runner.conftest import Runners
from tests.runner.fake_server import FakeJob, FakeServer
from tests.runner.test_use_action import local

# A child of the step's own group, one in a group of its own, and one in a session of its own, orphaned.
TREE = """
sleep 301 & echo $! >> "$PIDS"
setsid sleep 302 & echo $! >> "$PIDS"
bash -c 'setsid bash -c "trap : INT TERM; echo \\$\\$ >> $PIDS; while :; do sleep 303; done" & disown' &
while [ $(wc -l < "$PIDS") -lt 3 ]; do sleep 0.05; done
echo tree-is-up
wait; sleep 300
"""


def pids(file: Path) -> list[int]:
    return [int(line) for line in file.read_text().split()]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def up(job: FakeJob, text: str = "tree-is-up") -> bool:
    return any(line == text for _, line in job.log)


def test_cancel_ends_the_whole_process_tree_and_still_runs_always_steps(server: FakeServer, runners: Runners) -> None:
    file = runners.folder / "pids"
    file.touch()
    job = server.add(
        [
            {"name": "tree", "run": TREE, "env": {"PIDS": str(file)}},
            {"name": "plain", "run": "echo never"},
            {"name": "always", "if": "always()", "run": "echo status=${{ job.status }}"},
            {"name": "cancelled", "if": "cancelled()", "run": "echo cleaned"},
            {"name": "failure", "if": "failure()", "run": "echo wrong"},
        ],
        grace=3600,
    )
    process = runners.start()
    server.wait(lambda: up(job))
    server.cancel(job)
    assert process.wait(90) == 0  # the steps would go on for minutes, the grace for an hour
    assert job.conclusion == "cancelled"
    assert job.conclusions() == {
        "Set up job": "success", "tree": "cancelled", "plain": "skipped", "always": "success",
        "cancelled": "success", "failure": "skipped", "Complete job": "success",
    }  # fmt: skip
    assert "status=cancelled" in job.text and "##[error]The operation was canceled." in job.lines_of("tree")
    assert len(pids(file)) == 3 and not [pid for pid in pids(file) if alive(pid)]


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed: JavaScript actions cannot run")
@pytest.mark.parametrize("reason", ["owner", "time_budget"])
def test_post_steps_run_within_the_grace(server: FakeServer, runners: Runners, reason: str) -> None:
    again = "setInterval(() => {}, 1000); console.log('tree-is-up');"
    files = {
        "act/action.yml": "name: act\nruns: {using: node20, main: main.js, post: post.js}\n",
        "act/main.js": again,
        "act/post.js": "console.log('gave it back');",
    }
    job = server.add([local(files), {"name": "act", "uses": "./act"}, {"name": "plain", "run": "echo never"}])
    process = runners.start()
    server.wait(lambda: up(job))
    server.cancel(job, reason)
    assert process.wait(60) == 0
    assert job.conclusion == "cancelled" and "gave it back" in job.lines_of("Post act")
    assert (job.conclusions()["act"], job.conclusions()["plain"]) == ("cancelled", "skipped")
    assert job.conclusions()["Post act"] == "success"


def test_a_step_may_use_the_interrupt_to_clean_up(server: FakeServer, runners: Runners) -> None:
    job = server.add(
        [
            {
                "name": "trap",
                "shell": "bash",
                "run": "trap 'echo got-int; exit 1' INT\necho tree-is-up\nwhile :; do sleep 0.1; done",
            }
        ]
    )
    process = runners.start()
    server.wait(lambda: up(job))
    server.cancel(job, "superseded")
    assert process.wait(60) == 0
    assert "got-int" in job.lines_of("trap")
    assert job.conclusions()["trap"] == "cancelled"


def test_a_running_always_step_is_not_interrupted_by_the_cancel(server: FakeServer, runners: Runners) -> None:
    job = server.add([{"name": "keep", "if": "always()", "run": "echo tree-is-up; sleep 2; echo finished"}], grace=3600)
    process = runners.start()
    server.wait(lambda: up(job))
    server.cancel(job)
    assert process.wait(60) == 0
    assert "finished" in job.lines_of("keep") and job.conclusions()["keep"] == "success"
    assert job.conclusion == "cancelled"


def test_the_grace_of_a_cancel_is_not_exceeded(server: FakeServer, runners: Runners) -> None:
    job = server.add(
        [
            {"name": "stubborn", "run": "trap : INT TERM; echo tree-is-up; while :; do sleep 0.2; done"},
            {"name": "endless", "if": "always()", "run": "trap : INT TERM; while :; do sleep 0.2; done"},
        ],
        grace=4,
    )
    process = runners.start()
    server.wait(lambda: up(job))
    server.cancel(job, "time_budget")
    assert process.wait(60) == 0  # nothing but the end of the grace ends the second step
    assert job.conclusion == "cancelled" and job.completions == 1
    assert job.conclusions()["endless"] == "cancelled"


def test_a_job_the_server_ended_is_killed_and_nothing_more_is_said(server: FakeServer, runners: Runners) -> None:
    file = runners.folder / "pids"
    job = server.add(
        [{"name": "x", "run": f"echo $$ > {file}; echo tree-is-up; sleep 300"}, {"if": "always()", "run": "true"}]
    )
    process = runners.start()
    server.wait(lambda: up(job))
    server.end(job)
    assert process.wait(60) == 0
    assert job.completions == 0 and not alive(pids(file)[0])


def test_sigterm_lets_the_job_end_and_then_stops(server: FakeServer, runners: Runners) -> None:
    job = server.add([{"run": "echo tree-is-up; sleep 1.5; echo whole"}])
    other = server.add([{"run": "echo next"}])
    process = runners.start("run")
    server.wait(lambda: up(job))
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0
    assert job.conclusion == "success" and "whole" in job.text
    assert other.state == "queued"


def test_a_second_signal_kills_the_job_and_reports_it_cancelled(server: FakeServer, runners: Runners) -> None:
    file = runners.folder / "pids"
    job = server.add([{"run": f"trap : INT TERM; echo $$ > {file}; echo tree-is-up; while :; do sleep 0.2; done"}])
    process = runners.start("run")
    server.wait(lambda: up(job))
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGINT) if _logged(runners, "will stop after") else None
    assert process.wait(60) == 0
    assert job.conclusion == "cancelled" and not alive(pids(file)[0])


def _logged(runners: Runners, text: str) -> bool:
    deadline = time.monotonic() + 60
    while text not in runners.log:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return True


def test_an_idle_runner_stops_at_once(server: FakeServer, runners: Runners) -> None:
    process = runners.start("run")
    server.wait(lambda: server.polls)
    process.send_signal(signal.SIGTERM)
    assert process.wait(POLL_SECONDS - 10) == 0  # before its poll would have been answered


def test_background_processes_are_gone_when_the_job_is(server: FakeServer, runners: Runners) -> None:
    file = runners.folder / "pids"
    job = server.add(
        [
            {"run": f"setsid sleep 400 & echo $! > {file}"},
            {"name": "still", "run": f"kill -0 $(cat {file}) && echo lives-between-steps"},
        ]
    )
    runners.run(job)
    assert "lives-between-steps" in job.lines_of("still")
    assert not alive(pids(file)[0])
    assert "Terminate orphan process" in job.text


def test_a_cancel_inside_a_composite_action_still_runs_its_always_steps(server: FakeServer, runners: Runners) -> None:
    action = (
        "runs:\n  using: composite\n  steps:\n    - {run: 'echo tree-is-up; sleep 300', shell: bash}\n"
        "    - {run: echo not-this, shell: bash}\n    - {if: always(), run: echo inner-clean-up, shell: bash}\n"
    )
    job = server.add(
        [
            {"run": f"mkdir act; printf '%s' \"{action}\" > act/action.yml"},
            {"name": "act", "uses": "./act"},
            {"name": "next", "run": "true"},
        ]
    )
    process = runners.start()
    server.wait(lambda: up(job))
    server.cancel(job)
    assert process.wait(60) == 0
    assert "inner-clean-up" in job.lines_of("act") and "not-this" not in job.lines_of("act")
    assert (job.conclusions()["act"], job.conclusions()["next"]) == ("cancelled", "skipped")
    assert job.conclusion == "cancelled"


def test_what_a_killed_runner_left_behind_is_ended_by_the_next(server: FakeServer, runners: Runners) -> None:
    file = runners.folder / "pids"
    job = server.add([{"run": f"echo $$ > {file}; trap : INT TERM; echo tree-is-up; while :; do sleep 0.2; done"}])
    process = runners.start()
    server.wait(lambda: up(job))
    process.kill()
    process.wait()
    assert alive(pids(file)[0])
    server.end(job)
    runners.run(server.add([{"run": "true"}]))
    assert not alive(pids(file)[0])
    assert not list(runners.work.glob(".spool-*"))


def test_a_job_cancelled_before_it_began_runs_nothing(server: FakeServer, runners: Runners) -> None:
    job = server.add([{"name": "x", "if": "always()", "run": "echo ran-anyway"}])
    server.cancel(job)
    runners.run(job)
    assert job.conclusion == "cancelled" and "ran-anyway" not in job.lines_of("Set up job")
    assert job.conclusions()["x"] == "skipped"


def test_a_work_folder_that_cannot_be_used_fails_the_job_with_a_reason(server: FakeServer, runners: Runners) -> None:
    runners.work.mkdir()
    job = server.add([{"run": "true"}])
    # A folder where the lines would wait: works for root too, whom no permission stops.
    (runners.work / ".job").mkdir()
    runners.run(job)
    assert job.conclusion == "failure"
    assert "cannot be used" in job.step("Set up job")["annotations"][0]["message"]
