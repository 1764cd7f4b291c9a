"""What does a job hand on at its end: outputs for those that need it, and where its deployment can be seen?"""

from __future__ import annotations

from ci.runner.console import Console
from ci.runner.masks import storable
from ci.runner.session import Scope, Session

LONGEST_URL = 1000
OUTPUT_LIMIT = 1024 * 1024  # characters, all outputs of a job together
MOST_OUTPUTS = 100


def evaluate_environment_url(session: Session, scope: Scope, console: Console) -> str:
    """The `url` of the job's `environment`, which may name what steps put out; "" where none can be shown.

    Raises StepFailure.
    """
    environment = session.payload.definition.get("environment")
    raw = environment.get("url") if isinstance(environment, dict) else None
    if raw is None:
        return ""
    url = session.text(raw, session.contexts(scope), session.functions(scope), what="environment.url").strip()
    if session.masks.found_in(url):
        console.warning("Skip environment.url since it may contain secret.")
    elif not url.startswith(("http://", "https://")) or len(url) > LONGEST_URL:
        console.warning(
            f"Skip environment.url: it must be an http or https address of at most {LONGEST_URL} characters."
        )
    else:
        return storable(url)
    return ""


def evaluate_outputs(session: Session, scope: Scope, console: Console) -> dict[str, str]:
    """The job's outputs; as on GitHub without the empty ones, and without those that have a secret in them.

    They are shown and stored in clear. Raises StepFailure.
    """
    raw = session.payload.definition.get("outputs")
    found = session.texts(raw, session.contexts(scope), session.functions(scope), what="outputs")
    outputs: dict[str, str] = {}
    size = 0
    for name, value in found.items():
        if not value:
            if console.debug:
                console.print(f"##[debug]Skip output '{name}' since it's empty")
        elif session.masks.found_in(value):
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
