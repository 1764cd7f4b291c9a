"""Does anything get lost or doubled when the server or the network fails?"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from ci.runner.spool import Spool, SpoolFull
from tests.runner.conftest import Runners
from tests.runner.fake_server import FakeJob, FakeServer


def numbers(job: FakeJob) -> list[int]:
    return [int(line.split()[1]) for _, line in job.log if line.startswith("line ")]


def test_a_lost_answer_to_a_poll_is_asked_for_again_with_the_same_poll_id(server: FakeServer, runners: Runners) -> None:
    job = server.add([{"run": "true"}])
    server.faults += [("jobs/fetch", 503), ("jobs/fetch", None)]
    runners.run(job)
    assert job.conclusion == "success"
    assert len(server.polls) == 2 and len(set(server.polls)) == 1


def test_lost_answers_and_errors_of_every_job_call_change_nothing(server: FakeServer, runners: Runners) -> None:
    job = server.add(
        [{"run": "for i in $(seq 1 3000); do echo line $i; [ $((i % 500)) = 0 ] && sleep 0.4; done; true"}]
    )
    for call in ("heartbeat", "log", "log", "steps", "complete"):
        server.faults += [(f"{job.id}/{call}", None), (f"{job.id}/{call}", 502), (f"{job.id}/{call}", 429)]
    runners.run(job)
    assert numbers(job) == list(range(1, 3001))
    assert job.conclusion == "success" and job.completions == 2
    assert server.faults == []


def test_a_restart_of_the_server_in_the_middle_of_a_job_loses_no_line(server: FakeServer, runners: Runners) -> None:
    job = server.add([{"run": "for i in $(seq 1 400); do echo line $i; sleep 0.01; done"}])
    process = runners.start()
    server.wait(lambda: len(numbers(job)) > 10)
    server.stop()
    time.sleep(1.5)
    server.start()
    assert process.wait(60) == 0
    assert numbers(job) == list(range(1, 401))
    assert job.conclusion == "success"


def test_lines_arrive_within_a_second_while_the_step_still_runs(server: FakeServer, runners: Runners) -> None:
    """One of them does, that is: while the machine is busy others may take longer."""
    gate = runners.folder / "gate"
    job = server.add([{"run": f"while [ ! -e {gate} ]; do date +%s.%N; sleep 0.2; done"}])

    def newest_is_fresh() -> bool:
        printed = [float(line) for _, line in job.log if line[:9].isdigit()]
        return bool(printed) and time.time() - printed[-1] < 1.0

    process = runners.start()
    server.wait(newest_is_fresh)
    server.wait(lambda: [s["number"] for s in job.steps.values() if s["state"] == "running"] == [2])
    gate.touch()
    assert process.wait(60) == 0


def test_the_log_limit_stops_the_log_and_the_job(server: FakeServer, runners: Runners) -> None:
    job = server.add([{"run": "while :; do echo spam; done"}, {"if": "always()", "run": "true"}])
    job.log_limit = 5000
    runners.run(job)
    assert len(job.log) == 5000 and job.conclusion == "cancelled"


def test_a_hole_in_the_servers_log_is_filled_so_that_steps_keep_their_lines(
    server: FakeServer, runners: Runners
) -> None:
    gate = runners.folder / "gate"
    job = server.add([{"run": f"echo line 1; while [ ! -e {gate} ]; do sleep 0.05; done; echo line 2"}])
    process = runners.start()
    server.wait(lambda: numbers(job) == [1])
    with server.changed:
        before = len(job.log)
        del job.log[-2:]
    gate.touch()
    assert process.wait(60) == 0
    assert [line for _, line in job.log].index("line 2") == before
    assert "The forge lost a line" in job.log[before - 1][1]


def test_a_runner_the_server_does_not_know_says_so_and_fails(server: FakeServer, runners: Runners) -> None:
    runners.enroll(token="frr_old")
    process = runners.start("run")
    assert process.wait(60) == 1
    assert "does not know this runner" in runners.log


def test_an_ephemeral_runner_ends_after_its_one_job(server: FakeServer, runners: Runners) -> None:
    runners.register("--ephemeral")
    job, other = server.add([{"run": "true"}]), server.add([{"run": "true"}])
    process = runners.start("run")
    assert process.wait(60) == 0
    assert job.conclusion == "success" and other.state == "queued"


def test_the_first_heartbeat_comes_before_any_work(server: FakeServer, runners: Runners) -> None:
    job = runners.run(server.add([{"run": "true"}]))
    calls = [path for _, path in server.calls if path.startswith("jobs/")]
    assert calls[:2] == ["jobs/fetch", f"jobs/{job.id}/heartbeat"]


def test_a_job_lost_before_its_acknowledgement_is_dropped(server: FakeServer, runners: Runners) -> None:
    job = server.add([{"run": f"touch {runners.folder}/ran"}])
    server.faults.append((f"{job.id}/heartbeat", 401))
    process = runners.start()
    assert process.wait(60) == 0
    assert not (runners.folder / "ran").exists() and job.completions == 0


def test_no_program_runs_before_the_forge_knows_that_a_step_has_begun(
    server: FakeServer, runners: Runners, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A runner that is lost before that has its job run elsewhere: nothing of it may have happened here."""
    ran = runners.folder / "ran"
    job = server.add([{"if": "false", "run": "exit 1"}, {"run": f"touch {ran}"}])
    take, ran_before = server._steps, []

    def take_slowly(found: FakeJob, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        begun = any(step["number"] > 1 and step["state"] != "pending" for step in body["steps"])
        if begun and not ran_before:
            time.sleep(1.0)  # time enough for a program that does not wait
            ran_before.append(ran.exists())
        return take(found, body)

    monkeypatch.setattr(server, "_steps", take_slowly)
    runners.run(job)
    assert ran_before == [False] and ran.exists()


def test_a_job_taken_away_before_the_forge_knew_of_a_step_runs_no_program(server: FakeServer, runners: Runners) -> None:
    ran = runners.folder / "ran"
    job = server.add([{"run": f"touch {ran}"}])
    server.faults += [(f"{job.id}/steps", 503)] * 3 + [(f"{job.id}/steps", 401)]
    process = runners.start()
    assert process.wait(60) == 0
    assert not ran.exists() and job.completions == 0


# --- the spool ---------------------------------------------------------------------------------------------------


def never() -> bool:
    return False


def test_the_spool_gives_lines_back_in_order_and_shrinks(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "s", first=5)
    for number in range(100):
        assert spool.append("t", f"é{number}\u2028", hurry=never) == 5 + number
    assert spool.batch(lines=3, size=10**6) == (5, [("t", f"é{n}\u2028") for n in range(3)])
    spool.forget(7)
    first, lines = spool.batch(lines=1000, size=10**6)
    assert first == 7 and [text for _, text in lines] == [f"é{n}\u2028" for n in range(2, 100)]
    spool.forget(105)
    assert (tmp_path / "s").stat().st_size == 0 and spool.batch(lines=9, size=9) == (105, [])


def test_a_batch_is_bounded_in_bytes_but_never_empty(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "s")
    for _ in range(5):
        spool.append("t", "x" * 100, hurry=never)
    assert len(spool.batch(lines=10, size=250)[1]) == 2
    assert len(spool.batch(lines=10, size=1)[1]) == 1


def test_a_full_spool_makes_the_writer_wait(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "s", limit=200)
    size = len(json.dumps(["t", "x" * 100])) + 1
    spool.append("t", "x" * 100, hurry=never)
    assert size * 2 > 200
    with pytest.raises(SpoolFull):
        spool.append("t", "x" * 100, hurry=lambda: True)
    spool.batch(lines=1, size=1)
    spool.forget(1)
    assert spool.append("t", "x" * 100, hurry=lambda: True) == 1
