"""How is the API server of a cluster asked, and what do its errors mean for a launch?"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import urllib3
from kubernetes import config
from kubernetes.client import ApiClient, Configuration
from kubernetes.client.exceptions import ApiException, OpenApiException
from kubernetes.config import ConfigException

from ci.scaling.launchers.deadline import SOON, Deadline
from ci.scaling.launchers.protocol import RETRY_SECONDS, LaunchError, PermanentLaunchError, TransientLaunchError

CLUSTER = "the cluster"
PAGE = 200
# What the client raises beside an answer.
ERRORS = (OpenApiException, urllib3.exceptions.HTTPError, ConfigException, OSError, ValueError)
_HEADERS = {"Accept": "application/json", "Content-Type": "application/json"}


class Answered(Exception):
    """The API server answered with an error: its status, and the Status object it sent."""

    def __init__(self, status: int, body: Mapping[str, Any], retry_after: str = "") -> None:
        super().__init__(f"status {status}")
        self.status = status
        self.reason = str(body.get("reason") or "")
        self.message = " ".join(str(body.get("message") or f"status {status}").split())
        self.causes = [str(cause.get("reason")) for cause in (body.get("details") or {}).get("causes") or []]
        self.retry_after = float(retry_after) if retry_after.isdigit() and 0 < int(retry_after) <= 3600 else None


class Cluster:
    """
    The API server. Bodies are plain JSON, since what a cluster knows may be newer than this client's models, and these
    repeat in their errors what they were given: also a token.
    """

    def __init__(self, connect: Callable[[], ApiClient]) -> None:
        self._connect = connect
        self._client: ApiClient | None = None

    def call(
        self,
        method: str,
        path: str,
        *,
        deadline: Deadline,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Raises Answered, and TransientLaunchError where there is no answer."""
        try:
            client = self._client = self._client or self._connect()
            request = client.param_serialize(
                method,
                path,
                query_params=list((query or {}).items()),
                header_params=dict(_HEADERS),
                body=body,
                auth_settings=["BearerToken"],
            )
            answer = client.call_api(*request, _request_timeout=deadline.left())
            content = answer.read()
        except ERRORS as error:
            self._client = None  # its address or certificate may be another one now
            raise _no_answer(error) from None
        known = _read(content)
        if 200 <= answer.status < 300 and known is not None:
            return known
        if answer.status == 401:
            self._client = None  # credentials expire; made anew, the client reads them again
        raise Answered(answer.status, known or {}, str(answer.headers.get("Retry-After") or ""))

    def pages(self, path: str, *, deadline: Deadline, selector: str) -> Iterator[dict[str, Any]]:
        """All objects with these labels, as they are now: without a resourceVersion the server asks its store.

        A list that outlives the server's memory of it (410) is begun anew.
        """
        for _ in range(3):
            try:
                yield from self._all(path, deadline=deadline, selector=selector)
                return
            except Answered as error:
                if error.status != 410:
                    raise
        raise TransientLaunchError(f"{CLUSTER} forgot a list before all of it was read", SOON)

    def _all(self, path: str, *, deadline: Deadline, selector: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        query = {"labelSelector": selector, "limit": PAGE}
        while True:
            page = self.call("GET", path, deadline=deadline, query=query)
            found += page.get("items") or []
            token = (page.get("metadata") or {}).get("continue")
            if not token:
                return found
            query["continue"] = token


def connection(*, kubeconfig: str, context: str) -> ApiClient:
    """
    A client by the named kubeconfig; else by the service account of the Pod this runs in; else by the default one.

    Raises ConfigException.
    """
    settings = Configuration()
    if not kubeconfig and os.environ.get("KUBERNETES_SERVICE_HOST") and not os.environ.get("KUBECONFIG"):
        config.load_incluster_config(client_configuration=settings)
    else:
        config.load_kube_config(
            config_file=kubeconfig or None,
            context=context or None,
            client_configuration=settings,
            persist_config=False,
        )
    return client_of(settings)


def client_of(settings: Configuration) -> ApiClient:
    # Who calls decides about another try, and how long all of it may take.
    settings.retries = False
    return ApiClient(settings)


def refused(error: Answered, what: str) -> LaunchError:
    """The API server did not create something."""
    said = f"{CLUSTER} refuses the {what}: {error.message}"
    if error.status == 403:
        # The quota's own words: there may be room later. Other refusals (rights, policies, limits) stay what they are.
        if "exceeded quota" in error.message:
            return TransientLaunchError(said, RETRY_SECONDS)
        if "NamespaceTerminating" in error.causes:
            return TransientLaunchError(said, RETRY_SECONDS)
        return PermanentLaunchError(said)
    if error.status in (400, 404, 405, 413, 415, 422):
        return PermanentLaunchError(said)
    if error.status == 409:
        return TransientLaunchError(said, error.retry_after or SOON)
    return TransientLaunchError(said, error.retry_after or RETRY_SECONDS)


def unanswered(error: Answered) -> TransientLaunchError:
    """The API server did not do what a poll, a stop or a list asks."""
    return TransientLaunchError(f"{CLUSTER} answers: {error.message}", error.retry_after or RETRY_SECONDS)


def _read(content: bytes | None) -> dict[str, Any] | None:
    try:
        known = json.loads(content or b"null")
    except ValueError:
        return None
    return known if isinstance(known, dict) else None


def _no_answer(error: Exception) -> TransientLaunchError:
    refused = isinstance(error, urllib3.exceptions.NewConnectionError)  # for urllib3 a kind of time-out
    if isinstance(error, urllib3.exceptions.TimeoutError) and not refused:
        return TransientLaunchError(f"{CLUSTER} did not answer in time", SOON)
    if isinstance(error, ConfigException):
        return TransientLaunchError(f"there is no usable configuration for {CLUSTER}: {_words(error)}")
    if isinstance(error, ApiException):
        return TransientLaunchError(f"{CLUSTER} cannot be reached: {' '.join(str(error.reason).split())[:200]}")
    return TransientLaunchError(f"{CLUSTER} cannot be reached: {_words(error)}")


def _words(error: Exception) -> str:
    words = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return " ".join(words.split())[:200]
