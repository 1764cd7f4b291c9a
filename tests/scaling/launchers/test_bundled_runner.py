"""Does the bundled runner do its job in a container and in a Pod, with the token as these bring it?"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.runner.fake_server import FakeServer
from tests.scaling.fakes.boxes import Box
from tests.scaling.fakes.engine import Engine
from tests.scaling.fakes.kubernetes import Kubernetes
from tests.scaling.launchers.containers import IMAGE, ContainerBench
from tests.scaling.launchers.contract import TOKEN, launch, until, until_ended, until_state
from tests.scaling.launchers.pods import NAMESPACE, PodBench

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def forge() -> Iterator[FakeServer]:
    fake = FakeServer()
    fake.start()
    fake.runners[TOKEN] = {"id": 17, "name": "burst-17", "labels": ["linux"], "ephemeral": True, "phase": "pending"}
    yield fake
    fake.stop()


def _template(forge: FakeServer, **more: Any) -> dict[str, Any]:
    # The image's own python is this one here; all else is as in a real container.
    command = [sys.executable, "-m", "ci.runner", "once"]
    return {"url": forge.url, "command": command, "environment": {"PYTHONPATH": str(ROOT)}, **more}


def _log(box: Box) -> str:
    return box.log.read_text()


def test_it_does_its_job_in_a_container_and_takes_the_tokens_file_away(
    forge: FakeServer, engine: Engine, containers: ContainerBench
) -> None:
    job = forge.add([{"run": "env"}])
    launcher = containers.launcher()
    handle = launcher.start(launch(_template(forge, image=IMAGE)))
    process = until_ended(launcher, handle)
    box = engine.containers.get(handle).box
    assert process is not None and (process.exit_code, process.reason) == (0, ""), _log(box)
    assert (job.state, job.conclusion) == ("ended", "success")
    assert not (box.folder / "forge-runner" / "token").exists()
    assert TOKEN not in job.text and TOKEN not in _log(box)


def test_it_does_its_job_in_a_pod(forge: FakeServer, cluster: Kubernetes, pods: PodBench) -> None:
    job = forge.add([{"run": "env"}])
    launcher = pods.launcher()
    handle = launcher.start(launch(_template(forge, image="runner:1", namespace=NAMESPACE)))
    process = until_state(launcher, handle, "exited")
    box = cluster.kubelet.boxes(handle.split("/")[2])["runner"]
    assert (process.exit_code, process.reason) == (0, ""), _log(box)
    assert (job.state, job.conclusion) == ("ended", "success")
    assert TOKEN not in job.text and TOKEN not in _log(box)


def test_it_ends_cleanly_when_it_is_stopped_while_it_waits(
    forge: FakeServer, engine: Engine, containers: ContainerBench
) -> None:
    launcher = containers.launcher()
    handle = launcher.start(launch(_template(forge, image=IMAGE)))
    box = engine.containers.get(handle).box
    until(lambda: "waits for jobs" in _log(box), "the runner")
    launcher.stop(handle, force=False)
    process = until_ended(launcher, handle)
    assert process is not None and process.exit_code == 0, _log(box)


def test_a_token_that_the_forge_does_not_know_is_told(
    forge: FakeServer, engine: Engine, containers: ContainerBench
) -> None:
    forge.runners.clear()
    launcher = containers.launcher()
    handle = launcher.start(launch(_template(forge, image=IMAGE)))
    process = until_ended(launcher, handle)
    assert process is not None and process.exit_code == 1
    assert "refused the runner" in process.reason and TOKEN not in process.reason
