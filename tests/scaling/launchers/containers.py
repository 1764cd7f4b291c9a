"""What do the tests of the Docker launcher do to an engine, faked or real, beside the launcher?"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from docker import APIClient
from docker.errors import APIError

from ci.scaling.launchers import marks
from ci.scaling.launchers.docker import DockerLauncher
from ci.scaling.launchers.docker_template import TOKEN_FILE
from ci.scaling.launchers.protocol import LIMIT_SECONDS, TOKEN_VARIABLE, read_identity
from tests.scaling.fakes.boxes import command_lines
from tests.scaling.fakes.tap import Tap, Way
from tests.scaling.launchers.contract import INSTALLATION, Bench, Seen, Work, until
from tests.scaling.launchers.shell_image import root_archive

IMAGE = "localhost/forge-contract:1"
_WAIT = "while :; do sleep 0.1; done"
SCRIPTS = {
    # The last line tells that a signal is now heard.
    Work.LONG: f"trap 'exit 0' TERM; cat /proc/$$/environ; echo; cat {{token}}; echo; echo ready; {_WAIT}",
    Work.STUBBORN: f"trap '' TERM; setsid sh -c 'echo ready; {_WAIT}' & {_WAIT}",
    Work.SUCCEED: "exit 0",
    Work.FAIL: "echo 'no route to host' >&2; exit 3",
    Work.OUTDATED: "exit 7",
    # A megabyte more each time, so that there is always time to see it.
    Work.OUT_OF_MEMORY: (
        "a=0123456789abcdef; for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do a=$a$a; done; n=0;"
        ' while :; do n=$((n+1)); eval "v$n=\\$a"; sleep 0.01; done'
    ),
}


def template(work: Work) -> dict[str, Any]:
    base: dict[str, Any] = {"image": IMAGE, "network": "none", "pull": "never"}
    if work is Work.IMPOSSIBLE:
        return {**base, "image": "localhost/forge-no-such-image:1"}
    script = SCRIPTS[work].replace("{token}", '"$FORGE_RUNNER_TOKEN_FILE"')
    if work is Work.OUT_OF_MEMORY:
        base["memory"] = "32m"
    return {**base, "command": ["sh", "-c", script]}


class ContainerBench(Bench):
    """An engine at a unix socket, with a tap before it."""

    def __init__(self, engine: str, folder: Path) -> None:
        self.client = APIClient(base_url=f"unix://{engine}", version="auto", timeout=60)
        self.tap = Tap(engine, folder / "tap.sock")

    def launcher(self, *, installation: str = INSTALLATION, limit: float | None = None) -> DockerLauncher:
        return DockerLauncher(self.tap.address, installation=installation, limit=limit or LIMIT_SECONDS)

    def template(self, work: Work) -> dict[str, Any]:
        return template(work)

    def seen(self, handle: str) -> Seen:
        written = until(lambda: self._written(handle, "ready"), "the process")
        variables, token = written.split(b"\n")[:2]
        environment = dict(
            entry.decode().partition("=")[::2] for entry in variables.split(b"\0") if entry and b"=" in entry
        )
        assert TOKEN_VARIABLE not in environment
        return Seen(
            {**environment, TOKEN_VARIABLE: token.decode()},
            json.dumps(self.client.inspect_container(handle)) + command_lines(),
        )

    def count(self, identity: str) -> int:
        numbers = read_identity(identity)
        assert numbers is not None
        wanted = [f"{label}={number}" for label, number in zip(_NUMBERS, numbers, strict=True)]
        return len(self.client.containers(all=True, filters={"label": wanted}))

    def alive(self, handle: str) -> int:
        try:
            found = self.client.inspect_container(handle)
            if not found["State"]["Running"]:
                return 0
            if found["Config"]["Cmd"] == template(Work.STUBBORN)["command"]:
                until(lambda: self._written(handle, "ready"), "the child")
            return self._processes(handle, int(found["State"].get("Pid", 0)))
        except APIError as error:
            assert error.status_code in (404, 409), error
            return 0

    def replace(self, handle: str) -> Callable[[], bool]:
        found = self.client.inspect_container(handle)
        self.client.remove_container(handle, force=True)
        config = {**found["Config"], "HostConfig": {"NetworkMode": "none"}}
        config["Cmd"] = ["sh", "-c", _WAIT]
        other = self.client.create_container_from_config(
            {name: config[name] for name in ("Image", "Cmd", "Env", "Labels", "HostConfig")}, found["Name"].lstrip("/")
        )["Id"]
        self.client.start(other)
        return lambda: bool(self.client.inspect_container(other)["State"]["Running"])

    def lose(self, handle: str) -> None:
        self.client.remove_container(handle, force=True)

    def unable(self) -> AbstractContextManager[None]:
        return self._turned(Way.SHUT)

    def hanging(self, handle: str | None) -> AbstractContextManager[None]:
        return self._turned(Way.HELD)

    def close(self) -> None:
        for installation in (INSTALLATION, "elsewhere"):
            wanted = marks.selector(installation=installation, set_id=None)
            for container in self.client.containers(all=True, filters={"label": wanted}):
                with contextlib.suppress(APIError):
                    self.client.remove_container(container["Id"], force=True, v=True)
        self.tap.close()
        self.client.close()

    def _processes(self, handle: str, pid: int) -> int:
        """By the kernel where the container's first process is one of this machine's, else by the engine."""
        space = pid_space(pid)
        return pids_in(space) if space else len(self.client.top(handle)["Processes"])

    @contextlib.contextmanager
    def _turned(self, way: Way) -> Iterator[None]:
        self.tap.turn(way)
        try:
            yield
        finally:
            self.tap.turn(Way.OPEN)

    def _written(self, handle: str, word: str) -> bytes | None:
        written = bytes(self.client.logs(handle))
        return written if f"{word}\n".encode() in written else None


_NUMBERS = (marks.SET, marks.RUNNER, marks.ATTEMPT)


def bring_image(client: APIClient) -> None:
    """Have a real engine hold the image of the tests."""
    answer = client.import_image_from_data(root_archive(), repository="localhost/forge-contract", tag="1")
    made = json.loads(str(answer).strip().splitlines()[-1])["status"]
    client.tag(made, "localhost/forge-contract", "1")  # Podman 4 imports it without its name


def pid_space(pid: int) -> str:
    """The namespace of process ids this process lives in; "" where that is unknown."""
    try:
        return os.readlink(f"/proc/{pid}/ns/pid") if pid else ""
    except OSError:
        return ""


def pids_in(space: str) -> int:
    return sum(1 for entry in os.listdir("/proc") if entry.isdigit() and pid_space(int(entry)) == space)


__all__ = ["IMAGE", "TOKEN_FILE", "ContainerBench", "bring_image", "template"]
