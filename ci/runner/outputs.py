"""Which outputs does a job hand on to those that need it?"""

from __future__ import annotations

from ci.runner.console import Console
from ci.runner.masks import storable
from ci.runner.session import Scope, Session

OUTPUT_LIMIT = 1024 * 1024  # characters, all outputs of a job together
MOST_OUTPUTS = 100


def evaluate_outputs(session: Session, scope: Scope, console: Console) -> dict[str, str]:
    """The job's outputs; a value with a secret in it is left out, as on GitHub: they are shown and stored in clear.

    Raises StepFailure.
    """
    raw = session.payload.definition.get("outputs")
    found = session.texts(raw, session.contexts(scope), session.functions(scope), what="outputs")
    outputs: dict[str, str] = {}
    size = 0
    for name, value in found.items():
        if session.masks.found_in(value):
            console.warning(f"Skip output '{name}' since it may contain secret.")
        elif size + len(name) + len(value) > OUTPUT_LIMIT or len(outputs) >= MOST_OUTPUTS or len(name) > 255:
            console.warning(
                f"Skip output '{name[:255]}': a job has at most {MOST_OUTPUTS} outputs "
                f"of {OUTPUT_LIMIT // 1024} KiB together. Pass files as artifacts."
            )
        else:
            size += len(name) + len(value)
            outputs[storable(name)] = storable(value)
            console.print(f"Set output '{name}'")
    return outputs
