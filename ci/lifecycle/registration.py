"""How does a runner come, change and go?"""

from __future__ import annotations

import re
import uuid
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils import timezone

from ci.lifecycle import events
from ci.lifecycle.errors import Conflict, InvalidInput, NotFound
from ci.lifecycle.tokens import registration_token_of
from ci.lifecycle.transitions import release_from_runner, retire_runner
from ci.lifecycle.transitions.guard import check_version, guarded, lock_runner
from ci.lifecycle.transitions.moves import write
from ci.models import ACTIVE_STATES, Job, RegistrationToken, Runner, Scope
from forge.tokens import hash_token, new_token

MAX_LABELS = 50
LABEL = re.compile(r"[^\s,][^,\r\n]{0,98}[^\s,]|[^\s,]")
TRIES = 5


def create_registration_token(
    *, scope: Scope, created_by: Any, expires_at: datetime | None = None
) -> tuple[RegistrationToken, str]:
    """A new token for `scope`, and its text, which is not kept."""
    text = new_token("registration")
    token = RegistrationToken.objects.create(
        owner=scope.owner,
        repository=scope.repository,
        token_hash=hash_token(text),
        hint=text[:8],
        created_by=created_by,
        expires_at=expires_at,
    )
    return token, text


def revoke_registration_token(*, token_id: int, actor: Any) -> None:
    """Runners registered with it stay; no other can register. Raises NotFound, Conflict."""
    revoked = RegistrationToken.objects.filter(pk=token_id, revoked_at=None).update(revoked_at=timezone.now())
    if revoked:
        events.record("registration_token_revoked", actor=actor, detail=f"token {token_id}")
    elif RegistrationToken.objects.filter(pk=token_id).exists():
        raise Conflict("This token was revoked already.")
    else:
        raise NotFound("There is no such token.")


@transaction.atomic
def register_runner(
    *,
    token: str,
    name: str,
    labels: Sequence[str],
    ephemeral: bool = False,
    agent_version: str = "",
    os: str = "",
    arch: str = "",
    identity: uuid.UUID | None = None,
) -> tuple[Runner, str]:
    """A new runner in the token's scope, and its own token. `identity`: of one that names itself by a UUID.

    Raises Unauthenticated, InvalidInput.
    """
    registration = registration_token_of(token)
    text = new_token("runner")
    runner = Runner.objects.create(
        owner=registration.owner,
        repository=registration.repository,
        name=checked_name(name),
        labels=checked_labels(labels),
        ephemeral=ephemeral,
        agent_version=agent_version[:50],
        os=os[:50],
        arch=arch[:50],
        token_hash=hash_token(text),
        uuid=identity,
        last_seen_at=timezone.now(),
    )
    events.record("registered", runner=runner, to_state=runner.phase, detail=f"{runner.name} for {registration.scope}")
    return runner, text


@guarded
def update_runner(
    *,
    runner_id: int,
    name: str | None = None,
    labels: Sequence[str] | None = None,
    agent_version: str | None = None,
    os: str | None = None,
    arch: str | None = None,
) -> Runner:
    """Change what a runner says of itself; None leaves a field. Raises NotFound, InvalidInput."""
    runner = lock_runner(runner_id)
    given = {"agent_version": agent_version, "os": os, "arch": arch}
    fields: dict[str, Any] = {key: value[:50] for key, value in given.items() if value is not None}
    if name is not None:
        fields["name"] = checked_name(name)
    if labels is not None:
        fields["labels"] = checked_labels(labels)
    if fields:
        write(runner, **fields)
    return runner


@guarded
def pause_runner(*, runner_id: int, paused: bool, actor: Any, version: int | None = None) -> None:
    """A paused runner finishes its job and takes no other. Raises NotFound, Conflict."""
    runner = lock_runner(runner_id)
    check_version(runner, version)
    if runner.paused == paused:
        raise Conflict(f"{runner} is {'paused' if paused else 'not paused'} already.")
    write(runner, paused=paused)
    events.record("runner_paused" if paused else "runner_resumed", runner=runner, actor=actor)
    # It counts for its set, or counts no more.
    events.wake_set(runner.runner_set_id)
    if not paused:
        _wake_all(runner)


def _wake_all(runner: Runner) -> None:
    # Jobs queued meanwhile were announced when nobody listened for them.
    events.notify(events.JOB_QUEUED, "")


def remove_runner(*, runner_id: int, actor: Any = None, version: int | None = None) -> None:
    """Delete a runner; a job it has is lost or requeued first. One of a set ends, and its set tidies up after it.

    Raises NotFound, Conflict.
    """
    who = f"{actor.get_username()} removed" if actor is not None else "it removed itself:"
    for _ in range(TRIES):
        job_id = Job.objects.filter(runner=runner_id, state__in=ACTIVE_STATES).values_list("id", flat=True).first()
        if job_id is not None:
            # Before its job is touched: what was decided on an older version of the runner changes nothing at all.
            _check_unchanged(runner_id, version)
            release_from_runner(job_id=job_id, runner_id=runner_id, why=f"{who} its runner")
            version = None  # what was released changed the runner too
        if _delete(runner_id, actor, version):
            return
    raise Conflict("The runner kept taking jobs while it was being removed: pause it first.")


@guarded
def _check_unchanged(runner_id: int, version: int | None) -> None:
    check_version(lock_runner(runner_id), version)


@guarded
def _delete(runner_id: int, actor: Any, version: int | None) -> bool:
    runner = lock_runner(runner_id)
    check_version(runner, version)
    # Under the runner's lock no claim can come between.
    if Job.objects.filter(runner=runner, state__in=ACTIVE_STATES).exists():
        return False
    if runner.runner_set_id is not None:
        # Its process takes up room in its set until it is known to be gone.
        who = actor.get_username() if actor is not None else "it"
        retire_runner(runner_id=runner_id, reason=f"Removed: {who} asked for it.", actor=actor)
        return True
    events.record("runner_removed", from_state=runner.phase, actor=actor, detail=f"runner {runner.name}")
    runner.delete()
    return True


def checked_name(name: str) -> str:
    """A runner's name without blanks around it. Raises InvalidInput."""
    name = name.strip()
    if not name or len(name) > 100 or not name.isprintable():
        raise InvalidInput({"name": "Give a name of 1 to 100 printable characters."})
    return name


def checked_labels(labels: Sequence[str]) -> list[str]:
    """A runner's labels, each once, in their order. Raises InvalidInput."""
    cleaned = list(dict.fromkeys(label.strip() for label in labels if label.strip()))
    if len(cleaned) > MAX_LABELS:
        raise InvalidInput({"labels": f"A runner has at most {MAX_LABELS} labels."})
    for label in cleaned:
        if not LABEL.fullmatch(label) or not label.isprintable():
            raise InvalidInput({"labels": f"{label[:50]!r} is no label: 1 to 100 printable characters, no comma."})
    return cleaned
