"""How is one runner started? Its attempt is in the database before the launcher hears of it, and never begun twice."""

from __future__ import annotations

import logging
from collections.abc import Callable

from ci.lifecycle import transitions
from ci.lifecycle.errors import NotFound
from ci.scaling.installation import installation, url_for
from ci.scaling.launchers.protocol import (
    Launch,
    Launcher,
    LaunchError,
    PermanentLaunchError,
    TransientLaunchError,
    identity_of,
)

logger = logging.getLogger(__name__)


def start(runner_id: int, *, launcher_of: Callable[[str], Launcher]) -> None:
    """Begin the next attempt of a runner that is due for one, start its process, and note what came of it."""
    try:
        begun = transitions.begin_launch(runner_id=runner_id)
    except NotFound:
        return
    if begun is None:
        return
    try:
        launcher = launcher_of(begun.launcher)
        handle = launcher.start(_launch(begun))
    except TransientLaunchError as error:
        _settle(begun, launcher_of(begun.launcher), error)
    except (PermanentLaunchError, ValueError) as error:
        logger.warning("runner %s cannot be started: %s", runner_id, error)
        transitions.launch_failed(runner_id=runner_id, attempt=begun.attempt, reason=str(error), permanent=True)
    except Exception as error:
        logger.exception("the %s launcher broke while it started runner %s", begun.launcher, runner_id)
        reason = f"The {begun.launcher} launcher broke: {type(error).__name__}; see the log of `manage.py scale`."
        transitions.launch_failed(runner_id=runner_id, attempt=begun.attempt, reason=reason)
    else:
        note(launcher, handle, runner_id=runner_id, attempt=begun.attempt)


def note(launcher: Launcher, handle: str, *, runner_id: int, attempt: int) -> None:
    """Keep the handle; a process whose attempt was given up meanwhile is ended, for nobody else would."""
    if not transitions.launched(runner_id=runner_id, attempt=attempt, handle=handle):
        launcher.stop(handle, force=True)


def _launch(begun: transitions.Begun) -> Launch:
    return Launch(
        identity=identity_of(set_id=begun.set_id, runner_id=begun.runner_id, attempt=begun.attempt),
        installation=installation(),
        set_id=begun.set_id,
        runner_id=begun.runner_id,
        attempt=begun.attempt,
        url=url_for(begun.launcher),
        token=begun.token,
        name=begun.name,
        labels=begun.labels,
        template=begun.template,
    )


def _settle(begun: transitions.Begun, launcher: Launcher, error: TransientLaunchError) -> None:
    """The call gave no process, or no answer: then there may be one. Where that cannot be told, it is looked for later:
    an attempt that may have a process stays open, and takes up room."""
    logger.warning("runner %s could not be started now: %s", begun.runner_id, error)
    identity = identity_of(set_id=begun.set_id, runner_id=begun.runner_id, attempt=begun.attempt)
    try:
        found = [process for process in launcher.list(begun.set_id) if process.identity == identity]
    except LaunchError as silence:
        logger.warning("nor can its process be looked for: %s", silence)
        transitions.launch_unanswered(runner_id=begun.runner_id, attempt=begun.attempt, reason=error.reason)
        return
    if found:
        note(launcher, found[0].handle, runner_id=begun.runner_id, attempt=begun.attempt)
        return
    transitions.launch_failed(
        runner_id=begun.runner_id, attempt=begun.attempt, reason=error.reason, retry_after=error.retry_after
    )
