"""Which workflows does a commit have, and what does the server remember of those on the default branch?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

from django.db import transaction
from django.utils import timezone

from ci.models import Schedule, Workflow
from ci.workflow import Problem, ScheduleError, WorkflowErrors, load
from ci.workflow import Workflow as Document
from ci.workflow import schedule as schedules
from forge.git import bare
from forge.models import Repository

FOLDER = ".github/workflows"
Loaded = Document | tuple[Problem, ...]


def read(repository: Repository, sha: str) -> dict[str, bytes]:
    """The workflow files of a commit by path; only those directly in the folder count, as on GitHub."""
    files = bare.files_under(repository, sha, FOLDER)
    return {
        path: text
        for path, text in sorted(files.items())
        if path.endswith((".yml", ".yaml")) and path.count("/") == FOLDER.count("/") + 1 and len(path) <= 255
    }


def load_all(files: Mapping[str, bytes]) -> dict[str, Loaded]:
    """Each file's document, or what is wrong with it."""
    return {path: _load(path, files) for path in files}


def _load(path: str, files: Mapping[str, bytes]) -> Loaded:
    try:
        return load(path, files)
    except WorkflowErrors as errors:
        return errors.problems


@transaction.atomic
def remember(repository: Repository, loaded: Mapping[str, Loaded]) -> None:
    """Note what the default branch has now: names, events, problems and the due time of each schedule entry."""
    Workflow.objects.filter(repository=repository, on_default_branch=True).exclude(path__in=loaded).update(
        on_default_branch=False
    )
    Schedule.objects.filter(workflow__repository=repository, workflow__on_default_branch=False).delete()
    for path, document in loaded.items():
        values = {
            "on_default_branch": True,
            "events": sorted(document.on) if isinstance(document, Document) else [],
            "problems": [] if isinstance(document, Document) else [asdict(problem) for problem in document],
        }
        if isinstance(document, Document):
            values["name"] = document.name[:255]
        workflow, _ = Workflow.objects.update_or_create(
            repository=repository, path=path, defaults=values, create_defaults={"name": path, **values}
        )
        _remember_schedules(workflow, document.schedules if isinstance(document, Document) else ())


def _remember_schedules(workflow: Workflow, entries: tuple[tuple[str, str | None], ...]) -> None:
    """An entry that was there before keeps its due time: a push must not put it off."""
    wanted = {(cron, zone or "UTC") for cron, zone in entries}
    for row in Schedule.objects.filter(workflow=workflow):
        if (row.cron, row.timezone) not in wanted:
            row.delete()
    for cron, zone in wanted:
        try:
            due = schedules.next_time(cron, zone, timezone.now())
        except ScheduleError:
            continue
        Schedule.objects.get_or_create(workflow=workflow, cron=cron, timezone=zone, defaults={"next_at": due})
