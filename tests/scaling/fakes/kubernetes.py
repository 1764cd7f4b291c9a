"""How does a Kubernetes API server answer? Over HTTP, for Pods and Secrets, as its documentation and a real one do.

Source: Kubernetes API reference, core/v1; "Kubernetes API Concepts" for lists in pages, preconditions and errors.
"""

from __future__ import annotations

import base64
import json
import re
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.scaling.fakes.cluster import KINDS, Failure, Store
from tests.scaling.fakes.kubelet import Kubelet

_PATH = re.compile(r"/api/v1/namespaces/([^/]+)/(pods|secrets)(?:/([^/]+)(/log)?)?")
BEARER = "cluster-token"


class Kubernetes:
    """A faked cluster at 127.0.0.1. `calls` remembers requests with their query and body, `before` may refuse one."""

    def __init__(self, folder: Path, *, namespaces: tuple[str, ...] = ("forge",)) -> None:
        self.store = Store(namespaces)
        self.kubelet = Kubelet(self.store, folder)
        self.calls: list[tuple[str, str, dict[str, str], Any]] = []
        self.before: Callable[[str, str], None] = lambda method, path: None
        self.bearer = BEARER
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        self.address = ("127.0.0.1", int(self._server.server_address[1]))
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self.kubelet.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that hang up are nothing to tell of."""


def _handler(cluster: Kubernetes) -> type[BaseHTTPRequestHandler]:
    class Handler(_Handler):
        pass

    Handler.cluster = cluster
    return Handler


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    cluster: Kubernetes

    def log_message(self, format: str, *args: object) -> None:
        """Silent."""

    def do_GET(self) -> None:
        self._serve()

    do_POST = do_DELETE = do_GET

    def _serve(self) -> None:
        split = urlsplit(self.path)
        query = {name: values[-1] for name, values in parse_qs(split.query).items()}
        content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = json.loads(content) if content else {}
        self.cluster.calls.append((self.command, split.path, query, body))
        try:
            if self.headers.get("Authorization") != f"Bearer {self.cluster.bearer}":
                raise Failure(401, "Unauthorized", "Unauthorized")
            self.cluster.before(self.command, split.path)
            found = _PATH.fullmatch(split.path)
            if found is None:
                raise Failure(404, "NotFound", "the server could not find the requested resource")
            self._answer(*self._do(found[2], found[1], found[3] or "", found[4] or "", query, body))
        except Failure as failure:
            self._answer(failure.code, failure.body, retry_after=failure.retry_after)

    def _do(
        self, kind: str, namespace: str, name: str, part: str, query: dict[str, str], body: Any
    ) -> tuple[int, dict[str, Any] | bytes]:
        store = self.cluster.store
        match self.command, bool(name):
            case "POST", False:
                return 201, store.create(kind, namespace, body, strict=query.get("fieldValidation") == "Strict")
            case "GET", False:
                return 200, self._page(kind, namespace, query)
            case "GET", True if part:
                pod = store.get(kind, namespace, name)
                boxes = self.cluster.kubelet.boxes(pod["metadata"]["uid"])
                box = boxes.get(query.get("container", "runner"))
                return 200, box.log.read_bytes() if box else b""
            case "GET", True:
                return 200, store.get(kind, namespace, name)
            case "DELETE", True:
                return 200, store.delete(kind, namespace, name, body)
        raise Failure(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")

    def _page(self, kind: str, namespace: str, query: dict[str, str]) -> dict[str, Any]:
        after = base64.b64decode(query.get("continue", "")).decode()
        items, more = self.cluster.store.list(
            kind,
            namespace,
            selector=query.get("labelSelector", ""),
            limit=int(query.get("limit", "0")),
            after=after,
        )
        metadata = {"resourceVersion": "1"}
        if more is not None:
            metadata["continue"] = base64.b64encode(more.encode()).decode()
        return {"kind": f"{KINDS[kind]}List", "apiVersion": "v1", "metadata": metadata, "items": items}

    def _answer(self, status: int, body: dict[str, Any] | bytes, *, retry_after: str = "") -> None:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain" if isinstance(body, bytes) else "application/json")
        self.send_header("Content-Length", str(len(content)))
        if retry_after:
            self.send_header("Retry-After", retry_after)
        self.end_headers()
        self.wfile.write(content)
