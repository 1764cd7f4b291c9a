"""Which workflow does a runner of Forgejo or Gitea get? One with this one job, and only what the runner shall decide.

What the server has decided is not asked again: the job's condition, its matrix, its name, its labels. Such a runner
sees less (the needs of needs, a cancelled run) and would decide otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import yaml

from ci.interop.inlining import Values, as_text, as_tree, inline_condition, inline_tree
from ci.lifecycle import contexts
from ci.lifecycle.errors import UnfitJob
from ci.models import Job
from ci.workflow import permissions

# A Forgejo runner refuses a file with any key that it does not know.
_JOB_KEYS = ("env", "defaults", "container", "services", "outputs", "cancel-timeout-minutes")
_STEP_KEYS = (
    *("id", "name", "uses", "run", "working-directory", "shell", "with", "env"),
    *("continue-on-error", "timeout-minutes"),
)
_PERMISSIONS = (*permissions.COMMON, "attestations")
# The server's own time limit comes first, so that the job ends with its reason; the runner's is for when it is away.
_LATER_MINUTES = 1


def workflow_text(job: Job) -> str:
    """The YAML. Raises UnfitJob, ExpressionError."""
    return _dumped(workflow_of(job))


def workflow_of(job: Job) -> dict[str, Any]:
    """What stands in the YAML. Raises UnfitJob, ExpressionError."""
    run = job.run
    values: Values = {"inputs": contexts.inputs(job), "strategy": contexts.strategy_of(job)}
    called = job.parent.definition["called"] if job.parent is not None else None
    env = called["env"] if called else run.env
    defaults = called["defaults"] if called else run.defaults
    return {
        "name": as_text(run.workflow_name),
        **_filled({"run-name": as_text(run.title)}),
        "on": run.event,
        **_filled({"env": inline_tree(env, values), "defaults": inline_tree(defaults, values)}),
        **_permissions(run.permissions),
        "jobs": {job.key: _job(job, values)},
    }


def _permissions(given: Mapping[str, Any] | None) -> dict[str, Any]:
    """As the file has them, for the runner to see: what the token may do is the server's to decide."""
    if given is None:
        return {}
    if "all" in given:
        return {"permissions": given["all"]}
    return {"permissions": {name: level for name, level in given.items() if name in _PERMISSIONS}}


def _job(job: Job, values: Values) -> dict[str, Any]:
    definition: Mapping[str, Any] = job.definition
    return {
        "name": as_text(job.name),
        "runs-on": [as_text(label) for label in job.runs_on],
        "if": "always()",
        **_filled({"needs": list(job.needs)}),
        **(
            {"strategy": {"matrix": {key: [as_tree(value)] for key, value in job.matrix.items()}}} if job.matrix else {}
        ),
        "timeout-minutes": math.ceil(job.timeout_minutes) + _LATER_MINUTES,
        **_filled({key: inline_tree(definition.get(key), values) for key in _JOB_KEYS}),
        "steps": [_step(step, number, values) for number, step in enumerate(definition.get("steps") or [], 1)],
    }


def _step(step: Mapping[str, Any], number: int, values: Values) -> dict[str, Any]:
    if not (step.get("run") or step.get("uses")):
        other = ", ".join(sorted(set(step) - {"name", "id", "if"})) or "nothing"
        raise UnfitJob(
            f"Step {number} has neither run nor uses but {other}, which the runners of Forgejo and Gitea do not know: "
            "give the job labels of the bundled runner."
        )
    condition = inline_condition(step.get("if"), values)
    shown = {} if condition is None or condition == "" else {"if": condition}
    found = {**shown, **_filled({key: inline_tree(step.get(key), values) for key in _STEP_KEYS})}
    if str(found.get("id", "")).startswith("__"):  # made here, for steps without one: not for expressions
        del found["id"]
    return found


def _filled(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None and value not in ({}, [], "")}


class _Dumper(yaml.SafeDumper):
    """Every text in double quotes: no reader of YAML, of whatever version, takes one for a number or a truth value."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _quoted(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"')


_Dumper.add_representer(str, _quoted)


def _dumped(document: dict[str, Any]) -> str:
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=math.inf)
