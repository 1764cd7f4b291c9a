"""What may a runner set start, and who may say so? The one place that asks the launchers, and looks at the person."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, cast

from django.conf import settings
from django.utils.module_loading import import_string

from ci.models import RunnerSet
from forge.access import can_operate

MAX_TEMPLATE = 50_000
LOCAL_IS_FOR_OPERATORS = (
    "Only an administrator of the instance may let runners be local processes: their jobs run as the server's own user."
)


def is_trusted(actor: Any) -> bool:
    """Whether templates of theirs may reach beyond a container. None is the server itself."""
    return actor is None or can_operate(actor)


def launchers_for(actor: Any) -> list[str]:
    """The launchers that this person may choose."""
    return [kind.value for kind in RunnerSet.Launcher if kind != RunnerSet.Launcher.LOCAL or is_trusted(actor)]


def problems(*, launcher: str, template: Any, actor: Any) -> dict[str, str]:
    """What is wrong with these two together, if this person wants them, by field; a line each."""
    if not isinstance(template, dict):
        return {"template": 'This must be a JSON object, such as {"image": "debian:12"}.'}
    if not _can_be_kept(template):
        return {"template": f"This cannot be kept: at most {MAX_TEMPLATE} characters of plain JSON and Unicode."}
    if launcher not in RunnerSet.Launcher.values:
        return {}
    if launcher not in launchers_for(actor):
        return {"launcher": LOCAL_IS_FOR_OPERATORS}
    check = cast(Callable[..., list[str]], import_string(settings.SCALE_CHECK_TEMPLATE))
    found = check(launcher, template, trusted=is_trusted(actor))
    return {"template": "\n".join(found)} if found else {}


def _can_be_kept(template: Mapping[str, Any]) -> bool:
    """PostgreSQL takes neither NaN nor the character 0 nor half of a pair (PostgreSQL docs, "JSON Types")."""
    try:
        text = json.dumps(template, allow_nan=False, ensure_ascii=False)
        text.encode()
    except (ValueError, TypeError, RecursionError):
        return False
    return len(text) <= MAX_TEMPLATE and "\\u0000" not in text
