"""What does an error of Docker's or Podman's engine mean for a launch?"""

from __future__ import annotations

import re

import requests
from docker.errors import APIError, DockerException

from ci.scaling.launchers.deadline import SOON
from ci.scaling.launchers.protocol import RETRY_SECONDS, LaunchError, PermanentLaunchError, TransientLaunchError

RATE_LIMIT_SECONDS = 60.0
ENGINE = "the container engine"
# Podman answers 500 to much that Docker answers 400, 404 or 409 to, so its words must tell.
_NAME_TAKEN = re.compile(r"already in use|already exists", re.IGNORECASE)
_GONE = re.compile(r"no such container|no container with (?:name or )?id", re.IGNORECASE)
_NOT_RUNNING = re.compile(r"is not running|can only kill running|container state improper|already in progress", re.I)
_RATE_LIMIT = re.compile(r"toomanyrequests|too many requests|rate limit", re.IGNORECASE)
_NO_SUCH_IMAGE = re.compile(
    r"manifest (?:for .{1,500} )?(?:unknown|not found)|not found: manifest|name unknown|repository .{0,500}not found"
    r"|pull access denied|access denied|unauthorized|authentication required|no such image|image not known"
    r"|no matching manifest|invalid reference format|must be lowercase|cannot be used with",
    re.IGNORECASE,
)
_WRONG_TEMPLATE = re.compile(
    r"executable file not found|no such file or directory|command that was not found|exec format error"
    r"|invalid reference format|must be lowercase|network .{0,300}not found|network not found"
    r"|(?:exec|starting container process).{0,300}permission denied|unable to find user|no matching entries in passwd",
    re.IGNORECASE,
)


def name_is_taken(error: APIError) -> bool:
    return _status(error) == 409 or (_status(error) == 500 and bool(_NAME_TAKEN.search(_text(error))))


def is_gone(error: APIError) -> bool:
    """Of a call that concerns a container and nothing else."""
    return _status(error) == 404 or says_it_is_gone(error)


def says_it_is_gone(error: APIError) -> bool:
    """Of a call whose 404 may mean a network, an image or a program."""
    return bool(_GONE.search(_text(error)))


def is_not_running(error: APIError) -> bool:
    """Docker: 409; Podman: 500 with these words, or 409."""
    return _status(error) == 409 or bool(_NOT_RUNNING.search(_text(error)))


def refused_start(error: APIError) -> LaunchError:
    """The engine did not create or start the container."""
    status, said = _status(error), _text(error)
    if status == 429 or _RATE_LIMIT.search(said):
        return TransientLaunchError(f"{ENGINE} is asked too often: {said}", _retry_after(error, RATE_LIMIT_SECONDS))
    if status in (400, 404, 413) or (status >= 500 and _WRONG_TEMPLATE.search(said)):
        return PermanentLaunchError(f"{ENGINE} cannot start this: {said}")
    if status in (401, 403):
        return PermanentLaunchError(f"{ENGINE} does not allow this: {said}")
    return TransientLaunchError(f"{ENGINE} could not start it (status {status}): {said}", _retry_after(error))


def refused_pull(image: str, said: str, *, status: int, retry_after: float | None = None) -> LaunchError:
    """The engine did not get the image; `said` are its words, or the registry's."""
    reason = f"image {image} could not be pulled: {said or f'status {status}'}"
    if status == 429 or _RATE_LIMIT.search(said):
        return TransientLaunchError(reason, retry_after or RATE_LIMIT_SECONDS)
    if status in (400, 401, 403, 404) or _NO_SUCH_IMAGE.search(said):
        return PermanentLaunchError(reason)
    return TransientLaunchError(reason, retry_after or RETRY_SECONDS)


def refused_pull_by(image: str, error: APIError) -> LaunchError:
    return refused_pull(image, _text(error), status=_status(error), retry_after=_retry_after(error, 0) or None)


def no_answer(error: Exception) -> TransientLaunchError:
    """The engine is away, slow, or something else than an engine."""
    if isinstance(error, requests.exceptions.Timeout):
        return TransientLaunchError(f"{ENGINE} did not answer in time", SOON)
    if isinstance(error, APIError):
        return TransientLaunchError(f"{ENGINE} answered with status {_status(error)}: {_text(error)}")
    return TransientLaunchError(f"{ENGINE} cannot be reached: {_innermost(error)}")


# What the engine's client raises for a call; APIError is one of them.
ERRORS = (DockerException, requests.exceptions.RequestException, OSError, ValueError)


def _status(error: APIError) -> int:
    return int(error.status_code or 0)


def _text(error: APIError) -> str:
    return " ".join(str(error.explanation or "").split())


def _retry_after(error: APIError, otherwise: float = RETRY_SECONDS) -> float:
    header = error.response.headers.get("Retry-After", "") if error.response is not None else ""
    return float(header) if header.isdigit() and 0 < int(header) <= 3600 else otherwise


def _innermost(error: BaseException) -> str:
    """The words of the first cause: what lies around it only tells which layers it went through."""
    seen = {id(error)}
    while (cause := error.__cause__ or error.__context__) is not None and id(cause) not in seen:
        seen.add(id(cause))
        error = cause
    words = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return " ".join(words.split())[:200]
