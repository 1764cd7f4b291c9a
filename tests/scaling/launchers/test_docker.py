"""Do runners start, end and are they found again in containers of Docker and Podman?"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
from docker import APIClient
from docker.errors import DockerException

from tests.scaling.fakes.engine import Engine
from tests.scaling.launchers.containers import IMAGE, ContainerBench, bring_image
from tests.scaling.launchers.contract import Bench, LauncherContract

REAL = {
    "docker": os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock",
    "podman": os.environ.get("CONTAINER_HOST") or "unix:///run/podman/podman.sock",
}


@pytest.fixture(params=["docker", "podman"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    faked = Engine(tmp_path / "engine", podman=request.param == "podman")
    faked.containers.images.add(IMAGE)
    yield faked
    faked.close()


class TestFakedEngine(LauncherContract):
    @pytest.fixture
    def bench(self, engine: Engine, tmp_path: Path) -> Iterator[Bench]:
        bench = ContainerBench(str(engine.path), tmp_path)
        yield bench
        bench.close()


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
