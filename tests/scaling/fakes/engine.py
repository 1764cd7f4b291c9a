"""How does Docker's or Podman's engine answer? Over a unix socket, as its API's documentation and a real one do.

Source: Docker Engine API v1.41; Podman 4.3's compatible API where its answers differ (`podman=True`).
"""

from __future__ import annotations

import json
import re
import signal
import socketserver
import struct
import threading
from collections.abc import Callable
from datetime import datetime
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.scaling.fakes.containers import Container, Containers, Refused

VERSION = "1.41"
LEAST_VERSION = "1.12"
_PATH = re.compile(r"(?:/v(\d+\.\d+))?(/.*)")


class Engine:
    """A faked engine at a unix socket. `calls` remembers method and path of each request, `before` may refuse one."""

    def __init__(self, folder: Path, *, podman: bool = False) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / "engine.sock"
        self.podman = podman
        self.containers = Containers(folder / "containers")
        self.calls: list[tuple[str, str]] = []
        self.before: Callable[[str, str], None] = lambda method, path: None
        self._server = _Server(str(self.path), _handler(self))
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self.containers.close()
        self._server.shutdown()
        self._server.server_close()


class _Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that hang up are nothing to tell of."""


def _handler(engine: Engine) -> type[BaseHTTPRequestHandler]:
    class Handler(_Handler):
        pass

    Handler.engine = engine
    return Handler


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    engine: Engine

    def log_message(self, format: str, *args: object) -> None:
        """Silent."""

    def address_string(self) -> str:
        return "unix"

    def do_GET(self) -> None:
        self._serve()

    do_POST = do_PUT = do_DELETE = do_GET

    def _serve(self) -> None:
        split = urlsplit(self.path)
        found = _PATH.fullmatch(unquote(split.path))
        query = {name: values[-1] for name, values in parse_qs(split.query).items()}
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        assert found is not None
        path = found[2]
        self.engine.calls.append((self.command, path))
        try:
            _check_version(found[1])
            self.engine.before(self.command, path)
            for method, pattern, route in _ROUTES:
                if method == self.command and (matched := re.fullmatch(pattern, path)):
                    route(self, query, body, *matched.groups())
                    return
            raise Refused(404, "page not found")
        except Refused as error:
            error = _as_podman(error) if self.engine.podman else error
            self._answer(error.status, {"message": error.message}, headers=error.headers)

    def _answer(self, status: int, body: Any = None, *, headers: dict[str, str] | None = None) -> None:
        content = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"Api-Version": VERSION, **(headers or {})}.items():
            self.send_header(name, value)
        if status not in (204, 304):
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    # --- routes ----------------------------------------------------------------------------------------------------

    def version(self, query: dict[str, str], body: bytes) -> None:
        self._answer(200, {"ApiVersion": VERSION, "MinAPIVersion": LEAST_VERSION, "Os": "linux", "Arch": "amd64"})

    def pull(self, query: dict[str, str], body: bytes) -> None:
        name, tag = query["fromImage"], query.get("tag", "")
        image = f"{name}@{tag}" if tag.startswith("sha256:") else f"{name}:{tag}"
        if self.engine.podman:  # it answers before it asks the registry, and tells of errors further down
            self._begin_stream()
            try:
                self._registry(image)()
            except Refused as error:
                self._line({"error": error.message, "errorDetail": {"message": error.message}})
            self._line(None)
            return
        self._registry(image)()
        self._begin_stream()
        self._line({"status": f"Pulling from {name}", "id": tag})
        self._line({"status": f"Status: Downloaded newer image for {image}"})
        self._line(None)

    def _registry(self, image: str) -> Callable[[], None]:
        containers = self.engine.containers

        def fetch() -> None:
            if image not in containers.registry:
                raise Refused(404, f"manifest for {image} not found: manifest unknown: manifest unknown")
            containers.registry[image]()
            containers.images.add(image)

        return fetch

    def _begin_stream(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def _line(self, value: Any) -> None:
        """One line of JSON as a chunk; None ends the answer."""
        content = b"" if value is None else json.dumps(value).encode() + b"\r\n"
        self.wfile.write(f"{len(content):x}\r\n".encode() + content + b"\r\n")
        self.wfile.flush()

    def create(self, query: dict[str, str], body: bytes) -> None:
        made = self.engine.containers.create(query["name"], json.loads(body))
        self._answer(201, {"Id": made.id, "Warnings": []})

    def summaries(self, query: dict[str, str], body: bytes) -> None:
        wanted = json.loads(query.get("filters", "{}")).get("label", [])
        everything = query.get("all") in ("1", "true")
        self._answer(
            200,
            [
                self._summary(each)
                for each in reversed(self.engine.containers.all())  # the newest first
                if (everything or each.status == "running") and _has(each, wanted)
            ],
        )

    def _summary(self, container: Container) -> dict[str, Any]:
        words = {"created": "Created", "running": "Up 1 second", "exited": f"Exited ({container.exit_code}) 1 s ago"}
        return {
            "Id": container.id,
            "Names": [f"/{container.name}"],
            "Image": container.config["Image"],
            "Labels": container.config.get("Labels") or {},
            "State": self._word(container),
            "Status": words[container.status],
            "Created": int(datetime.fromisoformat(container.created).timestamp()),
        }

    def inspect(self, query: dict[str, str], body: bytes, wanted: str) -> None:
        container = self.engine.containers.get(wanted)
        state = {
            "Status": self._word(container),
            "Running": container.status == "running",
            "OOMKilled": container.box.out_of_memory and container.status == "exited",
            "ExitCode": container.exit_code,
            "Error": "" if self.engine.podman else container.error,
            "StartedAt": container.started,
            "FinishedAt": container.finished,
        }
        config = {**container.config, "Tty": False}
        host = config.pop("HostConfig", {})
        self._answer(
            200,
            {"Id": container.id, "Name": f"/{container.name}", "State": state, "Config": config, "HostConfig": host},
        )

    def _word(self, container: Container) -> str:
        return "stopped" if self.engine.podman and container.status == "exited" else container.status

    def extract(self, query: dict[str, str], body: bytes, wanted: str) -> None:
        self.engine.containers.extract(wanted, query["path"], body)
        self._answer(200)

    def start(self, query: dict[str, str], body: bytes, wanted: str) -> None:
        self._answer(204 if self.engine.containers.start(wanted) else 304)

    def kill(self, query: dict[str, str], body: bytes, wanted: str) -> None:
        name = query.get("signal", "SIGKILL")
        self.engine.containers.kill(wanted, int(name) if name.isdigit() else signal.Signals[name])
        self._answer(204)

    def logs(self, query: dict[str, str], body: bytes, wanted: str) -> None:
        lines = self.engine.containers.get(wanted).box.log.read_bytes().splitlines(keepends=True)
        tail = query.get("tail", "all")
        kept = lines if tail == "all" else lines[-int(tail) :]
        # Without a terminal each piece has a head: 1 for stdout or 2 for stderr, and its length.
        self._answer(200, b"".join(struct.pack(">BxxxL", 2, len(line)) + line for line in kept))

    def top(self, query: dict[str, str], body: bytes, wanted: str) -> None:
        container = self.engine.containers.get(wanted)
        if container.status != "running":
            raise Refused(409, f"Container {container.id} is not running")
        self._answer(200, {"Titles": ["PID"], "Processes": [[str(pid)] for pid in container.box.pids()]})

    def remove(self, query: dict[str, str], body: bytes, wanted: str) -> None:
        self.engine.containers.remove(wanted, force=query.get("force", "").lower() in ("1", "true"))
        self._answer(204)


_ONE = r"/containers/([^/]+)"
_ROUTES: list[tuple[str, str, Callable[..., None]]] = [
    ("GET", r"/version", _Handler.version),
    ("POST", r"/images/create", _Handler.pull),
    ("POST", r"/containers/create", _Handler.create),
    ("GET", r"/containers/json", _Handler.summaries),
    ("GET", rf"{_ONE}/json", _Handler.inspect),
    ("PUT", rf"{_ONE}/archive", _Handler.extract),
    ("POST", rf"{_ONE}/start", _Handler.start),
    ("POST", rf"{_ONE}/kill", _Handler.kill),
    ("GET", rf"{_ONE}/logs", _Handler.logs),
    ("GET", rf"{_ONE}/top", _Handler.top),
    ("DELETE", _ONE, _Handler.remove),
]


def _check_version(asked: str | None) -> None:
    if asked is None:
        return
    number = tuple(map(int, asked.split(".")))
    if number > tuple(map(int, VERSION.split("."))):
        raise Refused(400, f"client version {asked} is too new. Maximum supported API version is {VERSION}")
    if number < tuple(map(int, LEAST_VERSION.split("."))):
        raise Refused(400, f"client version {asked} is too old. Minimum supported API version is {LEAST_VERSION}")


def _has(container: Container, wanted: list[str]) -> bool:
    labels = container.config.get("Labels") or {}
    return all(labels.get(name) == value for name, _, value in (each.partition("=") for each in wanted))


def _as_podman(error: Refused) -> Refused:
    """The status and words Podman 4.3 has for the same mishap."""
    message = error.message
    if error.status == 404 and message.startswith("No such container"):
        wanted = message.rpartition(" ")[2]
        return Refused(404, f'no container with name or ID "{wanted}" found: no such container')
    if error.status == 404 and message.startswith("No such image"):
        return Refused(404, f"no such image: {message.rpartition(' ')[2]}: image not known")
    if "already in use" in message:
        return Refused(500, f"container create: creating container storage: {message}: that name is already in use")
    if "is not running" in message:
        return Refused(500, "can only kill running containers: container state improper")
    if "executable file not found" in message:
        return Refused(500, f"runc: {message}: OCI runtime attempted to invoke a command that was not found")
    if message.startswith("network"):
        return Refused(500, "container create: unable to find network with name or ID: network not found")
    if error.status == 400:
        return Refused(500, f"normalizing image: normalizing name for compat API: {message}")
    return error
