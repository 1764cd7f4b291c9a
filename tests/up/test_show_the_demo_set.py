"""Does `manage.py up --demo-set --exit` show a set that grows for its jobs and shrinks again, whoever is killed?"""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 400
OURS = ("FORGE_", "DATABASE_URL", "DJANGO_", "PYTEST_")


def _start(data: Path, port: int, *words: str, **environment: str) -> subprocess.Popen[str]:
    command = [sys.executable, "manage.py", "up", "--data", str(data), "--port", str(port), "--runners", "0", *words]
    return subprocess.Popen(
        command,
        cwd=ROOT,
        env={**{name: value for name, value in os.environ.items() if not name.startswith(OURS)}, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        bufsize=1,
    )


def _said(process: subprocess.Popen[str], until: str = "") -> str:
    """What it says, up to a line that holds `until`, or all."""
    assert process.stdout is not None
    said = ""
    for line in process.stdout:
        said += line
        if until and re.search(until, line):
            return said
    assert not until, f"it never said {until!r}:\n{said}"
    return said


@pytest.fixture
def started():
    """Processes that end with the test, whatever happens."""
    processes = []
    yield processes.append
    for process in processes:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _running(data: Path, word: str) -> list[int]:
    """The processes whose command line or environment names this data folder, and whose command line has `word`."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            words = (folder / "cmdline").read_bytes() if folder.name.isdecimal() else b""
            command = words.replace(b"\0", b" ").decode(errors="replace")
            if word in command and str(data) in command + (folder / "environ").read_bytes().decode(errors="replace"):
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def _check(said: str, status: int) -> None:
    assert status == 0, said
    done = sorted(int(number) for number in re.findall(r"^  ✓ Work (\d+)$", said, re.MULTILINE))
    assert done == list(range(1, 21)), said
    sizes = [int(size) for size in re.findall(r"^    demo-set: (\d+) runners", said, re.MULTILINE)]
    assert max(sizes) == 4
    assert sizes[-1] == 0
    assert "The runner set demo-set had 4 runners at once, and has none now." in said


def test_it_grows_to_four_for_twenty_jobs_and_back_to_none(tmp_path, free_port, started):
    process = _start(tmp_path / "data", free_port, "--demo-set", "--exit", FORGE_SCALE_CALM_SECONDS="2")
    started(process)
    said = _said(process)
    _check(said, process.wait(SECONDS))
    assert _running(tmp_path / "data", "ci.runner") == []


def test_no_job_is_lost_or_done_twice_when_the_scaler_is_killed(tmp_path, free_port, started):
    """Row 41, with real processes: another scaler finds the runners that this one started."""
    data = tmp_path / "data"
    process = _start(
        data,
        free_port,
        *("--demo-set", "--exit"),
        FORGE_SCALE_CALM_SECONDS="2",
        FORGE_SCALE_START_SECONDS="10",
    )
    started(process)
    said = _said(process, until=r"4 runners, \d up, [1-4] with a job")
    for _ in range(2):
        (scaler,) = _running(data, "manage.py scale")
        os.kill(scaler, signal.SIGKILL)
        said += _said(process, until="scale runs again")
        time.sleep(1)  # whatever it is at then: no point in time is safe
    said += _said(process)
    _check(said, process.wait(SECONDS))
    assert said.count("scale ended unexpectedly") == 2
    assert _running(data, "ci.runner") == []


def test_it_does_not_mix_the_demonstrations(tmp_path, free_port, started):
    process = _start(tmp_path / "data", free_port, "--demo-set", "--demo")
    started(process)
    assert "one at a time" in _said(process)
    assert process.wait(60) == 2


def test_the_job_of_a_runner_that_is_killed_says_so_and_the_others_go_on(tmp_path, free_port, started):
    """Rows 25 and 37, with real processes: kill -9 of a local runner in the middle of its job."""
    data = tmp_path / "data"
    process = _start(data, free_port, "--demo-set", "--exit", FORGE_SCALE_CALM_SECONDS="2")
    started(process)
    said = _said(process, until=r"4 runners, \d up, [1-4] with a job")
    runners = _running(data, "ci.runner once")
    assert runners, said
    for runner in runners:
        os.kill(runner, signal.SIGKILL)
    said += _said(process)
    status = process.wait(SECONDS)
    # Of a job whose own step had begun nobody can say what it has done; the others ran again elsewhere.
    lost = re.findall(r"^  ✗ Work \d+  runner demo-set-\w+ is gone: killed from outside", said, re.MULTILINE)
    done = re.findall(r"^  ✓ Work \d+$", said, re.MULTILINE)
    assert len(lost) + len(done) == 20, said
    assert status == (1 if lost else 0), said
    sizes = [int(size) for size in re.findall(r"^    demo-set: (\d+) runners", said, re.MULTILINE)]
    assert (max(sizes), sizes[-1]) == (4, 0)
    assert _running(data, "ci.runner") == []
