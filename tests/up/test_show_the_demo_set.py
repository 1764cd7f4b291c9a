"""Does `manage.py up --demo-set` show a set that grows for its jobs and shrinks again, whoever is killed?"""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import httpx
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


def _signed_in(url: str, password: str) -> httpx.Client:
    browser = httpx.Client(base_url=url, follow_redirects=True, timeout=60, trust_env=False)
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', browser.get("/login/").text)
    assert token
    form = {"username": "operator", "password": password, "csrfmiddlewaretoken": token[1]}
    browser.post("/login/", data=form, headers={"Referer": f"{url}/login/"})
    return browser


def _numbers(browser: httpx.Client) -> dict[str, int]:
    """What the page of the first set says of now."""
    page = browser.get("/runners/sets/1/")
    assert page.status_code == 200
    assert "demo-set" in page.text
    return {name: int(text) for name, text in re.findall(r"<dt>([\w ]+)</dt><dd>(\d+)</dd>", page.text)}


def _shown(browser: httpx.Client, wanted: dict[str, int], before_each_look: Callable[[], object]) -> None:
    """The page says this, within a time in which it surely comes to that."""
    limit = time.monotonic() + SECONDS
    while True:
        before_each_look()
        has = _numbers(browser)
        has["Runners"] = has["Busy"] + has["Idle"] + has["Starting"]
        if wanted.items() <= has.items():
            return
        assert time.monotonic() < limit, f"the page never said {wanted}: {has}"


def _send(data: Path, how: signal.Signals) -> None:
    for runner in _running(data, "ci.runner once"):
        with contextlib.suppress(ProcessLookupError):
            os.kill(runner, how)


def test_its_page_shows_four_of_four_for_twenty_jobs_and_then_none(tmp_path, free_port, started):
    data = tmp_path / "data"
    # Runners that are held still for the look are not to be taken for lost.
    waits = ("FORGE_HEARTBEAT_SECONDS", "FORGE_ACKNOWLEDGE_SECONDS", "FORGE_SCALE_SILENT_SECONDS")
    process = _start(data, free_port, "--demo-set", FORGE_SCALE_CALM_SECONDS="2", **dict.fromkeys(waits, "600"))
    started(process)
    said = _said(process, until="Watch it: ")
    password = re.search(r"password: (\S+)", said)
    assert password, said
    with contextlib.closing(_signed_in(f"http://127.0.0.1:{free_port}", password[1])) as browser:
        try:
            # Held still, no job ends while the page is made: as many as may be there are there in the end.
            four = {"Runners": 4, "Desired": 4, "Maximum": 4}
            _shown(browser, four, lambda: _send(data, signal.SIGSTOP))
        finally:
            _send(data, signal.SIGCONT)
        none = {"Queued jobs": 0, "Desired": 0, "Runners": 0, "Maximum": 4}
        _shown(browser, none, lambda: None)
        assert browser.get("/operator/burst/actions/runs/1/").text.count("Work ") >= 20
    process.send_signal(signal.SIGTERM)
    assert process.wait(SECONDS) == 0
    assert _running(data, "ci.runner") == []


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
    said = ""
    # Whatever it is at then: no point in time is safe. Without a scaler no more than four jobs end, so some are left.
    for change in ("demo-set: 4 runners", r"demo-set: \d runners"):
        said += _said(process, until=change)
        (scaler,) = _running(data, "manage.py scale")
        os.kill(scaler, signal.SIGKILL)
        said += _said(process, until="scale runs again")
    said += _said(process)
    _check(said, process.wait(SECONDS))
    assert said.count("scale ended unexpectedly") == 2
    assert _running(data, "ci.runner") == []


def test_it_does_not_mix_the_demonstrations(tmp_path, free_port, started):
    process = _start(tmp_path / "data", free_port, "--demo-set", "--demo")
    started(process)
    assert "one at a time" in _said(process)
    assert process.wait(60) == 2


def _kill_in_a_job(data: Path) -> None:
    """Kill all runners at a moment at which one of them has been seen to work: jobs sleep for a second."""
    limit = time.monotonic() + SECONDS
    while not _running(data, "sleep"):
        assert time.monotonic() < limit, "no job ever slept"
    _send(data, signal.SIGKILL)


def test_the_job_of_a_runner_that_is_killed_says_so_and_the_others_go_on(tmp_path, free_port, started):
    """Rows 25 and 37, with real processes: kill -9 of a local runner in the middle of its job."""
    data = tmp_path / "data"
    process = _start(data, free_port, "--demo-set", "--exit", FORGE_SCALE_CALM_SECONDS="2")
    started(process)
    said = _said(process, until="demo-set: 4 runners")
    _kill_in_a_job(data)
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
