"""How do runners start in containers of Docker or Podman?"""

from __future__ import annotations

import builtins
import contextlib
import io
import math
import os
import re
import tarfile
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from django.conf import settings
from docker import APIClient
from docker.errors import APIError, ImageNotFound

from ci.scaling.launchers import docker_containers, docker_errors, docker_pull, marks
from ci.scaling.launchers.deadline import Deadline, within
from ci.scaling.launchers.docker_template import TOKEN_FILE, TOKEN_FOLDER, check_template, container
from ci.scaling.launchers.protocol import (
    LIMIT_SECONDS,
    Launch,
    LaunchError,
    PermanentLaunchError,
    Process,
    TransientLaunchError,
)

__all__ = ["DockerLauncher", "check_template", "from_settings"]

DEFAULT_ENGINE = "unix:///var/run/docker.sock"
# Of a call's time; some must be left for the container itself.
PULL_SHARE = 0.7
STARTED_ELSEWHERE_SECONDS = 3.0
_ID = re.compile(r"[0-9a-f]{64}")
# What has ended is kept for whoever still wants to know how, a person who reads its log too.
FORGET_SECONDS = 600
MAX_FORGOTTEN = 20
# Of those that do not run, a list tells of the newest: each is a question of its own. The others can be polled.
MAX_TOLD = 100
Answer = TypeVar("Answer")


def from_settings(*, installation: str) -> DockerLauncher:
    engine = getattr(settings, "SCALE_DOCKER_HOST", "") or os.environ.get("DOCKER_HOST", "") or DEFAULT_ENGINE
    return DockerLauncher(engine, installation=installation)


class DockerLauncher:
    """One container an attempt. Its id is the handle: a name may be given again, an id never is."""

    def __init__(self, engine: str, *, installation: str, limit: float = LIMIT_SECONDS) -> None:
        self._engine = engine
        self._installation = installation
        self._limit = limit
        self._version = ""

    def start(self, launch: Launch) -> str:
        if problems := check_template(launch.template):
            raise PermanentLaunchError(f"The template is wrong: {' '.join(problems)}")
        return self._ask(lambda client, deadline: self._start(client, launch, deadline))

    def poll(self, handle: str) -> Process | None:
        if not _ID.fullmatch(handle):
            return None
        return self._ask(lambda client, deadline: self._found(client, handle))

    def stop(self, handle: str, *, force: bool) -> None:
        if _ID.fullmatch(handle):
            self._ask(lambda client, deadline: self._stop(client, handle, force))

    def list(self, set_id: int | None = None) -> builtins.list[Process]:
        return self._ask(lambda client, deadline: self._list(client, set_id, deadline))

    # --- one call --------------------------------------------------------------------------------------------------

    def _ask(self, call: Callable[[APIClient, Deadline], Answer]) -> Answer:
        """One call within the limit, on a connection of its own: the client is not safe between threads."""

        def connected(deadline: Deadline) -> Answer:
            client: APIClient | None = None
            try:
                client = self._connect(deadline)
                return call(client, deadline)
            except docker_errors.ERRORS as error:
                self._version = ""  # the engine may have become another one
                raise docker_errors.no_answer(error) from None
            finally:
                if client is not None:
                    client.close()

        return within(self._limit, connected, engine=docker_errors.ENGINE)

    def _connect(self, deadline: Deadline | None = None) -> APIClient:
        # Podman speaks no newer version than 1.41, Docker since 29 no older one than 1.44: so the engine is asked.
        seconds = deadline.left() if deadline else self._limit
        client = APIClient(base_url=self._engine, version=self._version or "auto", timeout=math.ceil(seconds))
        self._version = str(client.api_version)
        return client

    # --- start -----------------------------------------------------------------------------------------------------

    def _start(self, client: APIClient, launch: Launch, deadline: Deadline) -> str:
        name = marks.name(launch.identity, installation=launch.installation)
        if found := self._begun(client, name, launch):
            return found
        if launch.template.get("pull") == "always":
            self._pull(launch.template["image"], deadline)
        created = self._create(client, launch, name, deadline)
        if created is None:  # somebody was faster
            return self._begun(client, name, launch) or self._vanished()
        return self._set_off(client, created, launch)

    def _pull(self, image: str, deadline: Deadline) -> None:
        seconds = deadline.left() * PULL_SHARE
        docker_pull.pull(image, engine=self._engine, connect=self._connect, seconds=seconds)

    def _create(
        self, client: APIClient, launch: Launch, name: str, deadline: Deadline, *, pulls: bool = True
    ) -> str | None:
        """The new container's id; None where the name is taken."""
        deadline.left()  # once nobody waits any more, nothing is made
        try:
            return str(client.create_container_from_config(container(launch), name)["Id"])
        except ImageNotFound as error:
            if not pulls or launch.template.get("pull") == "never":
                raise docker_errors.refused_pull_by(launch.template["image"], error) from None
        except APIError as error:
            if docker_errors.name_is_taken(error):
                return None
            raise _clean(docker_errors.refused_start(error), launch) from None
        self._pull(launch.template["image"], deadline)
        return self._create(client, launch, name, deadline, pulls=False)

    def _set_off(self, client: APIClient, container_id: str, launch: Launch) -> str:
        try:
            # A file, because whoever may look at the container sees its environment.
            client.put_archive(container_id, "/", _token_archive(launch.token))
            client.start(container_id)
        except docker_errors.ERRORS as error:
            # Else it would wait for ever, and its name stand in the way of the next try.
            with contextlib.suppress(*docker_errors.ERRORS):
                self._remove(client, container_id)
            if not isinstance(error, APIError):
                raise
            if docker_errors.says_it_is_gone(error):
                raise self._vanished_error() from None
            raise _clean(docker_errors.refused_start(error), launch) from None
        return container_id

    def _begun(self, client: APIClient, name: str, launch: Launch) -> str | None:
        """
        The id of the container that has this launch's name, if it is this launch's.

        One that was created and not started yet is another's at work, or what one left who was killed in between.
        """
        until = time.monotonic() + min(STARTED_ELSEWHERE_SECONDS, self._limit / 2)
        while True:
            try:
                found = client.inspect_container(name)
            except APIError as error:
                if docker_errors.is_gone(error):
                    return None
                raise
            if self._numbers(found) != (launch.set_id, launch.runner_id, launch.attempt):
                raise TransientLaunchError(f"the name {name} is taken by a container that is none of this forge's")
            if docker_containers.state(found) != "starting":
                return str(found["Id"])
            if time.monotonic() > until:
                return self._set_off(client, str(found["Id"]), launch)
            time.sleep(0.05)

    def _vanished(self) -> str:
        raise self._vanished_error()

    @staticmethod
    def _vanished_error() -> TransientLaunchError:
        return TransientLaunchError("the container was taken away while it was being started", 1.0)

    # --- poll, stop, list ------------------------------------------------------------------------------------------

    def _found(self, client: APIClient, container_id: str) -> Process | None:
        found = self._inspect(client, container_id)
        return None if found is None else self._told(client, found)

    def _inspect(self, client: APIClient, container_id: str) -> dict[str, Any] | None:
        """The very container; None where it is gone, or none of this installation's."""
        try:
            found: dict[str, Any] = client.inspect_container(container_id)
        except APIError as error:
            if docker_errors.is_gone(error):
                return None
            raise
        return found if found["Id"] == container_id and self._numbers(found) is not None else None

    def _told(self, client: APIClient, found: Mapping[str, Any]) -> Process:
        numbers = self._numbers(found)
        assert numbers is not None
        state = docker_containers.state(found)
        exit_code, reason = docker_containers.end(client, found) if state == "exited" else (None, "")
        return docker_containers.process(numbers, str(found["Id"]), state, exit_code=exit_code, reason=reason)

    def _stop(self, client: APIClient, container_id: str, force: bool) -> None:
        found = self._inspect(client, container_id)
        if found is None:
            return
        state = docker_containers.state(found)
        try:
            if force or state == "starting":
                self._remove(client, container_id)
            elif state == "running":
                # Not the engine's own stop: that one waits, and kills a job in hand after its grace.
                client.kill(container_id, signal="SIGTERM")
        except APIError as error:
            if not docker_errors.is_gone(error) and not docker_errors.is_not_running(error):
                raise

    def _remove(self, client: APIClient, container_id: str) -> None:
        """Kill it with all in it, and forget it: its id, its file system, its unnamed volumes."""
        try:
            client.remove_container(container_id, force=True, v=True)
        except APIError as error:
            if not docker_errors.is_gone(error) and not docker_errors.is_not_running(error):
                raise

    def _list(self, client: APIClient, set_id: int | None, deadline: Deadline) -> builtins.list[Process]:
        filters = {"label": marks.selector(installation=self._installation, set_id=set_id)}
        processes, others = [], []
        for summary in client.containers(all=True, filters=filters):
            numbers = marks.read(summary.get("Labels"), installation=self._installation)
            if numbers is None:
                continue
            # A summary says that a container runs, but not how it ended.
            if docker_containers.state_of(str(summary["State"])) == "running":
                processes.append(docker_containers.process(numbers, str(summary["Id"]), "running"))
            else:
                others.append(summary)
        others.sort(key=docker_containers.starting_then_newest)
        for summary in others[:MAX_TOLD]:
            if deadline.left() < self._limit / 2:
                break
            if found := self._inspect(client, str(summary["Id"])):
                processes.append(self._told(client, found))
        # Nobody else does; and what keeps it from forgetting must not keep it from telling what it found.
        with contextlib.suppress(*docker_errors.ERRORS):
            self._forget(client, others[: -MAX_FORGOTTEN - 1 : -1], deadline)
        return sorted(processes, key=lambda process: (process.set_id, process.runner_id, process.attempt))

    def _forget(self, client: APIClient, oldest: Iterable[Mapping[str, Any]], deadline: Deadline) -> None:
        """Remove those of these that ended long ago, as long as there is time."""
        long_ago = datetime.now(UTC) - timedelta(seconds=FORGET_SECONDS)
        for summary in oldest:
            if deadline.left() < self._limit / 4:
                return
            found = self._inspect(client, str(summary["Id"]))
            if found and docker_containers.ended_before(found, long_ago):
                self._remove(client, str(found["Id"]))

    def _numbers(self, found: Mapping[str, Any]) -> tuple[int, int, int] | None:
        return marks.read(found.get("Config", {}).get("Labels"), installation=self._installation)


def _token_archive(token: str) -> bytes:
    """A tar of the token's file. Whoever runs in the container may read it, and take it away with its folder."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        folder = tarfile.TarInfo(TOKEN_FOLDER.lstrip("/"))
        folder.type, folder.mode, folder.mtime = tarfile.DIRTYPE, 0o777, int(time.time())
        archive.addfile(folder)
        file = tarfile.TarInfo(TOKEN_FILE.lstrip("/"))
        file.size, file.mode, file.mtime = len(token), 0o444, int(time.time())
        archive.addfile(file, io.BytesIO(token.encode()))
        end = archive.offset + 2 * tarfile.BLOCKSIZE
    # Podman stops to read at the end's two empty blocks, and fails now and then over the padding after them.
    return stream.getvalue()[:end]


def _clean(error: LaunchError, launch: Launch) -> LaunchError:
    """The same error without the token, should an engine ever repeat what it was given."""
    if launch.token not in error.reason:
        return error
    reason = error.reason.replace(launch.token, "***")
    if isinstance(error, TransientLaunchError):
        return TransientLaunchError(reason, error.retry_after)
    return PermanentLaunchError(reason)
