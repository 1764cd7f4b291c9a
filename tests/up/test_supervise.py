"""Does the supervisor restart what ends, give up on what cannot run, and end everything in order?"""

import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from ci.management.children import Program, Watched
from ci.management.start_errors import CannotContinue
from forge.child_processes import start_time

HERE = Path(__file__).parent
# A shell that ends when asked to, and says so.
OBEYS = "trap 'echo ended {0} >> order; exit 0' TERM; echo {0} $$ >> started; while :; do sleep 0.05; done"
STUBBORN = "trap '' TERM; echo stubborn $$ >> started; while :; do sleep 0.05; done"


@contextmanager
def _supervised(data, *commands):
    command = [sys.executable, HERE / "supervised.py", data, *commands]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def _started(data):
    """Name and process number of every child that ever started."""
    lines = (data / "started").read_text().splitlines() if (data / "started").exists() else []
    return [(name, int(pid)) for name, pid in (line.split() for line in lines)]


def _read_until(process, text):
    for line in process.stdout:
        if text in line:
            return
    pytest.fail(f"ended before it printed: {text}")


def _wait_for_starts(data, count):
    # The shells write the file; a look costs less than a notification.
    with subprocess.Popen(
        ["sh", "-c", f"until [ $(wc -l < started) -ge {count} ]; do sleep 0.05; done"], cwd=data
    ) as it:
        it.wait(60)
    return _started(data)


def test_children_end_in_the_opposite_order(tmp_path):
    with _supervised(tmp_path, OBEYS.format("one"), OBEYS.format("two"), OBEYS.format("three")) as process:
        _read_until(process, "all run")
        started = _wait_for_starts(tmp_path, 3)
        process.terminate()
        assert process.wait(60) == 0
    assert (tmp_path / "order").read_text().split() == ["ended", "three", "ended", "two", "ended", "one"]
    assert [pid for _, pid in started if start_time(pid)] == []


def test_a_child_that_ignores_sigterm_is_killed_with_its_group(tmp_path):
    with _supervised(tmp_path, f'(exec sh -c "{STUBBORN.replace("$$", "$PPID")}") & {STUBBORN}') as process:
        _read_until(process, "all run")
        _wait_for_starts(tmp_path, 2)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
    assert [pid for _, pid in _started(tmp_path) if start_time(pid)] == []


def test_what_left_its_group_is_killed_at_the_end_too(tmp_path):
    escape = "setsid sh -c 'echo escaped $$ >> started; exec sleep 600' & "
    with _supervised(tmp_path, escape + OBEYS.format("one")) as process:
        _read_until(process, "all run")
        started = _wait_for_starts(tmp_path, 2)
        process.terminate()
        assert process.wait(60) == 0
    assert {name for name, _ in started} == {"escaped", "one"}
    assert [pid for _, pid in started if start_time(pid)] == []


def test_a_child_that_ends_is_started_again(tmp_path):
    once = "echo again $$ >> started; [ $(wc -l < started) -ge 2 ] || exit 7; while :; do sleep 0.05; done"
    with _supervised(tmp_path, once) as process:
        _read_until(process, "child-0 ended unexpectedly")
        _read_until(process, "child-0 runs again")
        process.terminate()
        assert process.wait(60) == 0
    assert len(_started(tmp_path)) == 2


def test_a_child_that_ends_again_and_again_ends_everything_with_its_last_words(tmp_path):
    with _supervised(tmp_path, OBEYS.format("one"), "echo no such table; exit 1") as process:
        said, _ = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "child-1 ended 5 times within a minute" in said
    assert said.rstrip().endswith("  no such table")
    assert (tmp_path / "order").read_text() == "ended one\n"


def test_a_child_that_cannot_be_started_again_is_tried_later(tmp_path):
    program = tmp_path / "program"
    words = "#!/bin/sh\nrm -f program\n"
    program.write_text(words)
    program.chmod(0o700)
    child = Program("child", [str(program)], env={}, log=tmp_path / "log", cwd=tmp_path, patience=(1,))
    child.start()
    watched = Watched(child)
    try:
        assert "ended unexpectedly" in _told(watched)
        assert "cannot be started: " in watched.look(time.monotonic() + 60)
        program.write_text("#!/bin/sh\nexec sleep 600\n")
        program.chmod(0o700)
        assert watched.look(time.monotonic() + 60) == "child runs again"
    finally:
        child.end(time.monotonic() + 10)


class _Ending:
    """A child that ends as soon as it has begun."""

    name, pid = "child", None

    def __init__(self, log):
        self.log, self.starts = log, 0

    def start(self):
        self.starts += 1

    def has_ended(self):
        return True


def test_the_pause_before_a_restart_grows(tmp_path):
    """TestListenerRestartDelay: what ends at once, as a listener without its service, is not started at once again."""
    watched = Watched(_Ending(tmp_path / "log"))
    now = 1000.0
    for pause in (0.5, 1, 2, 4):
        assert watched.look(now).endswith(f"it starts again in {pause:g} s")
        assert watched.look(now + pause - 0.1) is None
        now += pause
        assert watched.look(now) == "child runs again"
    assert watched.child.starts == 4
    with pytest.raises(CannotContinue, match="5 times within a minute"):
        watched.look(now)


def _told(watched):
    deadline = time.monotonic() + 60
    while not (line := watched.look(time.monotonic())):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return line
