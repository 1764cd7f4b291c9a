"""Is the secret key made once, kept, and private?"""

import fcntl
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

from forge.secret_key import load_secret_key

ROOT = Path(__file__).resolve().parents[2]


def test_it_is_made_once_and_only_its_owner_reads_it(tmp_path):
    key = load_secret_key(tmp_path)
    assert len(key) >= 64
    assert load_secret_key(tmp_path) == key
    assert stat.S_IMODE((tmp_path / "secret_key").stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["secret_key"]


def test_a_missing_folder_is_not_made_and_gives_a_key_of_this_process(tmp_path):
    assert load_secret_key(tmp_path / "data") != load_secret_key(tmp_path / "data")
    assert not (tmp_path / "data").exists()


def test_an_empty_file_is_filled(tmp_path):
    (tmp_path / "secret_key").touch()
    assert load_secret_key(tmp_path) == load_secret_key(tmp_path) != ""


def test_processes_that_start_at_once_get_one_key(tmp_path):
    code = (
        "import sys; from pathlib import Path; from forge.secret_key import load_secret_key as load\n"
        "print('ready', flush=True); sys.stdin.read(1); print(load(Path(sys.argv[1])))"
    )
    starters = [
        subprocess.Popen(
            [sys.executable, "-c", code, tmp_path], cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        for _ in range(6)
    ]
    for starter in starters:
        starter.stdout.readline()
    for starter in starters:
        starter.stdin.write("x")
        starter.stdin.flush()
    keys = {starter.communicate(timeout=120)[0].strip() for starter in starters}
    assert len(keys) == 1
    assert keys == {load_secret_key(tmp_path)}


def test_who_comes_while_it_is_made_waits_and_gets_it(tmp_path):
    path, found = tmp_path / "secret_key", []
    thread = threading.Thread(target=lambda: found.append(load_secret_key(tmp_path)))
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        inode = path.stat().st_ino
        thread.start()
        limit = time.monotonic() + 60
        while thread.is_alive() and not _somebody_waits_for(inode):
            assert time.monotonic() < limit
        file.write("made by the first\n")
    thread.join(60)
    assert found == ["made by the first"] == [load_secret_key(tmp_path)]


def _somebody_waits_for(inode):
    """Linux says so by an arrow (proc(5), /proc/locks)."""
    return any("->" in line and f":{inode} " in line for line in Path("/proc/locks").read_text().splitlines())
