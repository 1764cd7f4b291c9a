"""How does the Markdown that a step leaves come to its job's page, where the runner hands it in apart from the step?"""

from __future__ import annotations

from ci.lifecycle.runtime_tokens import lock_caller
from ci.lifecycle.transitions.guard import guarded
from ci.lifecycle.transitions.update_steps import MAX_SUMMARY
from ci.models import Job, Step
from ci.workflow.storable import cleaned


@guarded
def keep_summary(*, job: Job, number: int, name: str, text: str) -> None:
    """Of an active job's step, ended or not yet heard of: the first text that is handed in for it stays.

    Raises NotFound, Unauthenticated, JobEnded.
    """
    locked = lock_caller(job)
    step, _ = Step.objects.get_or_create(job=locked, number=number, defaults={"name": name[:500]})
    if not step.summary:
        step.summary = cleaned(text)[:MAX_SUMMARY]
        step.save(update_fields=["summary"])
