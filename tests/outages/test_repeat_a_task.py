"""A task that failed, as one does whose database goes away, is executed again; one that always fails is given up."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connection
from django.utils import timezone
from django_q.models import Failure, OrmQ
from django_q.tasks import async_task

from tests.forge.git.live import ROOT, database_url
from tests.lifecycle.test_watch import eventually


@pytest.fixture
def cluster(transactional_db: None, tmp_path: Path) -> Iterator[None]:
    environment = {
        **os.environ,
        "DATABASE_URL": database_url(connection.settings_dict),
        "FORGE_DATA": str(settings.DATA_DIR),
    }
    with (tmp_path / "log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "manage.py", "qcluster"],
            cwd=ROOT,
            env=environment,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    yield
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def test_it_is_executed_three_times_in_all(cluster: None) -> None:
    async_task("math.sqrt", -1)
    for attempt in (1, 2, 3):
        eventually(
            lambda attempt=attempt: Failure.objects.filter(attempt_count=attempt).exists(),  # type: ignore[misc]
            f"attempt {attempt} has failed",
        )
        if attempt < 3:
            assert OrmQ.objects.get().lock > timezone.now(), "it waits for its next turn"
            OrmQ.objects.update(lock=timezone.now())
    eventually(lambda: not OrmQ.objects.exists(), "it is given up")
    assert Failure.objects.get().attempt_count == 3
