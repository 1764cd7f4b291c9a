"""Do local processes pass the launchers' suite, and what else must hold of them?"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ci.scaling import launchers
from ci.scaling.launchers import local, process_table
from ci.scaling.launchers.local import LocalLauncher
from ci.scaling.launchers.local_attempt import Attempt, machine, name_machine
from ci.scaling.launchers.protocol import Launch, Launcher, PermanentLaunchError, TransientLaunchError
from ci.scaling.launchers.reasons import ended_because
from forge.child_processes import start_time
from tests.runner.fake_server import FakeServer
from tests.scaling.launchers.contract import (
    INSTALLATION,
    TOKEN,
    Bench,
    LauncherContract,
    launch,
    until,
    until_ended,
    until_state,
)
from tests.scaling.launchers.local_bench import LocalBench, doing, start_in_another_process


@pytest.fixture
def server() -> Iterator[FakeServer]:
    fake = FakeServer()
    fake.start()
    yield fake
    fake.stop()


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[LocalBench]:
    bench = LocalBench(tmp_path / "launches")
    yield bench
    bench.close()


class TestLocal(LauncherContract):
    """Row 50."""

    @pytest.fixture
    def bench(self, tmp_path: Path) -> Iterator[Bench]:
        bench = LocalBench(tmp_path / "launches")
        yield bench
        bench.close()


def test_it_lives_on_when_the_scaler_has_ended(bench: LocalBench) -> None:
    handle = start_in_another_process(bench.folder, launch(doing("long")))
    until_state(bench.launcher(), handle, "running")
    assert bench.told(handle) and bench.alive(handle) == 1
    bench.launcher().stop(handle, force=False)
    process = until_ended(bench.launcher(), handle)
    assert process is not None and process.exit_code == 0


def test_a_scaler_killed_before_the_supervisor_was_started_leaves_nothing(bench: LocalBench) -> None:
    wanted = launch(doing("exit 0"))
    start_in_another_process(bench.folder, wanted, die="_in_memory")
    assert bench.launcher().list() == []
    until_state(bench.launcher(), bench.launcher().start(wanted), "exited")


def test_a_supervisor_that_does_not_come_up_is_told_and_leaves_nothing(
    bench: LocalBench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "ROOT", tmp_path)  # where there is no such program
    monkeypatch.delenv("PYTHONPATH", raising=False)
    with pytest.raises(TransientLaunchError, match="No module named"):
        bench.launcher().start(launch(doing("exit 0")))
    assert bench.launcher().list() == [] and not list(bench.folder.glob("*/*"))
    monkeypatch.undo()
    until_state(bench.launcher(), bench.launcher().start(launch(doing("exit 0"))), "exited")


def test_a_process_that_got_its_number_is_not_touched(bench: LocalBench) -> None:
    handle = bench.launcher().start(launch(doing("long")))
    bench.told(handle)
    lives = bench.replace(handle)
    attempt = bench.attempt(handle)
    known = json.loads((attempt.folder / "started.json").read_text())
    old = handle.split(":")[2]
    (attempt.folder / "started.json").write_text(json.dumps({**known, "started": old}))
    reused = f"forge-4-17-1:{known['pid']}:{old}:{handle.split(':')[3]}"
    bench.launcher().stop(reused, force=False)
    bench.launcher().stop(reused, force=True)
    process = bench.launcher().poll(reused)
    assert process is not None and process.state == "exited" and process.exit_code is None
    assert lives()


def test_after_a_restart_of_the_machine_no_number_means_anything(bench: LocalBench) -> None:
    handle = bench.launcher().start(launch(doing("long")))
    bench.told(handle)
    path = bench.attempt(handle).folder / "started.json"
    now = json.loads(path.read_text())
    path.write_text(json.dumps({**now, "boot": "another"}))
    started = bench.attempt(handle).started()
    assert started is not None and not started.is_alive
    bench.launcher().stop(handle, force=False)
    path.write_text(json.dumps(now))
    assert started.pid and until_state(bench.launcher(), handle, "running")


def test_a_supervisor_killed_takes_the_runner_along_and_what_it_left_is_ended(bench: LocalBench) -> None:
    handle = bench.launcher().start(launch(doing("stubborn")))
    told = bench.told(handle)
    runner, marked, _ = (next((p, s) for p, s in bench.pids[handle].items() if p == pid) for pid in told["pids"])
    process_table.signal_exactly(int(handle.split(":")[1]), handle.split(":")[2], signal.SIGKILL)
    process = until_ended(bench.launcher(), handle)
    assert process is not None and process.exit_code is None and "nobody saw" in process.reason
    until(lambda: not process_table.is_alive(*runner), "the runner's end")
    assert not process_table.is_alive(*marked)
    os.kill(told["pids"][2], signal.SIGKILL)  # one that hid its mark is beyond reach then


def test_a_supervisor_that_is_stopped_cannot_stop_the_end_by_force(bench: LocalBench) -> None:
    handle = bench.launcher().start(launch(doing("stubborn")))
    assert bench.alive(handle) == 3
    os.kill(int(handle.split(":")[1]), signal.SIGSTOP)
    bench.launcher().stop(handle, force=True)
    assert bench.alive(handle) == 0
    process = bench.launcher().poll(handle)
    assert process is not None and process.state == "exited"


def test_what_a_runner_left_in_the_background_ends_with_it(bench: LocalBench) -> None:
    handle = bench.launcher().start(launch(doing("leave")))
    process = until_state(bench.launcher(), handle, "exited")
    assert process.exit_code == 0
    (path,) = bench.folder.glob("*/left-seen.json")
    (left,) = json.loads(path.read_text())["pids"]
    assert start_time(left) is None


def test_a_second_request_is_not_passed_on_for_it_would_give_a_job_up(bench: LocalBench) -> None:
    handle = bench.launcher().start(launch(doing("count")))
    (pid,) = bench.told(handle)["pids"]
    log = bench.attempt(handle).log
    for number in range(1, 7):
        bench.launcher().stop(handle, force=False)
        # By its next line the supervisor has read the one before it, and so has dealt with the request before that.
        os.kill(pid, signal.SIGUSR2)
        until(lambda number=number: log.read_text().count("\n") == number, "its next line")
    assert log.read_text().splitlines()[-1] == "asked 1 times"


@pytest.mark.parametrize(("number", "code", "word"), [(9, 137, "killed from outside"), (11, 139, "SIGSEGV")])
def test_a_death_by_a_signal_is_told_as_shells_do(bench: LocalBench, number: int, code: int, word: str) -> None:
    process = until_state(bench.launcher(), bench.launcher().start(launch(doing(f"signal {number}"))), "exited")
    assert process.exit_code == code and word in process.reason


def test_the_output_is_bounded_and_its_end_becomes_the_reason(bench: LocalBench) -> None:
    handle = bench.launcher().start(launch(doing("chatter 30000")))
    process = until_state(bench.launcher(), handle, "exited")
    assert process.exit_code == 4 and process.reason.endswith("the last words") and len(process.reason) <= 500
    logs = list(bench.attempt(handle).folder.glob("output.log*"))
    assert 500_000 < sum(log.stat().st_size for log in logs) < 1_300_000


def test_only_the_forges_user_reads_the_state_and_no_file_holds_the_token(bench: LocalBench) -> None:
    os.umask(mask := os.umask(0))
    handle = bench.launcher().start(launch(doing("long")))
    assert bench.told(handle)["umask"] == mask  # files of jobs get the modes that they would anywhere
    folder = bench.attempt(handle).folder
    for path in (bench.folder, folder.parent, folder, folder / "work"):
        assert path.stat().st_mode & 0o777 == 0o700
    ours = [path for path in folder.iterdir() if path.is_file() and path.name != "work-seen.json"]
    assert len(ours) >= 3 and not any(TOKEN.encode() in path.read_bytes() for path in ours)


def test_the_process_gets_nothing_that_is_meant_for_the_servers(
    bench: LocalBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgres://secret")
    monkeypatch.setenv("FORGE_SECRET_KEY", "secret")
    handle = bench.launcher().start(launch(doing("long")))
    environment = bench.seen(handle).environment
    assert not {"DATABASE_URL", "FORGE_SECRET_KEY", "DJANGO_SETTINGS_MODULE"} & set(environment)
    supervisor = Path(f"/proc/{handle.split(':')[1]}/environ").read_text()
    assert "secret" not in supervisor and TOKEN not in supervisor


def test_the_work_folder_of_the_template_is_used_and_emptied(bench: LocalBench, tmp_path: Path) -> None:
    (tmp_path / "big disk").mkdir()
    (tmp_path / "big disk").chmod(0o755)
    handle = bench.launcher().start(launch(doing("long", work=str(tmp_path / "big disk"), nice=7)))
    until_state(bench.launcher(), handle, "running")
    (work,) = (tmp_path / "big disk").glob("forge-4-17-1-*[0-9a-f]")
    until(lambda: (work.parent / f"{work.name}-seen.json").exists(), "its sign")
    pid = json.loads((work.parent / f"{work.name}-seen.json").read_text())["pids"][0]
    assert os.getpriority(os.PRIO_PROCESS, pid) == os.getpriority(os.PRIO_PROCESS, 0) + 7
    (work / "closed").mkdir(mode=0o500)
    bench.launcher().stop(handle, force=True)
    until(lambda: not work.exists(), "the end of the work folder")
    until(lambda: start_time(int(handle.split(":")[1])) is None, "the supervisor's end")
    bench.launcher(keep_seconds=-1000).list()  # removes it once more, with all else
    assert bench.launcher().poll(handle) is None
    assert (tmp_path / "big disk").stat().st_mode & 0o777 == 0o755  # others may work there too


def test_only_a_work_folder_of_the_attempt_is_ever_removed(tmp_path: Path) -> None:
    attempt = Attempt(tmp_path / "forge-4-17-1")
    others = [tmp_path / "precious", tmp_path / "forge-4-17-11", tmp_path / "forge-4-17-1"]
    for folder in others:
        folder.mkdir()
        attempt.clear_work(str(folder))
    assert all(folder.exists() for folder in others)
    (tmp_path / "forge-4-17-1" / "work").symlink_to(tmp_path / "precious")
    (tmp_path / "precious" / "file").write_text("")
    attempt.clear_work(str(tmp_path / "forge-4-17-1" / "work"))
    assert (tmp_path / "precious" / "file").exists()


def test_a_work_folder_that_cannot_be_made_is_told_at_once(bench: LocalBench, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(PermanentLaunchError, match=r"work folder .* cannot be used: Not a directory"):
        bench.launcher().start(launch(doing("exit 0", work=str(tmp_path / "file" / "below"))))
    assert bench.launcher().list() == []


def test_an_identity_that_names_another_attempt_is_refused(bench: LocalBench) -> None:
    wanted = dataclasses.replace(launch(doing("exit 0")), identity="../../elsewhere")
    with pytest.raises(PermanentLaunchError, match="does not name this attempt"):
        bench.launcher().start(wanted)


def test_what_ended_long_ago_is_forgotten_and_what_lives_is_not(bench: LocalBench) -> None:
    ended = bench.launcher().start(launch(doing("exit 0"), runner_id=1))
    lives = bench.launcher().start(launch(doing("long"), runner_id=2))
    until_state(bench.launcher(), ended, "exited")
    until(lambda: start_time(int(ended.split(":")[1])) is None, "the supervisor's end")
    folder = bench.attempt(ended).folder
    assert len(bench.launcher().list()) == 2
    bench.launcher(keep_seconds=-1000).list()
    assert bench.launcher().poll(ended) is None and not folder.exists()
    assert [process.handle for process in bench.launcher().list()] == [lives]
    assert not list(folder.parent.glob(".removed-*"))


def test_only_the_latest_ended_ones_are_kept(bench: LocalBench) -> None:
    handles = []
    for runner in (1, 2, 3):
        handles.append(bench.launcher().start(launch(doing("exit 0"), runner_id=runner)))
        until_state(bench.launcher(), handles[-1], "exited")
        until(lambda: start_time(int(handles[-1].split(":")[1])) is None, "the supervisor's end")
        os.utime(bench.attempt(handles[-1]).folder / "ended.json", (10_000_000_000 + runner,) * 2)
    bench.launcher(keep_most=2).list()
    assert [process.runner_id for process in bench.launcher().list()] == [2, 3]


def test_a_program_that_is_not_there_is_told(bench: LocalBench) -> None:
    launcher = LocalLauncher(bench.folder, installation=INSTALLATION, command=("/nowhere/runner",))
    process = until_state(launcher, launcher.start(launch({})), "exited")
    assert process.exit_code == 127 and "/nowhere/runner" in process.reason


def test_the_bundled_runner_ends_cleanly_when_its_forge_is_away(bench: LocalBench) -> None:
    launcher = LocalLauncher(bench.folder, installation=INSTALLATION)
    handle = launcher.start(launch({}))
    until_state(launcher, handle, "running")
    until(lambda: "trying again" in bench.attempt(handle).log.read_text(), "its try to reach the forge")
    launcher.stop(handle, force=False)
    process = until_ended(launcher, handle)
    assert process is not None and (process.exit_code, process.reason) == (0, "")


def of_forge(server: FakeServer, **more: Any) -> Launch:
    server.runners[TOKEN] = {"id": 17, "name": "burst-17", "labels": ["linux"], "ephemeral": True, "phase": "pending"}
    return dataclasses.replace(launch({}, **more), url=server.url)


def test_the_bundled_runner_does_its_job_and_its_work_folder_is_gone(bench: LocalBench, server: FakeServer) -> None:
    job = server.add([{"run": 'echo "$RUNNER_NAME" > greeting; cat greeting'}])
    launcher = LocalLauncher(bench.folder, installation=INSTALLATION)
    handle = launcher.start(of_forge(server))
    process = until_state(launcher, handle, "exited")
    assert (process.exit_code, process.reason, job.conclusion) == (0, "", "success")
    assert "burst-17" in job.text and TOKEN not in job.text
    until(lambda: start_time(int(handle.split(":")[1])) is None, "the supervisor's end")
    assert not (bench.attempt(handle).folder / "work").exists()
    assert TOKEN not in bench.attempt(handle).log.read_text()


def test_a_kill_in_the_middle_of_a_job_leaves_nothing_of_the_job(bench: LocalBench, server: FakeServer) -> None:
    job = server.add([{"run": "setsid sleep 600 & echo pid=$!; sleep 600"}])
    launcher = LocalLauncher(bench.folder, installation=INSTALLATION)
    handle = launcher.start(of_forge(server))
    server.wait(lambda: re.search(r"^pid=\d+", job.text, re.MULTILINE))
    below = process_table.descendants(int(handle.split(":")[1]))
    assert len(below) >= 4  # the runner, the step's shell and its two programs
    launcher.stop(handle, force=True)
    assert not any(process_table.is_alive(row.pid, row.started) for row in below)
    process = launcher.poll(handle)
    assert process is not None and process.exit_code == 137 and "on request" in process.reason
    assert job.state == "running"  # the forge must notice by itself


def test_of_a_process_on_another_machine_nothing_is_said(bench: LocalBench, tmp_path: Path) -> None:
    """A stand-by of the scaler takes over there: the jobs in hand must not be taken away."""
    handle = bench.launcher().start(launch(doing("long")))
    until_state(bench.launcher(), handle, "running")
    there = LocalLauncher(tmp_path / "elsewhere", installation=INSTALLATION)
    for call in (lambda: there.poll(handle), lambda: there.stop(handle, force=True)):
        with pytest.raises(TransientLaunchError, match="another machine"):
            call()
    assert there.list() == []
    assert bench.alive(handle) == 1
    (tmp_path / "elsewhere").mkdir()
    name_machine(tmp_path / "elsewhere")
    with pytest.raises(TransientLaunchError, match="another machine"):
        there.poll(handle)


def test_a_machine_is_named_once(tmp_path: Path) -> None:
    assert machine(tmp_path) == ""
    name_machine(tmp_path)
    name = machine(tmp_path)
    name_machine(tmp_path)
    assert machine(tmp_path) == name != ""
    assert [path.name for path in tmp_path.iterdir()] == ["machine"]


def test_an_attempt_is_in_one_pair_of_hands(tmp_path: Path) -> None:
    with Attempt(tmp_path).locked() as first, Attempt(tmp_path).locked() as second:
        assert first is not None and second is None
    with Attempt(tmp_path).locked() as third:
        assert third is not None


def test_the_lock_of_a_folder_that_was_removed_is_that_of_nothing(tmp_path: Path) -> None:
    """Whoever opened it before and gets it after holds nothing up: another one may have the new folder's."""
    attempt = Attempt(tmp_path)
    with attempt.locked() as lock:
        assert lock is not None
        (tmp_path / "lock").unlink()
        assert not attempt._is_taken(lock)
        (tmp_path / "lock").touch()
        assert not attempt._is_taken(lock)


def test_there_is_no_launcher_of_an_unknown_kind() -> None:
    with pytest.raises(ValueError, match="There is no launcher 'vm'"):
        launchers.launcher("vm", installation="x")


def test_a_launcher_of_the_settings_works_below_the_data_folder() -> None:
    made: Launcher = launchers.launcher("local", installation="of a test")
    assert isinstance(made, LocalLauncher) and made.list() == []


def test_a_death_for_want_of_the_machines_memory_is_told_apart() -> None:
    assert "out of memory" in ended_because(137, out_of_memory=True)
    assert not ended_because(137).startswith("out of memory")
    assert ended_because(0, last_lines="bye") == ""


def test_lists_polls_and_stops_of_many_threads_do_not_disturb_each_other(bench: LocalBench) -> None:
    launcher = bench.launcher(keep_seconds=0)
    failures: list[BaseException] = []

    def live(runner: int) -> None:
        try:
            for attempt in (1, 2, 3):
                handle = launcher.start(launch(doing("long"), runner_id=runner, attempt=attempt))
                assert any(process.handle == handle for process in launcher.list())
                launcher.stop(handle, force=True)
                process = launcher.poll(handle)
                assert process is None or process.state == "exited"
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=live, args=(runner,)) for runner in (1, 2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
