"""What stands behind the launchers' tests? A faked engine and a faked cluster, made for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_django.fixtures import Settings

from tests.scaling.fakes.engine import Engine
from tests.scaling.fakes.kubernetes import BEARER, Kubernetes
from tests.scaling.launchers.containers import IMAGE, ContainerBench
from tests.scaling.launchers.pods import NAMESPACE, PodBench, settings_of


@pytest.fixture(params=["docker", "podman"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    faked = Engine(tmp_path / "engine", podman=request.param == "podman")
    faked.containers.images.add(IMAGE)
    yield faked
    faked.close()


@pytest.fixture
def containers(engine: Engine, tmp_path: Path) -> Iterator[ContainerBench]:
    bench = ContainerBench(str(engine.path), tmp_path)
    yield bench
    bench.close()


@pytest.fixture
def cluster(tmp_path: Path, settings: Settings) -> Iterator[Kubernetes]:
    settings.SCALE_KUBERNETES_NAMESPACES = [NAMESPACE]
    faked = Kubernetes(tmp_path / "cluster", namespaces=(NAMESPACE,))
    yield faked
    faked.close()


@pytest.fixture
def pods(cluster: Kubernetes) -> Iterator[PodBench]:
    host, port = cluster.address
    bench = PodBench(settings_of(f"http://{host}:{port}", BEARER), namespace=NAMESPACE, image="shell:1")
    yield bench
    bench.close()
