"""Do runners start, end and are they found again in containers of Docker and Podman?"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
from docker import APIClient
from docker.errors import DockerException

from ci.scaling.launchers.protocol import Launcher
from tests.scaling.launchers.containers import IMAGE, ContainerBench, bring_image
from tests.scaling.launchers.contract import Bench, LauncherContract, Work, launch, until_state

REAL = {
    "docker": os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock",
    "podman": os.environ.get("CONTAINER_HOST") or "unix:///run/podman/podman.sock",
}


class TestFakedEngine(LauncherContract):
    """Row 50."""

    @pytest.fixture
    def bench(self, containers: ContainerBench) -> Bench:
        return containers


class TestRealEngine(LauncherContract):
    """The same suite where `docker info` or `podman info` would answer."""

    @pytest.fixture(params=["docker", "podman"])
    def bench(self, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
        address = REAL[request.param]
        if not address.startswith("unix://"):
            pytest.skip(f"{address} is no unix socket of this machine")
        path = address.removeprefix("unix://")
        try:
            client = APIClient(base_url=address, version="auto", timeout=60)
        except (DockerException, requests.exceptions.RequestException):
            pytest.skip(f"no engine of {request.param} answers at {path}")
        if not client.images(IMAGE):
            bring_image(client)
        client.close()
        bench = ContainerBench(path, tmp_path)
        yield bench
        bench.close()

    def test_an_end_for_want_of_memory_says_so(self, bench: Bench, launcher: Launcher) -> None:
        assert isinstance(bench, ContainerBench)
        handle = launcher.start(launch(bench.template(Work.OUT_OF_MEMORY)))
        process = until_state(launcher, handle, "exited")
        assert process.exit_code == 137
        if not bench.client.inspect_container(handle)["State"]["OOMKilled"]:
            pytest.skip("this engine does not tell who killed it (Podman 4 with cgroups v1)")
        assert "out of memory" in process.reason
