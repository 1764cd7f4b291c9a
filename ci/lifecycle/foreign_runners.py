"""How is a runner of Forgejo or Gitea made known to this server before it first calls, and known again when it does?

Both name themselves by a UUID. One that was set up offline has made it of its secret, as `forgejo-runner
create-runner-file --secret` does: the first 16 characters of the secret are the bytes of the UUID.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Sequence
from typing import Any

from ci.lifecycle import events
from ci.lifecycle.errors import Conflict, InvalidInput, Unauthenticated
from ci.lifecycle.registration import checked_labels, checked_name
from ci.lifecycle.transitions.guard import guarded, lock_runner
from ci.lifecycle.transitions.moves import write
from ci.models import Log, Runner, Scope
from forge.tokens import hash_token, same_token

_SECRET = re.compile(r"[0-9a-fA-F]{40}")
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_MAX_TOKEN = 200


def uuid_of(secret: str) -> uuid.UUID:
    """The UUID of a runner that was set up with this secret of 40 hexadecimal digits. Raises InvalidInput."""
    if not _SECRET.fullmatch(secret):
        raise InvalidInput({"secret": "It must be 40 hexadecimal digits, as `openssl rand -hex 20` makes them."})
    return uuid.UUID(bytes=secret[:16].encode("ascii"))


@guarded
def create_runner(
    *,
    secret: str,
    name: str,
    labels: Sequence[str],
    scope: Scope,
    ephemeral: bool = False,
    actor: Any = None,
) -> tuple[Runner, bool]:
    """The runner of this secret, and whether it is new; of one that is known name, labels and secret are renewed.

    Raises InvalidInput; Conflict where it is known with another scope, or as a runner for one job and not for many.
    """
    identity = uuid_of(secret)
    given = {"name": checked_name(name), "labels": checked_labels(labels), "token_hash": hash_token(secret)}
    place = {"owner": scope.owner, "repository": scope.repository}
    runner, is_new = Runner.objects.get_or_create(uuid=identity, defaults={**given, **place, "ephemeral": ephemeral})
    if is_new:
        events.record("registered", runner=runner, to_state=runner.phase, actor=actor, detail=f"{name} for {scope}")
        return runner, True
    runner = lock_runner(runner.pk)
    if runner.scope != scope or runner.ephemeral != ephemeral:
        kind = "one job" if runner.ephemeral else "many jobs"
        raise Conflict(f"This secret is of {runner}, a runner for {kind} of {runner.scope}: remove that one first.")
    write(runner, **given)
    events.record("runner_renewed", runner=runner, actor=actor, detail=f"{name} for {scope}")
    return runner, False


def runner_of(*, identity: str, token: str) -> Runner:
    """The runner that calls itself by this UUID and proves it by this token. Raises Unauthenticated."""
    if not _UUID.fullmatch(identity) or not 0 < len(token) <= _MAX_TOKEN:
        raise Unauthenticated("unregistered runner")
    runner = Runner.objects.filter(uuid=uuid.UUID(identity)).first()
    if runner is None or not same_token(runner.token_hash, token):
        raise Unauthenticated("unregistered runner")
    return runner


def has_nothing_left(runner: Runner) -> bool:
    """Whether a single-use runner has had its job and sent the whole log of it: then it may ask for nothing more."""
    return runner.is_done and not Log.objects.filter(job__runner=runner, sealed_at=None).exists()
