"""Launchers: what starts, finds and ends the processes of a set's runners."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from types import ModuleType
from typing import Any, cast

from ci.scaling.launchers import trust
from ci.scaling.launchers.protocol import CheckTemplate, FromSettings, Launcher, PermanentLaunchError

# Loaded when first asked for: the clients of the engines are large, most installations use one of them, and one that
# uses none need not have them.
MODULES = {
    "local": "ci.scaling.launchers.local",
    "docker": "ci.scaling.launchers.docker",
    "kubernetes": "ci.scaling.launchers.kubernetes",
}
# Without the clients: a page that checks a template asks no engine.
TEMPLATES = {
    "local": "ci.scaling.launchers.local_template",
    "docker": "ci.scaling.launchers.docker_template",
    "kubernetes": "ci.scaling.launchers.kubernetes_template",
}


def launcher(kind: str, *, installation: str) -> Launcher:
    """A launcher of this kind (RunnerSet.launcher) for one installation. Raises ValueError, LaunchError."""
    return cast(FromSettings, _module(kind, MODULES).from_settings)(installation=installation)


def check_template(kind: str, template: Mapping[str, Any], *, trusted: bool = True) -> list[str]:
    """
    What is wrong with the template of a set with this kind of launcher; a sentence each. Raises ValueError.

    `trusted`: whether an administrator of the instance wrote it; nobody else's may reach beyond its own container.
    """
    with trust.written_by(trusted=trusted):
        return cast(CheckTemplate, _module(kind, TEMPLATES).check_template)(template)


def _module(kind: str, modules: Mapping[str, str]) -> ModuleType:
    if kind not in modules:
        raise ValueError(f"There is no launcher '{kind}'; there are {', '.join(modules)}.")
    try:
        return importlib.import_module(modules[kind])
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package in ("", "ci"):
            raise
        raise PermanentLaunchError(
            f"The launcher '{kind}' needs the Python package '{package}', which is not installed here: install what"
            " requirements.txt lists, and start the forge again."
        ) from error
