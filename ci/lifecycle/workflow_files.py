"""Which workflows does a commit have, and what does the server remember of those on the default branch?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from django.db import transaction
from django.utils import timezone

from ci.models import Schedule, Workflow
from ci.workflow import Options, Problem, ScheduleError, WorkflowErrors, load, references, uses
from ci.workflow import Workflow as Document
from ci.workflow import schedule as schedules
from forge.git import bare
from forge.models import Repository

FOLDER = ".github/workflows"
# A token reads contents and packages where nobody asks for more: GitHub's restricted default.
OPTIONS = Options(permissions_policy="LimitedRead", require_called=True)
# As many as one workflow may call; what lies beyond `load` reports as missing.
MAX_CALLED = 200
Loaded = Document | tuple[Problem, ...]


def load_all(repository: Repository, sha: str) -> dict[str, Loaded]:
    """Each workflow file of a commit by its path: the document, or what is wrong with it."""
    own = read(repository, sha)
    elsewhere = _called_elsewhere(repository, own)
    files = {**own, **{key: file.text for key, file in elsewhere.items()}}
    return {_storable(path): _load(path, files, elsewhere) for path in own}


def read(repository: Repository, sha: str) -> dict[str, bytes]:
    """The workflow files of a commit by path; only those directly in the folder count, as on GitHub."""
    files = bare.files_under(repository, sha, FOLDER)
    return {
        path: text
        for path, text in sorted(files.items())
        if path.endswith((".yml", ".yaml")) and path.count("/") == FOLDER.count("/") + 1 and len(path) <= 255
    }


def load_one(repository: Repository, sha: str, path: str) -> Document | None:
    """One workflow file of a commit, None when there is none. Raises WorkflowErrors."""
    own = read(repository, sha)
    if path not in own:
        return None
    elsewhere = _called_elsewhere(repository, {path: own[path]})
    document = load(path, {**own, **{key: file.text for key, file in elsewhere.items()}}, options=OPTIONS)
    _note_commits(document.jobs, elsewhere)
    return document


def notices(repository: Repository, sha: str, path: str) -> tuple[Problem, ...]:
    """What a workflow file asks for that is accepted but not done by every runner; of a broken or missing one none."""
    try:
        document = load_one(repository, sha, path)
    except WorkflowErrors:
        return ()
    return document.notices if document is not None else ()


@dataclass(frozen=True, slots=True)
class _File:
    """A workflow file of another repository, and the commit it was found at."""

    text: bytes
    sha: str


def _note_commits(jobs: Mapping[str, dict[str, Any]], elsewhere: Mapping[str, _File]) -> None:
    """Put the commit of each called file of another repository beside its ref, which may move on."""
    for job in jobs.values():
        called = job.get("called")
        if called is not None:
            if called["key"] in elsewhere:
                called["sha"] = elsewhere[called["key"]].sha
            _note_commits(called["jobs"], elsewhere)


def _called_elsewhere(repository: Repository, own: Mapping[str, bytes]) -> dict[str, _File]:
    """The files of other repositories that these files call, directly or through others, by the key `load` wants.

    What is missing or may not be read is left out: `load` then says where it is named.
    """
    found: dict[str, _File] = {}
    open_files: list[tuple[uses.Reference | None, bytes]] = [(None, text) for text in own.values()]
    while open_files and len(found) <= MAX_CALLED:
        caller, text = open_files.pop()
        for name in references(text):
            try:
                reference = uses.resolve(name, caller)
            except uses.UsesError:
                continue
            if reference.repository is None or reference.key in found:
                continue
            called = _file_of(repository, reference)
            if called is not None:
                found[reference.key] = called
                open_files.append((reference, called.text))
    return found


def _file_of(caller: Repository, reference: uses.Reference) -> _File | None:
    """A public repository's, or for a private caller one of the same owner: pages and logs of a public caller's runs
    would show a private file to everybody. Source: GitHub docs, "Reusable workflows", access."""
    owner, _, name = str(reference.repository).partition("/")
    repository = Repository.objects.filter(owner__username__iexact=owner, name__iexact=name).first()
    if repository is None or not _may_call(caller, repository):
        return None
    sha = bare.resolve(repository, str(reference.ref))
    if sha is None:
        return None
    try:
        text = bare.blob(repository, sha, reference.path, max_bytes=bare.MAX_FILE + 1)
    except bare.BlobTooLarge:
        return None
    return None if text is None else _File(text, sha)


def _may_call(caller: Repository, called: Repository) -> bool:
    shared = caller.private and called.owner_id == caller.owner_id
    return not called.private or called.pk == caller.pk or shared


def _storable(path: str) -> str:
    """A path as people and the database can have it: git's may hold bytes that are no UTF-8 (here surrogates)."""
    return path.encode(errors="surrogateescape").decode(errors="replace")


def _load(path: str, files: Mapping[str, bytes], elsewhere: Mapping[str, _File]) -> Loaded:
    if _storable(path) != path:
        return (Problem(_storable(path), 0, 0, "The name of the file is not UTF-8. Rename it"),)
    try:
        document = load(path, files, options=OPTIONS)
    except WorkflowErrors as errors:
        return errors.problems
    _note_commits(document.jobs, elsewhere)
    return document


@transaction.atomic
def remember_default_branch(repository_id: int, *, known: Mapping[str, Mapping[str, Loaded]] | None = None) -> None:
    """Note what the default branch has now: names, events, problems and the due time of each schedule entry.

    `known`: the workflows of commits that were loaded already. Which branch it is and what it has is looked up under
    the repository's lock: a push that is planned late must not bring back what a later one, or another branch, ended.
    """
    repository = Repository.objects.select_for_update(no_key=True, of=("self",)).filter(pk=repository_id).first()
    sha = bare.resolve(repository, f"refs/heads/{repository.default_branch}") if repository is not None else None
    if repository is None or sha is None:
        return
    _remember(repository, (known or {}).get(sha) or load_all(repository, sha))


def _remember(repository: Repository, loaded: Mapping[str, Loaded]) -> None:
    Workflow.objects.filter(repository=repository, on_default_branch=True).exclude(path__in=loaded).update(
        on_default_branch=False
    )
    Schedule.objects.filter(workflow__repository=repository, workflow__on_default_branch=False).delete()
    known = {row.path: row for row in Workflow.objects.filter(repository=repository, path__in=loaded)}
    entries: dict[int, list[Schedule]] = {}
    for entry in Schedule.objects.filter(workflow__in=[row.pk for row in known.values()]):
        entries.setdefault(entry.workflow_id, []).append(entry)
    for path, document in loaded.items():
        values: dict[str, Any] = {
            "on_default_branch": True,
            "events": sorted(document.on) if isinstance(document, Document) else [],
            "problems": [] if isinstance(document, Document) else [asdict(problem) for problem in document],
        }
        if isinstance(document, Document):
            values["name"] = document.name[:255]
        workflow = known.get(path)
        # Most pushes change no workflow, and then write nothing here.
        if workflow is None or any(getattr(workflow, name) != value for name, value in values.items()):
            workflow, _ = Workflow.objects.update_or_create(
                repository=repository, path=path, defaults=values, create_defaults={"name": path, **values}
            )
        wanted = document.schedules if isinstance(document, Document) else ()
        _remember_schedules(workflow, wanted, known=entries.get(workflow.pk, []))


def _remember_schedules(
    workflow: Workflow, entries: tuple[tuple[str, str | None], ...], *, known: Sequence[Schedule]
) -> None:
    """An entry that was there before keeps its due time: a push must not put it off."""
    wanted = {(cron, zone or "UTC") for cron, zone in entries}
    for row in known:
        if (row.cron, row.timezone) not in wanted:
            row.delete()
    for cron, zone in wanted - {(row.cron, row.timezone) for row in known}:
        try:
            due = schedules.next_time(cron, zone, timezone.now())
        except ScheduleError:
            continue
        Schedule.objects.get_or_create(workflow=workflow, cron=cron, timezone=zone, defaults={"next_at": due})
