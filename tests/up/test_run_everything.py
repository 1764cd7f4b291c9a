"""Does `manage.py up` start the whole product, keep it running, and end without a trace?"""

import json
import os
import re
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import psycopg
import pytest

from forge.postgres import FORGETFUL, EmbeddedPostgres, socket_folder
from tests.ports import reserve_port

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = STOP_SECONDS = 180


def _environment():
    ours = ("FORGE_", "DATABASE_URL", "DJANGO_", "PYTEST_")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)}


class Up:
    """A running `manage.py up` and what it has printed so far."""

    def __init__(self, data, port, *words, **environment):
        self.data, self.url = data, f"http://127.0.0.1:{port}"
        self.printed = ""
        self._news = threading.Condition()
        self.process = subprocess.Popen(
            [sys.executable, "manage.py", "up", "--data", str(data), "--port", str(port), *words],
            cwd=ROOT,
            env={**_environment(), **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self.process.stdout:
            with self._news:
                self.printed += line
                self._news.notify_all()
        with self._news:
            self._news.notify_all()

    def wait_for(self, text):
        with self._news:
            came = self._news.wait_for(lambda: text in self.printed or not self._reader.is_alive(), START_SECONDS)
        assert came, f"not printed within {START_SECONDS} s: {text}\n{self.printed}"
        assert text in self.printed, self.printed
        return self

    def end(self, how=signal.SIGTERM):
        """Its exit status."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        try:
            return self.process.wait(STOP_SECONDS)
        finally:
            self.process.kill()
            self._reader.join(STOP_SECONDS)

    def descendants(self):
        """Process number -> command line of everything below it."""
        found, parents = {}, {self.process.pid}
        known = {}
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                known[int(entry.name)] = (
                    int((entry / "stat").read_text().rpartition(") ")[2].split()[1]),
                    (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(),
                )
            except OSError:
                continue
        while parents:
            parents = {pid for pid, (parent, _) in known.items() if parent in parents}
            found |= {pid: known[pid][1] for pid in parents}
        return found

    def child(self, name):
        return next(int(pid) for pid in self.children() if name in _command(int(pid)))

    def children(self):
        return json.loads((self.data / "children.json").read_text())


def _command(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def _alive(pids):
    return {pid: command for pid, command in pids.items() if _command(pid) == command and command}


@pytest.fixture(scope="module")
def port():
    return reserve_port()


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return tmp_path_factory.mktemp("up") / "data"


@pytest.fixture(scope="module")
def first(data, port):
    up = Up(data, port, "--runners", "1")
    yield up.wait_for("Ctrl-C stops it")
    up.end()


def test_it_shows_every_step_of_the_start(first):
    for step in ("database     PostgreSQL 1", "sizes", "migrations", "account", "web", "tasks", "runners"):
        assert re.search(rf"^✓ {step}.* \(\d+\.\d s\)$", first.printed, re.M), first.printed


def test_it_runs_as_many_processes_as_it_says(first):
    said = re.search(r"sizes +(\d+) web process(?:es)? of (\d+) threads?, (\d+) task workers?, up to", first.printed)
    web, threads, tasks = map(int, said.groups())
    # Of one worker uvicorn makes no process of its own.
    workers = [pid for pid, words in first.descendants().items() if "multiprocessing.spawn" in words]
    assert len(workers) == (web if web > 1 else 0)
    for name in ("uvicorn", "qcluster"):
        environment = Path(f"/proc/{first.child(name)}/environ").read_bytes().split(b"\0")
        assert f"FORGE_WEB_THREADS={threads}".encode() in environment
        assert f"FORGE_TASK_WORKERS={tasks}".encode() in environment


def test_web_may_open_as_many_files_as_the_system_allows_and_runners_as_many_as_before(first):
    hard = min(resource.getrlimit(resource.RLIMIT_NOFILE)[1], 1024 * 1024)
    assert resource.prlimit(first.child("uvicorn"), resource.RLIMIT_NOFILE)[0] == hard
    before = resource.prlimit(first.process.pid, resource.RLIMIT_NOFILE)[0]
    assert resource.prlimit(first.child("ci.runner"), resource.RLIMIT_NOFILE)[0] == before


def test_each_part_has_a_name_in_the_database(first):
    with psycopg.connect(host=socket_folder(first.data / "postgres"), user="forge", dbname="forge") as connection:
        deadline = time.monotonic() + START_SECONDS
        while True:
            rows = connection.execute(
                "SELECT DISTINCT regexp_replace(application_name, ' [0-9]+$', '') FROM pg_stat_activity"
            ).fetchall()
            connection.rollback()
            if {"forge hub", "forge web", "forge tasks", "forge watch", "forge scale"} <= {name for (name,) in rows}:
                break
            assert time.monotonic() < deadline, rows
            time.sleep(0.1)


def test_the_printed_password_signs_in_and_is_stored_nowhere(first):
    password = re.search(r"password: (\S+)", first.printed)[1]
    with httpx.Client(base_url=first.url, follow_redirects=True, timeout=60) as browser:
        page = browser.get("/login/")
        token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page.text)[1]
        form = {"username": "operator", "password": password, "csrfmiddlewaretoken": token}
        answer = browser.post("/login/", data=form, headers={"Referer": first.url + "/login/"})
        assert answer.status_code == 200
        assert "sessionid" in browser.cookies
    for file in (*first.data.glob("*.*"), *first.data.glob("logs/*"), *first.data.glob("runners/**/*.json")):
        assert password not in file.read_text(errors="replace"), file


def test_a_second_start_on_the_same_data_is_refused(first, port):
    done = subprocess.run(
        [sys.executable, "manage.py", "up", "--data", first.data, "--port", str(port)],
        cwd=ROOT,
        env=_environment(),
        capture_output=True,
        text=True,
        timeout=START_SECONDS,
    )
    assert done.returncode == 2
    assert done.stderr == f"Forge CI already runs on {first.data}: process {first.process.pid} at {first.url}.\n"
    assert httpx.get(first.url + "/login/", timeout=60).status_code == 200


@pytest.mark.parametrize("name", ["uvicorn", "qcluster", "watch", "ci.runner", "postgres"])
def test_a_killed_child_runs_again(first, name):
    before = first.child(name)
    os.kill(before, signal.SIGKILL)
    deadline = time.monotonic() + START_SECONDS
    while _child_or_none(first, name) in (before, None):
        assert time.monotonic() < deadline, f"{name} was not started again\n{first.printed}"
        time.sleep(0.1)
    first.wait_for("runs again")
    if name in {"uvicorn", "postgres"}:
        _wait_for_the_login_page(first)


def _child_or_none(up, name):
    try:
        return up.child(name)
    except StopIteration:
        return None


def _wait_for_the_login_page(up):
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            if httpx.get(up.url + "/login/", timeout=60).status_code == 200:
                return
        except httpx.TransportError:
            pass
        assert time.monotonic() < deadline, up.printed
        time.sleep(0.1)


def test_runners_do_not_see_the_servers_settings(first):
    environment = Path(f"/proc/{first.child('ci.runner')}/environ").read_bytes()
    for name in (b"FORGE_", b"DATABASE_URL", b"DJANGO_"):
        assert name not in environment


@pytest.fixture(scope="module")
def stopped(first):
    """What was running below the first one, after it was asked to end. Tests above this one need it running."""
    running = first.descendants()
    assert len(running) > 8
    return first.end(signal.SIGTERM), running


def test_sigterm_ends_it_in_order_and_leaves_no_process(stopped):
    status, running = stopped
    assert status == 0
    assert _alive(running) == {}


def test_a_second_start_finds_everything_again(stopped, data, port):
    before = (data / "runners/1/runner.json").read_text()
    second = Up(data, port, "--runners", "1")
    try:
        second.wait_for("Ctrl-C stops it")
        assert "password:" not in second.printed
        assert (data / "runners/1/runner.json").read_text() == before
        running = second.descendants()
    finally:
        status = second.end(signal.SIGINT)
    assert status == 0
    assert _alive(running) == {}


def test_a_killed_supervisor_is_followed_by_a_clean_start(stopped, data, port):
    killed = Up(data, port, "--runners", "1")
    killed.wait_for("Ctrl-C stops it")
    left_over = killed.descendants()
    killed.end(signal.SIGKILL)
    again = Up(data, port, "--runners", "1")
    try:
        again.wait_for("Ctrl-C stops it")
        # The database may be found running; everything else of the former is gone.
        assert {pid for pid, command in _alive(left_over).items() if "postgres" not in command} == set()
    finally:
        status = again.end()
    assert status == 0


def test_a_given_database_is_used_and_no_other_started(tmp_path, port):
    with EmbeddedPostgres(tmp_path / "given", settings={**FORGETFUL, "max_connections": "60"}) as server:
        url = f"postgres://forge@/{socket_folder(server.folder)}/forge"
        up = Up(tmp_path / "data", port, "--runners", "0", DATABASE_URL=url)
        try:
            up.wait_for("Ctrl-C stops it")
            assert f"PostgreSQL {server.version} of DATABASE_URL" in up.printed
            assert "The database server gives us 57 connections" in up.printed
            assert not (tmp_path / "data" / "postgres").exists()
            with psycopg.connect(server.dsn.replace("dbname=postgres", "dbname=forge")) as connection:
                assert connection.execute("SELECT username FROM auth_user").fetchall() == [("operator",)]
        finally:
            status = up.end()
        assert status == 0
        assert server.process.poll() is None


def test_a_child_that_cannot_run_keeps_it_from_starting_and_is_explained(tmp_path, port):
    data = tmp_path / "data"
    data.mkdir()
    environment = {**_environment(), "PYTHONPATH": str(tmp_path)}
    (tmp_path / "uvicorn.py").write_text("raise SystemExit('no web today')")
    done = subprocess.run(
        [sys.executable, "manage.py", "up", "--data", data, "--port", str(port)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=START_SECONDS,
    )
    assert done.returncode == 2
    assert f"web ended while starting; the end of {data}/logs/web.log:" in done.stderr
    assert "no web today" in done.stderr
    assert not (data / "postgres" / "postmaster.pid").exists()
