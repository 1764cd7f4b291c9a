"""Which containers and images has the faked engine, and what has become of them?"""

from __future__ import annotations

import io
import re
import signal
import tarfile
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.scaling.fakes.boxes import Box

NEVER = "0001-01-01T00:00:00Z"
LEAST_MEMORY = 6 * 1024 * 1024
NETWORKS = frozenset({"default", "bridge", "none", "host"})
_REFERENCE = re.compile(r"[a-z0-9][a-z0-9._:/-]*(:[\w.-]+)?(@sha256:[0-9a-f]{64})?")


class Refused(Exception):
    """The engine's error answer: a status and what it says."""

    def __init__(self, status: int, message: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.headers = headers or {}


@dataclass
class Container:
    id: str
    name: str
    config: dict[str, Any]
    box: Box
    created: str
    status: str = "created"
    exit_code: int = 0
    error: str = ""
    started: str = NEVER
    finished: str = NEVER
    files: list[str] = field(default_factory=list)


class Containers:
    """The state of one engine. All of it changes under one lock, as a real engine locks each container."""

    def __init__(self, folder: Path) -> None:
        self.images: set[str] = set()
        # What the registry does when it is asked for an image; it may wait, or raise Refused.
        self.registry: dict[str, Callable[[], None]] = {}
        self.lock = threading.RLock()
        self._folder = folder
        self._made: dict[str, Container] = {}
        self._count = 0

    def all(self) -> list[Container]:
        with self.lock:
            return list(self._made.values())

    def get(self, wanted: str) -> Container:
        """By id, the beginning of an id, or name."""
        with self.lock:
            for found in self._made.values():
                if wanted in (found.id, found.name):
                    return found
            begun = [found for key, found in self._made.items() if len(wanted) >= 12 and key.startswith(wanted)]
        if len(begun) == 1:
            return begun[0]
        raise Refused(404, f"No such container: {wanted}")

    def create(self, name: str, config: dict[str, Any]) -> Container:
        image = str(config.get("Image", ""))
        host = config.get("HostConfig", {})
        if not _REFERENCE.fullmatch(image):
            raise Refused(400, "invalid reference format")
        if image not in self.images:
            raise Refused(404, f"No such image: {image}")
        if 0 < int(host.get("Memory", 0)) < LEAST_MEMORY:
            raise Refused(400, "Minimum memory limit allowed is 6MB")
        with self.lock:
            for other in self._made.values():
                if other.name == name:
                    raise Refused(
                        409,
                        f'Conflict. The container name "/{name}" is already in use by container "{other.id}". You have'
                        " to remove (or rename) that container to be able to reuse that name.",
                    )
            self._count += 1
            key = f"{self._count:064x}"
            box = Box(key, self._folder / key, ended=self._ended)
            made = self._made[key] = Container(key, name, config, box, _now())
            return made

    def extract(self, wanted: str, path: str, archive: bytes) -> None:
        found = self.get(wanted)
        target = found.box.folder / path.lstrip("/")
        if not target.is_dir():
            raise Refused(404, f"Could not find the file {path} in container {wanted}")
        with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
            # Before Python 3.11.4 there is no filter, and what it trusts is not limited.
            trusting = {"filter": "fully_trusted"} if hasattr(tarfile, "fully_trusted_filter") else {}
            opened.extractall(target, **trusting)  # type: ignore[arg-type]
            found.files += [f"{path.rstrip('/')}/{name}" for name in opened.getnames()]

    def start(self, wanted: str) -> bool:
        """False where it runs already (the engine answers 304)."""
        with self.lock:
            found = self.get(wanted)
            if found.status == "running":
                return False
            network = found.config.get("HostConfig", {}).get("NetworkMode", "default")
            if network not in NETWORKS:  # Docker looks for it no sooner
                raise Refused(404, f"network {network} not found")
            command = [*(found.config.get("Entrypoint") or []), *(found.config.get("Cmd") or [])]
            try:
                found.box.start(
                    command, self._variables(found), memory=found.config.get("HostConfig", {}).get("Memory", 0)
                )
            except OSError:
                found.exit_code = 127
                found.error = (
                    "failed to create shim task: OCI runtime create failed: runc create failed: unable to start"
                    f' container process: exec: "{command[0]}": executable file not found in $PATH: unknown'
                )
                raise Refused(400, found.error) from None
            found.status, found.started = "running", _now()
            return True

    def kill(self, wanted: str, number: int) -> None:
        with self.lock:
            found = self.get(wanted)
            if found.status != "running":
                raise Refused(409, f"Cannot kill container: {wanted}: Container {found.id} is not running")
        found.box.signal(number)

    def remove(self, wanted: str, *, force: bool) -> None:
        with self.lock:
            found = self.get(wanted)
            running = found.status == "running"
        if running and not force:
            raise Refused(
                409,
                f"You cannot remove a running container {found.id}. Stop the container before attempting removal or"
                " force remove",
            )
        if running:
            found.box.signal(signal.SIGKILL)
            found.box.join(60)
        with self.lock:
            self._made.pop(found.id, None)

    def close(self) -> None:
        for container in self.all():
            container.box.kill()
            if container.box.process is not None:
                container.box.join(60)

    def _variables(self, found: Container) -> dict[str, str]:
        """Its environment; paths of files put into it become the paths these have here, there being no own root."""
        pairs = dict(entry.partition("=")[::2] for entry in found.config.get("Env") or [])
        return {
            name: str(found.box.folder / value.lstrip("/")) if value in found.files else value
            for name, value in pairs.items()
        }

    def _ended(self, box: Box) -> None:
        with self.lock:
            found = self._made.get(box.mark)
            if found is not None:
                found.status, found.finished = "exited", _now()
                found.exit_code = box.exit_code or 0


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f000Z")
