"""How do forms, pages and the API save a runner set? With its template checked by the launcher that will read it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ci.lifecycle import runner_sets
from ci.lifecycle.errors import InvalidInput
from ci.models import RunnerSet
from ci.scaling.launchers import check_template


def save(*, runner_set_id: int | None, fields: Mapping[str, Any], version: int | None, actor: Any) -> RunnerSet:
    """As runner_sets.save_runner_set, which it calls. Raises InvalidInput also for what the launcher cannot use."""
    current = RunnerSet.objects.filter(pk=runner_set_id).first() or RunnerSet()
    kind = fields.get("launcher", current.launcher)
    template = fields.get("template", current.template)
    if kind in RunnerSet.Launcher.values and isinstance(template, dict) and fields.keys() & {"launcher", "template"}:
        problems = check_template(kind, template)
        if problems:
            raise InvalidInput({"template": " ".join(problems)})
    return runner_sets.save_runner_set(runner_set_id=runner_set_id, fields=fields, version=version, actor=actor)
