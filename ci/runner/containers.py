"""Does the job need a container?"""

from __future__ import annotations

import shutil
from typing import Any

from ci.runner.payload import mapping
from ci.runner.session import Scope, Session, StepFailure

PROGRAMS = ("docker", "podman")


def check(session: Session, scope: Scope, definition: dict[str, Any], *, runner: str) -> None:
    """Raises StepFailure for a job with `container` or `services`: its steps must not run outside of them."""
    wanted = _wanted(session, scope, definition)
    if not wanted:
        return
    here = next((name for name in PROGRAMS if shutil.which(name, path=session.base_env["PATH"])), None)
    if here is None:
        raise StepFailure(
            f"This job needs {wanted}, and runner {runner} has neither Docker nor Podman. "
            "Remove `container` and `services` from the job, or give it labels of a runner that runs containers."
        )
    raise StepFailure(
        f"This job needs {wanted}; container jobs are not supported by this runner yet (although {here} is installed). "
        "Remove `container` and `services` from the job, or give it labels of a runner that runs containers."
    )


def _wanted(session: Session, scope: Scope, definition: dict[str, Any]) -> str:
    """What is asked for, in words; '' for nothing (an expression may come out empty)."""
    contexts, functions = session.contexts(scope), session.functions(scope)
    container = definition.get("container")
    image = mapping(container).get("image") if isinstance(container, dict) else container
    name = session.text(image, contexts, functions, what="container") if image else ""
    if name:
        return f"a container ('{name[:200]}')"
    services = definition.get("services")
    if isinstance(services, str):
        services = session.evaluate(services, contexts, functions, what="services")
    names = ", ".join(mapping(services))
    return f"service containers ({names[:200]})" if names else ""
