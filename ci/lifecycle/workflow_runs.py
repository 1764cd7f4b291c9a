"""Which workflows does another run's move start? Those of the default branch whose `workflow_run` names it."""

from __future__ import annotations

from ci.lifecycle import webhook_payloads, workflow_files
from ci.lifecycle.firing import Trigger, fire
from ci.lifecycle.transitions import Cause
from ci.models import Run
from forge.git import bare

# GitHub's limit, against runs that cause each other for ever.
MAX_CHAIN = 3


def fire_for(run_id: int, *, attempt: int, action: str) -> list[Run]:
    """The runs caused by `action` of this attempt. Asked again it finds them; a run that is gone causes none."""
    source = Run.objects.select_related("repository__owner", "actor").filter(pk=run_id).first()
    if source is None or _chain(source) >= MAX_CHAIN:
        return []
    repository = source.repository
    ref = f"refs/heads/{repository.default_branch}"
    sha = bare.resolve(repository, ref)
    if sha is None:
        return []
    cause = Cause(
        repository=repository,
        event="workflow_run",
        payload=webhook_payloads.workflow_run(source, action=action),
        ref=ref,
        sha=sha,
        title="",
        actor=source.actor,
        trusted=True,  # its file is the default branch's, which needs write access
        source_run=source,
        source_attempt=attempt,
        source_action=action,
    )
    return fire(Trigger(cause=cause), workflow_files.load_all(repository, sha))


def _chain(run: Run) -> int:
    length = 0
    cause = run.source_run
    while cause is not None and length < MAX_CHAIN:
        length += 1
        cause = cause.source_run
    return length
