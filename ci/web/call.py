"""What does the page of a call show? Which workflow it calls, with what, and what became of that one's jobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.urls import reverse

from ci.lifecycle.waiting import why
from ci.models import Hold, Job, Run
from ci.web.job_tree import below
from ci.workflow import uses


def about_call(run: Run, call: Job, jobs: Sequence[Job]) -> dict[str, Any]:
    """`jobs`: all of the call's attempt, as ci.web.run loads them."""
    return {
        "job": call,
        "calls": _uses_of(call),
        "calls_address": _address(run, call, jobs),
        "inner": below(jobs, call),
        "inputs": sorted(call.call_inputs.items()),
        "outputs": sorted(call.outputs.items()),
        # That its jobs run is told by them.
        "waits_because": "" if call.hold == Hold.CALLED else why(call),
    }


def _uses_of(job: Job) -> str:
    return str(job.uses)  # type: ignore[attr-defined]  # annotated where jobs are loaded


def _address(run: Run, call: Job, jobs: Sequence[Job]) -> str:
    """The page of the called file; "" where its reference makes no sense. A local path is one of the calling file's."""
    by_id = {job.pk: job for job in jobs}
    chain = [call]
    while chain[0].parent_id is not None and chain[0].parent_id in by_id:
        chain.insert(0, by_id[chain[0].parent_id])
    reference = None
    try:
        for link in chain:
            reference = uses.resolve(_uses_of(link), reference)
    except uses.UsesError:
        return ""
    assert reference is not None
    if reference.repository is None:
        owner, name, ref = run.repository.owner.username, run.repository.name, run.sha
    else:
        owner, _, name = reference.repository.partition("/")
        ref = str(reference.ref)
    return reverse("blob", args=[owner, name, f"{ref}/{reference.path}"])
