"""Launchers: what starts, finds and ends the processes of a set's runners."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from types import ModuleType
from typing import Any, cast

from ci.scaling.launchers.protocol import CheckTemplate, FromSettings, Launcher

# Loaded when first asked for: the clients of the engines are large, and most installations use one of them.
MODULES = {
    "local": "ci.scaling.launchers.local",
    "docker": "ci.scaling.launchers.docker",
    "kubernetes": "ci.scaling.launchers.kubernetes",
}


def launcher(kind: str, *, installation: str) -> Launcher:
    """A launcher of this kind (RunnerSet.launcher) for one installation. Raises ValueError, LaunchError."""
    return cast(FromSettings, _module(kind).from_settings)(installation=installation)


def check_template(kind: str, template: Mapping[str, Any]) -> list[str]:
    """What is wrong with the template of a set with this kind of launcher; a sentence each. Raises ValueError."""
    return cast(CheckTemplate, _module(kind).check_template)(template)


def _module(kind: str) -> ModuleType:
    if kind not in MODULES:
        raise ValueError(f"There is no launcher '{kind}'; there are {', '.join(MODULES)}.")
    return importlib.import_module(MODULES[kind])
