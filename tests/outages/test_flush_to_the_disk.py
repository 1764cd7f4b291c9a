"""What was answered with success is on the disk: by each connection's settings, and by what is flushed before what."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from django.core.files.storage import default_storage
from django.db import connection

from ci.models import Log, LogChunk
from ci.storage import logs
from forge.git import durable
from forge.git.program import environment, run
from forge.postgres import EmbeddedPostgres
from tests.forge.git.worktree import WorkTree
from tests.playground import Playground

ROOT = Path(__file__).resolve().parents[2]
STRICT = {"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on"}
SHOW = """
import asyncio, json, psycopg
from django.db import connection
from ci.waiting import process
from ci.lifecycle import watch

async def hub():
    return process.current().hub._parameters

def shown(session):
    names = ["fsync", "full_page_writes", "synchronous_commit"]
    return {name: session.execute(f"SHOW {name}").fetchone()[0] for name in names}

connection.ensure_connection()
found = {"web, qcluster and watch": shown(connection.connection)}
with watch.Watch()._leading._own_connection() as session:
    found["the watch's own"] = shown(session)
with psycopg.connect(**asyncio.run(hub())) as session:
    found["the hub's"] = shown(session)
print(json.dumps(found))
"""


@pytest.fixture
def server() -> Iterator[EmbeddedPostgres]:
    """As `up` starts it, on a folder whose configuration was made careless."""
    with TemporaryDirectory(prefix="forge-flush-") as folder:
        Path(folder).chmod(0o711)  # as root, the server's user passes through it
        with EmbeddedPostgres(Path(folder, "data")) as careless:
            pass
        with (careless.folder / "postgresql.auto.conf").open("a") as file:
            file.writelines(f"{name} = off\n" for name in STRICT)
        with EmbeddedPostgres(Path(folder, "data")) as started:
            yield started


def test_every_connection_of_the_product_commits_to_the_disk(server: EmbeddedPostgres) -> None:
    given = {name: value for name, value in os.environ.items() if not name.startswith(("DATABASE_URL", "FORGE_"))}
    done = subprocess.run(
        [sys.executable, "-c", f"import django\ndjango.setup()\n{SHOW}"],
        cwd=ROOT,
        env={**given, "FORGE_DATA": str(server.data_dir), "DJANGO_SETTINGS_MODULE": "forge.settings"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert len(found) == 3
    assert all(settings == STRICT for settings in found.values()), found


def test_a_session_waits_for_the_disk_whatever_the_server_says(db: None) -> None:
    """The tests' own server forgets for speed; with DATABASE_URL, the server is anybody's."""
    with connection.cursor() as cursor:
        cursor.execute("SHOW synchronous_commit")
        assert cursor.fetchone()[0] == "on"


@pytest.fixture
def flushed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths of all that was flushed, in order."""
    paths: list[str] = []
    real = os.fsync

    def note(descriptor: int) -> None:
        paths.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", note)
    return paths


def test_a_merged_log_is_on_the_disk_before_its_rows_go(committing_playground: Playground, flushed: list[str]) -> None:
    committing_playground.run()
    assigned = committing_playground.assigned().begin()
    assigned.log("one", "two")
    assigned.complete()
    logs.seal(assigned.id)
    before: list[list[str]] = []

    def watch(execute: Callable[..., object], sql: str, *rest: object) -> object:
        if re.search(r'DELETE FROM "ci_logchunk"', sql):
            before.append(list(flushed))
        return execute(sql, *rest)

    with connection.execute_wrapper(watch):
        logs.merge(assigned.id)
    assert not LogChunk.objects.exists()
    blob = Path(default_storage.path(Log.objects.get().blob))
    wanted = [str(path) for path in (blob, blob.parent, blob.parent.parent, default_storage.path("."))]
    assert len(before) == 1
    assert [path for path in before[0] if path in wanted] == wanted


def test_a_new_repository_is_on_the_disk_before_its_row(committing_playground: Playground, flushed: list[str]) -> None:
    folder = committing_playground.repository.path
    assert str(folder.parent) == flushed[-1], "its name, in the folder around it"
    names = {Path(path).name for path in flushed}
    assert {"HEAD", "config", "refs", "heads", "objects"} <= names


def test_a_push_is_on_the_disk_with_its_folders(
    committing_playground: Playground, tmp_path: Path, flushed: list[str]
) -> None:
    path = committing_playground.repository.path
    old = path / "objects" / "00"
    old.mkdir()
    os.utime(old, (0, 0))
    since = time.time()
    work = WorkTree(tmp_path / "work").start()
    sha = work.commit({"a": "1"})
    work.git("push", "-q", str(path), "HEAD:refs/heads/deep/er")
    flushed.clear()
    durable.flush_push(path, ["refs/heads/deep/er", "refs/heads/gone/too"], since=since)
    found = [str(Path(one).relative_to(path)) for one in flushed]
    assert found.index("refs/heads/deep") < found.index("refs/heads") < found.index("refs") < found.index(".")
    assert f"objects/{sha[:2]}" in found
    assert "objects/00" not in found, "nothing changed in it"


def test_git_is_told_to_flush_objects_and_refs(committing_playground: Playground) -> None:
    path = committing_playground.repository.path
    assert run(path, ["config", "--get", "core.fsync"]).strip() == b"committed"


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace, which shows what a program flushes")
def test_git_flushes_objects_and_refs(committing_playground: Playground, tmp_path: Path) -> None:
    path = committing_playground.repository.path
    work = WorkTree(tmp_path / "work").start()
    sha = work.commit({"a": "1"})
    trace = tmp_path / "trace"
    done = subprocess.run(
        [
            *("strace", "-f", "-y", "-e", "trace=fsync", "-o", str(trace)),
            *("git", "-C", str(work.folder), "push", "-q", str(path), "HEAD:refs/heads/main"),
        ],
        env={**environment(), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    if "Operation not permitted" in done.stderr:
        pytest.skip("this machine lets nobody trace a process")
    assert done.returncode == 0, done.stderr
    text = trace.read_text()
    assert f"{path}/refs/heads/main.lock" in text
    assert len(re.findall(rf"{path}/objects/\S+/tmp_obj", text)) == 3, "a commit, a tree and a file"
    assert run(path, ["rev-parse", "refs/heads/main"]).decode().strip() == sha
