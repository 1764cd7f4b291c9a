"""How is a runner set described? Made and changed by people whose page may be minutes old."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import F

from ci.lifecycle import events, set_templates
from ci.lifecycle.errors import Conflict, InvalidInput, NotFound
from ci.lifecycle.matching import normalised
from ci.models import RunnerSet
from forge.models import Repository

EDITABLE = frozenset(
    {"name", "owner", "repository", "repositories", "labels", "launcher", "template"}
    | {"minimum", "maximum", "maximum_per_repository"}
)
# Runners made before one of these changed are of an older revision: they do not look as the set now says.
SPEC = ("labels", "launcher", "template")
# What runs in them comes from these: a set that was parked because its runners were outdated may try again.
PROGRAM = ("launcher", "template")
MAX_LABELS = 50
SAME_NAME = "There is a runner set of this name already."
MAX_RUNNERS = 10_000


def save_runner_set(
    *, runner_set_id: int | None, fields: Mapping[str, Any], version: int | None, actor: Any
) -> RunnerSet:
    """
    Make a runner set (`runner_set_id` None), or change `fields` of one that still has `version`.

    A change of labels, launcher or template counts `spec_revision` up, and one of the last two lets a parked set start
    runners again. `repositories`: the only ones that may use it, none for all of its scope. The scope is fixed once the
    set is made. Who is no administrator of the instance may change the rest of a set of local processes, but neither
    choose that launcher nor write what its processes get (set_templates). Raises InvalidInput, NotFound, and Conflict
    where the set has changed since `version` (None: whatever it is now).
    """
    unknown = set(fields) - EDITABLE
    if unknown:
        raise InvalidInput(dict.fromkeys(sorted(unknown), "This cannot be set."))
    given = {**fields}
    if "labels" in given:
        given["labels"] = normalised(given["labels"])
    if runner_set_id is None:
        return _create(given, actor)
    return _change(runner_set_id, given, version, actor)


def _create(fields: Mapping[str, Any], actor: Any) -> RunnerSet:
    given = {**fields}
    repositories = given.pop("repositories", ())
    made = RunnerSet(**given)
    _check(made, repositories, set_templates.problems(launcher=made.launcher, template=made.template, actor=actor))
    with transaction.atomic():
        _insert(made)
        made.repositories.set(repositories)
        events.wake_set(made.pk)
        events.record("runner_set_created", runner_set=made, to_state=made.phase, actor=actor, detail=made.name)
    return made


def _change(runner_set_id: int, fields: Mapping[str, Any], version: int | None, actor: Any) -> RunnerSet:
    with transaction.atomic():
        current = _get(runner_set_id)
        changes = _changes(current, fields)
        if version is not None and current.version != version:
            raise _changed(current)
        if changes.keys() & {"owner", "repository"}:
            raise InvalidInput({"owner": "A runner set stays where it was made; make another one instead."})
        if not changes:
            return current
        if current.phase == RunnerSet.Phase.DELETING:
            raise Conflict(f"{current} is being deleted.")
        values = {name: value for name, value in changes.items() if name != "repositories"}
        for name, value in values.items():
            setattr(current, name, value)
        wrong = {}
        if changes.keys() & set(PROGRAM):
            wrong = set_templates.problems(launcher=current.launcher, template=current.template, actor=actor)
        _check(current, changes.get("repositories", ()), wrong)
        values |= {"version": F("version") + 1, **_consequences(current, changes)}
        # No lock was held since the read: whoever wrote in between has moved the version, and wins.
        if not _update(RunnerSet.objects.filter(pk=current.pk, version=current.version), values):
            raise _changed(current)
        if "repositories" in changes:
            current.repositories.set(changes["repositories"])
        events.wake_set(current.pk)
        events.record(
            "runner_set_changed", runner_set=current, actor=actor, detail=f"Changed: {', '.join(sorted(changes))}."
        )
    return RunnerSet.objects.get(pk=runner_set_id)


def _changes(current: RunnerSet, fields: Mapping[str, Any]) -> dict[str, Any]:
    repositories = fields.get("repositories")
    plain = {name: value for name, value in fields.items() if name != "repositories"}
    changes = {name: value for name, value in plain.items() if getattr(current, name) != value}
    if repositories is not None and set(repositories) != set(current.repositories.all()):
        changes["repositories"] = repositories
    return changes


def _consequences(current: RunnerSet, changes: Mapping[str, Any]) -> dict[str, Any]:
    """What else is written: another revision, and whether a parked set may start runners again."""
    values: dict[str, Any] = {}
    if changes.keys() & set(SPEC):
        values["spec_revision"] = F("spec_revision") + 1
    if changes.keys() & set(PROGRAM) and current.phase == RunnerSet.Phase.OUTDATED:
        values |= {"phase": RunnerSet.Phase.RUNNING, "parked_at": None}
    return values


def _insert(made: RunnerSet) -> None:
    try:
        with transaction.atomic():
            made.save(force_insert=True)
    except IntegrityError:
        raise InvalidInput({"name": SAME_NAME}) from None


def _update(guarded: Any, values: Mapping[str, Any]) -> int:
    try:
        with transaction.atomic():
            return int(guarded.update(**values))
    except IntegrityError:
        raise InvalidInput({"name": SAME_NAME}) from None


def _get(runner_set_id: int) -> RunnerSet:
    found = RunnerSet.objects.filter(pk=runner_set_id).first()
    if found is None:
        raise NotFound("There is no such runner set; it may have been deleted.")
    return found


def _changed(runner_set: RunnerSet) -> Conflict:
    return Conflict(f"{runner_set} has changed meanwhile: look again, then decide.")


def _serves(runner_set: RunnerSet, repository: Repository) -> bool:
    if runner_set.repository_id is not None:
        return repository.pk == runner_set.repository_id
    return runner_set.owner_id is None or repository.owner_id == runner_set.owner_id


def _check(runner_set: RunnerSet, repositories: Iterable[Repository], of_program: Mapping[str, str]) -> None:
    """Raises InvalidInput; `of_program` is what is known to be wrong with what it starts."""
    wrong: dict[str, str] = {}
    try:
        runner_set.full_clean()
    except ValidationError as error:
        wrong = {name: " ".join(texts) for name, texts in error.message_dict.items()}
        if any(problem.code == "unique_together" for problem in error.error_dict.get("__all__", ())):
            wrong["name"] = SAME_NAME
            del wrong["__all__"]
    wrong |= of_program
    if not runner_set.labels:
        wrong["labels"] = "Name at least one label, or no job can ever fit."
    elif len(runner_set.labels) > MAX_LABELS:
        wrong["labels"] = f"At most {MAX_LABELS} labels."
    if any(not _serves(runner_set, repository) for repository in repositories):
        wrong["repositories"] = "Name only repositories that the set may serve: those of its owner."
    if not wrong.keys() & {"minimum", "maximum"}:
        if runner_set.maximum > MAX_RUNNERS:
            wrong["maximum"] = f"At most {MAX_RUNNERS} runners."
        elif runner_set.minimum > runner_set.maximum:
            wrong["minimum"] = "The minimum is above the maximum."
            wrong.pop("__all__", None)
    if wrong:
        raise InvalidInput(wrong)
