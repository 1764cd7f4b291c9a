"""Do runners start, end and are they found again as Pods of a Kubernetes cluster?"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
import urllib3
from kubernetes.client import ApiClient, Configuration, CoreV1Api
from kubernetes.client.exceptions import OpenApiException
from kubernetes.config import ConfigException, load_kube_config
from pytest_django.fixtures import Settings

from tests.scaling.launchers.contract import Bench, LauncherContract
from tests.scaling.launchers.pods import PodBench


class TestFakedCluster(LauncherContract):
    """Row 50."""

    @pytest.fixture
    def bench(self, pods: PodBench) -> Bench:
        return pods


class TestRealCluster(LauncherContract):
    """The same suite where a kubeconfig names a cluster that answers. FORGE_TEST_NAMESPACE and FORGE_TEST_IMAGE say
    where, and with which image that has a shell."""

    @pytest.fixture
    def bench(self, settings: Settings) -> Iterator[Bench]:
        found = Configuration()
        try:
            load_kube_config(client_configuration=found, persist_config=False)
        except (ConfigException, OSError) as error:
            pytest.skip(f"no kubeconfig names a cluster: {error}")
        namespace = os.environ.get("FORGE_TEST_NAMESPACE", "default")
        settings.SCALE_KUBERNETES_NAMESPACES = [namespace]
        try:
            CoreV1Api(ApiClient(found)).list_namespaced_pod(namespace, limit=1, _request_timeout=10)
        except (OpenApiException, urllib3.exceptions.HTTPError):
            pytest.skip(f"no cluster answers at {found.host}")
        bench = PodBench(found, namespace=namespace, image=os.environ.get("FORGE_TEST_IMAGE", "busybox:1.36"))
        yield bench
        bench.close()
