"""How does an image come to the engine, where that may take longer than one call of a launcher?"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from docker import APIClient
from docker.errors import APIError

from ci.scaling.launchers import docker_errors
from ci.scaling.launchers.protocol import LaunchError, TransientLaunchError

# A registry that stands still for so long is asked anew, beside whatever still waits for it.
PULL_SECONDS = 1800.0
COME_AGAIN_SECONDS = 10.0

_lock = threading.Lock()
_running: dict[tuple[str, str], _Pull] = {}


class _Pull:
    """One image on its way. Its thread outlives the call that began it: a call that is broken off ends the download."""

    def __init__(self, key: tuple[str, str], connect: Callable[[], APIClient]) -> None:
        self._key = key
        self._connect = connect
        self._began = time.monotonic()
        self._done = threading.Event()
        self._error: LaunchError | None = None
        threading.Thread(target=self._run, name=f"pulls {key[1]}", daemon=True).start()

    @property
    def is_stuck(self) -> bool:
        return time.monotonic() - self._began > PULL_SECONDS

    def wait(self, seconds: float) -> None:
        """Raises LaunchError where it failed or is not done yet."""
        image = self._key[1]
        if not self._done.wait(seconds):
            raise TransientLaunchError(f"image {image} is still being pulled", COME_AGAIN_SECONDS)
        if self._error is not None:
            raise type(self._error)(*self._error_arguments(self._error))

    @staticmethod
    def _error_arguments(error: LaunchError) -> tuple[str, float] | tuple[str]:
        # Raised anew for each that waits: one error object would collect all their tracebacks.
        return (error.reason, error.retry_after) if isinstance(error, TransientLaunchError) else (error.reason,)

    def _run(self) -> None:
        try:
            client = self._connect()
            try:
                _pull(client, self._key[1])
            finally:
                client.close()
        except LaunchError as error:
            self._error = error
        except docker_errors.ERRORS as error:
            self._error = docker_errors.no_answer(error)
        finally:
            with _lock:
                if _running.get(self._key) is self:
                    del _running[self._key]
            self._done.set()


def pull(image: str, *, engine: str, connect: Callable[[], APIClient], seconds: float) -> None:
    """
    Have the engine get the image; wait `seconds` for it. Those who want one image at once share one pull.

    Raises TransientLaunchError where it may come yet, PermanentLaunchError where it never will.
    """
    key = (engine, image)
    with _lock:
        running = _running.get(key)
        if running is None or running.is_stuck:
            running = _running[key] = _Pull(key, connect)
    running.wait(seconds)


def _pull(client: APIClient, image: str) -> None:
    name, tag = split(image)
    try:
        for line in client.pull(name, tag=tag, stream=True, decode=True):
            # Once it has begun to answer, the engine can tell of an error only in here.
            if isinstance(line, dict) and "error" in line:
                raise docker_errors.refused_pull(image, " ".join(str(line["error"]).split()), status=0)
    except APIError as error:
        raise docker_errors.refused_pull_by(image, error) from None


def split(image: str) -> tuple[str, str]:
    """Name and tag, or digest, of an image; without a tag `latest`, and not all the tags there are."""
    if "@" in image:
        name, _, digest = image.partition("@")
        return name, digest
    name, colon, tag = image.rpartition(":")
    return (name, tag) if colon and "/" not in tag else (image, "latest")
