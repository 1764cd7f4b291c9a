"""Does `manage.py qcluster` end where it could only pretend to go on?"""

import os
import signal
import subprocess
import sys
import time

import pytest
from django.conf import settings
from django.db import connection
from django_q.models import OrmQ
from django_q.tasks import async_task

from tests.forge.git.live import ROOT, database_url

SECONDS = 120


def until(condition, what, log):
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"not within {SECONDS} s: {what}\n{log.read_text()}"
        time.sleep(0.05)


def children_of(pid):
    path = f"/proc/{pid}/task/{pid}/children"
    return [int(child) for child in open(path).read().split()] if os.path.exists(path) else []


@pytest.fixture
def log(tmp_path):
    return tmp_path / "log"


@pytest.fixture
def start(transactional_db, log):
    started = []

    def start():
        environment = {
            **os.environ,
            "DATABASE_URL": database_url(connection.settings_dict),
            "FORGE_DATA": str(settings.DATA_DIR),
        }
        with log.open("ab") as output:
            started.append(
                subprocess.Popen(
                    [sys.executable, "manage.py", "qcluster"],
                    cwd=ROOT,
                    env=environment,
                    stdout=output,
                    stderr=output,
                    start_new_session=True,
                )
            )
        return started[-1]

    yield start
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(SECONDS)


def test_a_killed_worker_ends_the_cluster_and_the_next_one_executes_what_waits(start, log):
    async_task("time.sleep", 0)
    first = start()
    until(lambda: not OrmQ.objects.exists(), "the first task is done", log)
    (sentinel,) = children_of(first.pid)
    workers = children_of(sentinel)
    assert len(workers) >= 3
    os.kill(workers[0], signal.SIGKILL)
    assert first.wait(SECONDS) == 1, log.read_text()
    until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in workers), "all of its processes ended", log)
    second = start()
    async_task("time.sleep", 0)
    until(lambda: log.read_text().count("Processed 'time.sleep'") == 2, "the next cluster executes tasks", log)
    second.terminate()
    assert second.wait(SECONDS) == 0, log.read_text()
