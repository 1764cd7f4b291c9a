"""What should somebody see first of a run? What failed and why, what its jobs reported, what happened to it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from django.db.models import Q
from django.utils.safestring import SafeString

from ci.lifecycle.artifacts import kept_by
from ci.models import Event, Job, Run, Step
from ci.web.job_tree import own_work
from ci.web.problems import marked_problems
from ci.web.runs import listed
from forge.web.markdown import render as render_markdown

MOST_FAILED = 20
MOST_ANNOTATIONS = 50
MOST_SUMMARIES = 20
MOST_SUMMARY_CHARACTERS = 256 * 1024
MOST_EVENTS = 30
MOST_CAUSED = 20
MOST_ARTIFACTS = 20
_OF_EVENT = ("run_id", "kind", "from_state", "to_state", "actor_name", "detail", "created_at", "job__name")
_LEVELS = {"error": 0, "warning": 1, "notice": 2}


def summary(run: Run, jobs: Sequence[Job], *, attempt: int) -> dict[str, Any]:
    sources = {job.carried_from_id or job.pk: job for job in jobs}
    steps = list(
        Step.objects.filter(job__in=sources.keys())
        .filter(~Q(annotations=[]) | ~Q(summary="") | Q(conclusion="failure"))
        .order_by("job_id", "number")[:1000]
    )
    reports = [(sources[step.job_id], step) for step in steps]
    newest_first = Event.objects.filter(run=run).select_related("job").only(*_OF_EVENT)
    events = list(newest_first.order_by("-id")[: MOST_EVENTS + 1])
    # A call fails and is cancelled with its jobs: those are told of, not it too.
    work = own_work(jobs)
    artifacts = list(kept_by(run, attempt=attempt)[: MOST_ARTIFACTS + 1])
    told = {job.pk for job in work} | {job.pk for job in jobs if job.end_note}
    return {
        "problems": marked_problems(run),
        "failed": _failed([job for job in jobs if job.pk in told], reports)[:MOST_FAILED],
        "cancel_notes": Counter(_cancel_note(job) for job in work if job.conclusion == "cancelled").most_common(5),
        **annotations_of(reports),
        "summaries": summaries_of(reports),
        "artifacts": artifacts[:MOST_ARTIFACTS],
        "more_artifacts": len(artifacts) > MOST_ARTIFACTS,
        "events": events[:MOST_EVENTS],
        "more_events": len(events) > MOST_EVENTS,
        "caused": list(listed(run.repository).filter(source_run=run)[:MOST_CAUSED]),
    }


def annotations_of(reports: Sequence[tuple[Job, Step]]) -> dict[str, Any]:
    """Errors first; `more_annotations` counts those left out."""
    found = [
        {"job": job, "step": step, **_clean(annotation)}
        for job, step in reports
        for annotation in step.annotations
        if isinstance(annotation, Mapping)
    ]
    found.sort(key=lambda item: _LEVELS[item["level"]])
    return {"annotations": found[:MOST_ANNOTATIONS], "more_annotations": max(0, len(found) - MOST_ANNOTATIONS)}


def summaries_of(reports: Sequence[tuple[Job, Step]]) -> list[tuple[Job, Step, SafeString]]:
    """The Markdown that steps left as their summary, as safe HTML, up to a bound."""
    shown: list[tuple[Job, Step, SafeString]] = []
    left = MOST_SUMMARY_CHARACTERS
    for job, step in reports:
        if not step.summary or left <= 0 or len(shown) == MOST_SUMMARIES:
            continue
        shown.append((job, step, render_markdown(step.summary[:left])))
        left -= len(step.summary)
    return shown


def _failed(jobs: Sequence[Job], reports: Sequence[tuple[Job, Step]]) -> list[tuple[Job, Step | None]]:
    """Each failed job with the step that failed first."""
    first: dict[int, Step] = {}
    for job, step in reports:
        if step.conclusion == "failure":
            first.setdefault(job.pk, step)
    return [(job, first.get(job.pk)) for job in jobs if job.conclusion == "failure"]


def _cancel_note(job: Job) -> str:
    return job.end_note or job.get_cancel_reason_display()


def _clean(annotation: Mapping[str, Any]) -> dict[str, Any]:
    level = annotation.get("level")
    line = annotation.get("line")
    return {
        "level": level if level in _LEVELS else "notice",
        "message": str(annotation.get("message") or ""),
        "title": str(annotation.get("title") or ""),
        "path": str(annotation.get("path") or "").removeprefix("./").lstrip("/"),
        "line": line if isinstance(line, int) and line > 0 else None,
    }
