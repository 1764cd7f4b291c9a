"""What did this job do, step by step and line by line, and how far is it?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from django.db.models.fields.json import KT
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.safestring import SafeString
from django.views.decorators.http import require_POST, require_safe

from ci.lifecycle.transitions import cancel_job, rerun
from ci.lifecycle.waiting import why
from ci.models import ACTIVE_STATES, Job, Run, Step, StepState
from ci.storage import logs
from ci.storage.logs import LogLost
from ci.web import log
from ci.web.call import about_call
from ci.web.log import Cursor, Shown
from ci.web.pages import MAX_ID, around, posted_version, tell
from ci.web.run import STOP_POLLING, frame, load_run
from ci.web.run_summary import annotations_of, summaries_of
from forge.access import can_write
from forge.models import Repository
from forge.web.loading import get_repository


@require_safe
def job(request: HttpRequest, owner: str, name: str, run_id: int, job_id: int) -> HttpResponse:
    repository = get_repository(request, owner, name)
    run = load_run(repository, run_id)
    found = load_job(run, job_id)
    if found.uses:  # type: ignore[attr-defined]  # annotated by load_job
        context = frame(request, repository, run, attempt=found.attempt)
        context |= about_call(run, found, context["jobs"]) | {"chosen_id": found.pk}
        return render(request, "ci/call.html", context)
    source = source_of(found)
    steps = steps_of(source)
    window = log.window(request, source, steps)
    context = frame(request, repository, run, attempt=found.attempt)
    context |= _about(found, steps, context["may_act"])
    context |= {
        "chosen_id": found.pk,
        "window": window,
        "steps_known": bool(steps),
        "earlier_first": max(0, window.first - log.MOST_LINES),
        "cursor": window.cursor,
        "follow": window.is_tail and not log.is_complete(source),
        "delay": _delay(found),
        "timestamps": window.cursor.timestamps,
        "page_query": _page_query(request),
    }
    return render(request, "ci/job.html", context)


@require_safe
def job_log_lines(request: HttpRequest, owner: str, name: str, run_id: int, job_id: int) -> HttpResponse:
    """What is new since the cursor in the address, and the cursor to ask with next; 286 when nothing more can come."""
    repository = get_repository(request, owner, name)
    run = load_run(repository, run_id)
    found = load_job(run, job_id)
    source = source_of(found)
    cursor = Cursor.read(request.GET)
    # Before the lines: a log that is complete now has no lines but those read next.
    complete = log.is_complete(source)
    steps = steps_of(source)
    try:
        added, after, more = log.additions(source, steps, cursor)
    except LogLost:
        added, after, more, complete = [], cursor, False, True
    too_long = after.shown > log.MOST_FOLLOWED
    follow = not too_long and (more or not complete)
    may_act = found.attempt == run.attempt and can_write(request.user, repository)
    context = (
        around(repository, run=run, cursor=after)
        | _about(found, steps, may_act)
        | {
            "added": added,
            "added_later": True,
            "follow": follow,
            "too_long": too_long,
            "delay": "100ms" if more else _delay(found),
            "changed": cursor.version != found.version,
            "steps": _changed_steps(steps, cursor.states),
        }
    )
    response = render(request, "ci/_log_tail.html", context, status=200 if follow else STOP_POLLING)
    if len(steps) < len(cursor.states):
        # The job went back to the queue and begins anew: so does the page.
        response["HX-Refresh"] = "true"
    return response


@require_safe
def job_log_raw(
    request: HttpRequest, owner: str, name: str, run_id: int, job_id: int
) -> HttpResponse | StreamingHttpResponse:
    repository = get_repository(request, owner, name)
    run = load_run(repository, run_id)
    found = load_job(run, job_id)
    pieces = logs.raw(source_of(found).pk, timestamps=request.GET.get("timestamps") == "1")
    try:
        first = next(pieces, b"")
    except LogLost as error:
        return HttpResponse(str(error), status=410, content_type="text/plain; charset=utf-8")
    response = StreamingHttpResponse(_chain(first, pieces), content_type="text/plain; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="run-{run.pk}-job-{found.pk}.log"'
    response["X-Content-Type-Options"] = "nosniff"
    return response


@require_POST
def job_cancel(request: HttpRequest, owner: str, name: str, run_id: int, job_id: int) -> HttpResponse:
    force = request.POST.get("force") == "1"

    def cancel(found: Job) -> str:
        cancel_job(job_id=found.pk, actor=request.user, force=force, version=posted_version(request))
        found.refresh_from_db(fields=["state"])
        return "The job is cancelled." if found.is_ended else "The job has been asked to stop."

    return _do(request, owner, name, run_id, job_id, cancel)


@require_POST
def job_rerun(request: HttpRequest, owner: str, name: str, run_id: int, job_id: int) -> HttpResponse:
    """The form's version is the run's: a re-run begins a new attempt of it."""

    def again(found: Job) -> str:
        version = posted_version(request)
        fresh = rerun(run_id=found.run_id, actor=request.user, mode="job", job_id=found.pk, version=version)
        return f"Attempt {fresh.attempt} has started."

    return _do(request, owner, name, run_id, job_id, again, to_run=True)


def load_job(run: Run, job_id: int) -> Job:
    """Raises Http404 where the run has no such job."""
    if job_id > MAX_ID:
        raise Http404("There is no such job.")
    rows = Job.objects.select_related("carried_from", "parent", "environment", "runner", "cancelled_by", "label_set")
    rows = rows.defer("definition", "carried_from__definition", "parent__definition", "parent__outputs")
    found = get_object_or_404(rows.annotate(uses=KT("definition__uses")), pk=job_id, run=run)
    found.run = run
    return found


def source_of(found: Job) -> Job:
    """The job that ran: of one carried over from an earlier attempt, that one."""
    return found.carried_from or found


def steps_of(source: Job) -> list[Step]:
    return list(Step.objects.filter(job=source).order_by("number"))


def _about(found: Job, steps: list[Step], may_act: bool) -> dict[str, Any]:
    reports = [(found, step) for step in steps]
    return {
        "job": found,
        "may_act": may_act,
        "waits_because": why(found),
        "outputs": sorted(found.outputs.items()),
        "summaries": summaries_of(reports) if found.is_ended else [],
        **annotations_of(reports),
    }


def _changed_steps(steps: list[Step], states: str) -> list[tuple[str, Shown]]:
    """("new" | "begun" | "head", step): which steps the page does not have, has as waiting, or shows an old head of."""
    changed = []
    for step, before in zip(steps, states.ljust(len(steps)), strict=False):
        shown = Shown(
            step, step.number, SafeString(""), is_open=step.state == StepState.RUNNING or step.conclusion == "failure"
        )
        if before == " ":
            changed.append(("new", shown))
        elif before == "p" and step.state != StepState.PENDING:
            changed.append(("begun", shown))
        elif before != step.state[0] or step.state == StepState.RUNNING:
            changed.append(("head", shown))
    return changed


def _delay(found: Job) -> str:
    # Lines wait for a quarter of a second in their runner: with this they are seen within one.
    return "500ms" if found.state in ACTIVE_STATES or found.is_ended else "2s"


def _page_query(request: HttpRequest) -> str:
    return "timestamps=1&" if request.GET.get("timestamps") == "1" else ""


def _chain(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest


def _do(
    request: HttpRequest,
    owner: str,
    name: str,
    run_id: int,
    job_id: int,
    verb: Callable[[Job], str],
    *,
    to_run: bool = False,
) -> HttpResponse:
    repository: Repository = get_repository(request, owner, name, need=can_write)
    run = load_run(repository, run_id)
    found = load_job(run, job_id)
    done = tell(request, lambda: verb(found))
    address = [repository.owner.username, repository.name, run.pk]
    return redirect("run", *address) if to_run and done else redirect("job", *address, found.pk)
