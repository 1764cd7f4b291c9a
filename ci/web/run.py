"""What came of this run, and what may still be done about it?"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from typing import Any

from django.db.models.fields.json import KT
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST, require_safe

from ci.lifecycle.transitions import approve_run, cancel_run, rerun
from ci.models import Event, Hold, Job, JobState, Run, RunAttempt
from ci.web.call import about_call
from ci.web.job_tree import by_level, own_work
from ci.web.pages import MAX_ID, around, number, paged, posted_version, tell
from ci.web.run_summary import summary
from forge.access import can_write
from forge.models import Repository
from forge.web.loading import get_repository

# htmx stops asking once it is answered so.
STOP_POLLING = 286
_LONG = ("payload", "env", "defaults", "permissions")
# Of a job in a list of them, that may be long.
_SHOWN = (
    *("run_id", "attempt", "parent_id", "carried_from_id", "key", "name", "level", "matrix_index", "runner_name"),
    *("state", "hold", "conclusion", "cancel_reason", "end_note", "started_at", "ended_at", "version"),
)
_LONG_OF_SOURCE = tuple(f"source_run__{name}" for name in (*_LONG, "inputs", "problems"))


@require_safe
def run(request: HttpRequest, owner: str, name: str, run_id: int) -> HttpResponse:
    repository = get_repository(request, owner, name)
    found = load_run(repository, run_id)
    context = frame(request, repository, found, attempt=asked_attempt(request, found))
    return render(request, "ci/run.html", context | summary(found, context["jobs"], attempt=context["attempt"]))


@require_safe
def run_status(request: HttpRequest, owner: str, name: str, run_id: int) -> HttpResponse:
    """The parts of a page that change while the run goes on; `?seen=` says which state the page shows now."""
    repository = get_repository(request, owner, name)
    found = load_run(repository, run_id)
    context = frame(request, repository, found, attempt=found.attempt)
    context["chosen_id"] = number(request.GET.get("job"))
    context["changed"] = request.GET.get("seen") != context["seen"]
    if context["changed"] and context["chosen_id"] is None:
        context |= summary(found, context["jobs"], attempt=found.attempt)
    elif context["changed"]:
        context |= _chosen_call(found, context["jobs"], context["chosen_id"])
    return render(request, "ci/_run_status.html", context, status=STOP_POLLING if found.is_ended else 200)


@require_safe
def run_events(request: HttpRequest, owner: str, name: str, run_id: int) -> HttpResponse:
    repository = get_repository(request, owner, name)
    found = load_run(repository, run_id)
    context = frame(request, repository, found, attempt=found.attempt)
    rows = Event.objects.filter(run=found).select_related("job").defer("job__definition", "job__outputs")
    return render(request, "ci/run_events.html", context | {"page_obj": paged(request, rows, size=100)})


@require_POST
def run_cancel(request: HttpRequest, owner: str, name: str, run_id: int) -> HttpResponse:
    return _do(request, owner, name, run_id, lambda found: _cancel(request, found, force=False))


@require_POST
def run_force_cancel(request: HttpRequest, owner: str, name: str, run_id: int) -> HttpResponse:
    return _do(request, owner, name, run_id, lambda found: _cancel(request, found, force=True))


@require_POST
def run_rerun(request: HttpRequest, owner: str, name: str, run_id: int) -> HttpResponse:
    mode = "failed" if request.POST.get("mode") == "failed" else "all"

    def again(found: Run) -> str:
        fresh = rerun(run_id=found.pk, actor=request.user, mode=mode, version=posted_version(request))
        return f"Attempt {fresh.attempt} has started."

    return _do(request, owner, name, run_id, again)


@require_POST
def run_approve(request: HttpRequest, owner: str, name: str, run_id: int) -> HttpResponse:
    def approve(found: Run) -> str:
        approve_run(run_id=found.pk, actor=request.user, version=posted_version(request))
        return "The run is approved."

    return _do(request, owner, name, run_id, approve)


def load_run(repository: Repository, run_id: int) -> Run:
    """Raises Http404 where the repository has no such run."""
    if run_id > MAX_ID:
        raise Http404("There is no such run.")
    found = get_object_or_404(
        Run.objects.select_related("concurrency_group", "source_run", "cancelled_by").defer(*_LONG, *_LONG_OF_SOURCE),
        pk=run_id,
        repository=repository,
    )
    found.repository = repository
    return found


def asked_attempt(request: HttpRequest, found: Run) -> int:
    """The attempt that `?attempt=` names, or the newest. Raises Http404 where there was none such."""
    if "attempt" not in request.GET:
        return found.attempt
    attempt = number(request.GET["attempt"], most=found.attempt)
    if not attempt:
        raise Http404("This run has had no such attempt.")
    return attempt


def frame(request: HttpRequest, repository: Repository, found: Run, *, attempt: int) -> dict[str, Any]:
    """What the pages of a run and of its jobs show alike: header, actions, the list of jobs."""
    jobs = jobs_of(found, attempt)
    work = own_work(jobs)
    earlier = list(RunAttempt.objects.filter(run=found)) if found.attempt > 1 else []
    is_newest = attempt == found.attempt
    may_write = can_write(request.user, repository)
    return around(
        repository,
        run=found,
        attempt=attempt,
        earlier=earlier,
        this_attempt=next((row for row in earlier if row.number == attempt), None),
        is_newest=is_newest,
        live=is_newest and not found.is_ended,
        jobs=jobs,
        levels=by_level(jobs),
        job_count=len(work),
        ended_count=sum(job.is_ended for job in work),
        cancelling=found.outcome == "cancelling" or any(job.outcome == "cancelling" for job in jobs),
        has_failed=any(job.conclusion in ("failure", "cancelled") for job in jobs),
        may_act=is_newest and may_write,
        may_delete=may_write,
        seen=_fingerprint(found, jobs),
    )


def jobs_of(found: Run, attempt: int) -> list[Job]:
    rows = Job.objects.filter(run=found, attempt=attempt).only(*_SHOWN)
    jobs: list[Job] = list(rows.annotate(uses=KT("definition__uses")).order_by("level", "key", "matrix_index"))
    for job in jobs:
        job.run = found
    return jobs


def _chosen_call(found: Run, jobs: Sequence[Job], job_id: int) -> dict[str, Any]:
    """What changes on the page of a call; nothing where another kind of job is shown."""
    known = {job.pk: job for job in jobs}
    if job_id not in known or not known[job_id].uses:  # type: ignore[attr-defined]
        return {}
    call = Job.objects.annotate(uses=KT("definition__uses")).get(pk=job_id)
    call.run, call.parent = found, known.get(call.parent_id or 0)
    return about_call(found, call, jobs)


def _fingerprint(found: Run, jobs: Sequence[Job]) -> str:
    """Changes whenever the run or one of its jobs does, and stays while only time passes."""
    state = [found.version, *((job.pk, job.version) for job in jobs)]
    return f"{zlib.crc32(repr(state).encode()):08x}"


def _cancel(request: HttpRequest, found: Run, *, force: bool) -> str:
    count = cancel_run(run_id=found.pk, actor=request.user, force=force, version=posted_version(request))
    jobs = f"{count} job{'' if count == 1 else 's'}"
    left = Job.objects.filter(run=found, attempt=found.attempt).exclude(state=JobState.ENDED)
    if left.filter(cancel_reason="").exclude(hold=Hold.CALLED).exists():
        return f"Cancelling {jobs}: others go on, since their condition holds in a cancelled run too."
    return f"Cancelling {jobs}: what runs has been asked to stop." if left.exists() else f"Cancelled {jobs}."


def _do(request: HttpRequest, owner: str, name: str, run_id: int, verb: Callable[[Run], str]) -> HttpResponse:
    repository = get_repository(request, owner, name, need=can_write)
    found = load_run(repository, run_id)
    tell(request, lambda: verb(found))
    return redirect("run", repository.owner.username, repository.name, found.pk)
