"""Does `manage.py up` say in one sentence why it does not start, and leave nothing behind?"""

import os
import pwd
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from ci.management.data_folder import DataFolder
from ci.management.machine import check_git
from ci.management.start_errors import CannotStart
from forge.postgres import EmbeddedPostgres, PostgresError
from forge.postgres_user import ServerUser

CAP_DAC_READ_SEARCH = 2
ROOT = Path(__file__).resolve().parents[2]


def _up(*words, path=None, user=None):
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("FORGE_", "DATABASE_URL", "DJANGO_", "PYTEST_"))
    }
    if path is not None:
        environment["PATH"] = path
    return subprocess.run(
        [sys.executable, "manage.py", "up", *map(str, words)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        preexec_fn=user.entrance() if user else None,
    )


def _assert_refused(done, *parts):
    assert done.returncode == 2, done.stdout + done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    for part in parts:
        assert str(part) in done.stderr


@pytest.fixture
def taken_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def test_a_taken_port_is_named(tmp_path, taken_port):
    done = _up("--data", tmp_path / "data", "--port", taken_port)
    _assert_refused(done, f"127.0.0.1:{taken_port} is taken by another program")
    assert not (tmp_path / "data" / "postgres").exists()


def test_an_address_of_another_machine_is_refused(tmp_path, free_port):
    _assert_refused(_up("--data", tmp_path / "data", "--port", free_port, "--host", "192.0.2.1"), "192.0.2.1")


def test_a_running_data_folder_names_its_holder(tmp_path, free_port):
    folder = DataFolder(tmp_path / "data")
    folder.prepare()
    folder.lock("process 123 at http://127.0.0.1:1")
    _assert_refused(
        _up("--data", folder.path, "--port", free_port),
        "already runs",
        folder.path,
        "process 123 at http://127.0.0.1:1",
    )
    assert not (folder.path / "postgres").exists()


def test_a_data_folder_is_held_by_one(tmp_path):
    first, second = DataFolder(tmp_path / "data"), DataFolder(tmp_path / "data")
    first.prepare()
    first.lock("the first")
    with pytest.raises(CannotStart, match="the first"):
        second.lock("the second")


def test_a_file_in_the_place_of_the_data_folder_is_refused(tmp_path, free_port):
    (tmp_path / "data").write_text("mine")
    _assert_refused(_up("--data", tmp_path / "data", "--port", free_port), tmp_path / "data", "Not a directory")
    assert (tmp_path / "data").read_text() == "mine"


def test_a_read_only_data_folder_is_refused(shared_folder, free_port):
    """As another user: nothing is read-only to root."""
    path, user = shared_folder
    path.chmod(0o555)
    _assert_refused(_up("--data", path, "--port", free_port, user=user), path, "Permission denied", "--data")
    assert list(path.iterdir()) == []


def test_a_data_folder_that_cannot_be_made_is_refused(shared_folder, free_port):
    path, user = shared_folder
    path.chmod(0o555)
    _assert_refused(_up("--data", path / "data", "--port", free_port, user=user), path / "data", "Permission denied")


@pytest.fixture
def shared_folder():
    """A folder, and a user to whom it can be closed: nobody where we are root, who may still read this checkout."""
    user = None
    if os.geteuid() == 0:
        if not _root_may_read_everything():
            pytest.skip("root lacks CAP_DAC_READ_SEARCH here, so nobody cannot be given it")
        entry = pwd.getpwnam("nobody")
        user = ServerUser(entry.pw_uid, entry.pw_gid, capability=CAP_DAC_READ_SEARCH)
    path = Path(tempfile.mkdtemp(prefix="forge-read-only-"))  # other users may not enter pytest's own
    path.chmod(0o755)
    yield path, user
    path.chmod(0o755)
    shutil.rmtree(path)


def _root_may_read_everything():
    held = re.search(r"CapEff:\s*(\w+)", Path("/proc/self/status").read_text())
    return bool(int(held[1], 16) >> CAP_DAC_READ_SEARCH & 1)


def test_a_missing_git_is_named_before_anything_is_made(tmp_path, free_port):
    done = _up("--data", tmp_path / "data", "--port", free_port, path=str(tmp_path))
    _assert_refused(done, "git was not found", "install git")
    assert not (tmp_path / "data").exists()


def test_an_old_git_is_named(tmp_path, monkeypatch):
    old = tmp_path / "git"
    old.write_text("#!/bin/sh\necho git version 2.11.0\n")
    old.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CannotStart, match=r"git version 2\.11\.0 is too old: install git 2\.30 or newer"):
        check_git()


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 100 MiB of its own."""
    mount = ["mount", "-t", "tmpfs", "-o", "size=100m", "tmpfs", tmp_path]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("only root, and not in every container, may mount a small disk")
    yield tmp_path
    subprocess.run(["umount", "--lazy", tmp_path], check=True)


def test_a_full_disk_is_refused(small_disk, free_port):
    done = _up("--data", small_disk / "data", "--port", free_port)
    _assert_refused(done, f"The disk of the data folder {small_disk}/data is full", "200 MiB needed")


def test_a_disk_that_fills_while_the_database_is_made_leaves_no_ruin(small_disk):
    (small_disk / "filler").write_bytes(bytes(90 * 1024 * 1024))
    with pytest.raises(PostgresError, match="No space left on device"):
        EmbeddedPostgres(small_disk / "data").start()
    assert [path.name for path in (small_disk / "data").iterdir()] == ["logs"]


def test_a_disk_mounted_read_only_is_refused_to_root_too(small_disk, free_port):
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    _assert_refused(_up("--data", small_disk / "data", "--port", free_port), "Read-only file system")


def test_a_full_disk_is_named_with_what_is_needed(tmp_path):
    free = shutil.disk_usage(tmp_path).free
    with pytest.raises(CannotStart, match=r"is full \(\d+ MiB free, \d+ MiB needed\)"):
        DataFolder(tmp_path / "data").prepare(minimum_free=free * 2)


@pytest.mark.parametrize(
    "words",
    [("--port", "0"), ("--port", "65536"), ("--port", "http"), ("--runners", "-1"), ("--runners", "101")],
)
def test_a_value_out_of_range_is_refused(tmp_path, words):
    done = _up("--data", tmp_path / "data", *words)
    assert done.returncode == 2
    assert words[0] in done.stderr
    assert not (tmp_path / "data").exists()


def test_exit_without_demo_is_refused(tmp_path):
    _assert_refused(_up("--data", tmp_path / "data", "--exit"), "--demo")


def test_a_database_url_that_does_not_answer_is_named_without_its_password(tmp_path, free_port, monkeypatch):
    environment = {**os.environ, "DATABASE_URL": "postgres://me:hidden-word@127.0.0.1:1/forge"}
    done = subprocess.run(
        [sys.executable, "manage.py", "up", "--data", tmp_path / "data", "--port", str(free_port)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
    )
    _assert_refused(done, "The database of DATABASE_URL cannot be used")
    assert "hidden-word" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    "url", ["mysql://me:hidden-word@h/x", "nonsense hidden-word", "postgres://h:hidden-word/x", "postgres://h", ""]
)
def test_a_database_url_of_no_postgresql_is_explained_without_its_password(tmp_path, free_port, url):
    done = subprocess.run(
        [sys.executable, "manage.py", "up", "--data", tmp_path / "data", "--port", str(free_port)],
        cwd=ROOT,
        env={**os.environ, "DATABASE_URL": url},
        capture_output=True,
        text=True,
        timeout=240,
    )
    _assert_refused(done, "DATABASE_URL does not name a PostgreSQL database")
    assert "hidden-word" not in done.stdout + done.stderr


def test_a_killed_start_leaves_no_child_to_the_next_one(tmp_path):
    folder = DataFolder(tmp_path / "data")
    folder.prepare()
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as left_over:
        folder.remember_children([left_over.pid])
        assert folder.end_left_over_children() == 1
        assert left_over.wait(60) == -9


def test_a_process_that_got_the_number_of_a_former_child_is_left_alone(tmp_path):
    folder = DataFolder(tmp_path / "data")
    folder.prepare()
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as stranger:
        (folder.path / "children.json").write_text(f'{{"{stranger.pid}": "1"}}')
        assert folder.end_left_over_children() == 0
        assert stranger.poll() is None
        stranger.kill()
