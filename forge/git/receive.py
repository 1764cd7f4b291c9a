"""What becomes of a push? Recorded before git moves a ref, settled after, repaired when a process died in between."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Sequence
from datetime import datetime

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django_q.tasks import async_task

from forge.access import Actor, JobActor
from forge.git import bare
from forge.git.commands import Command
from forge.git.live import LivePushes, live_push_ids
from forge.git.names import is_branch_name
from forge.git.stale_locks import remove_stale_locks
from forge.models import ZERO_SHA, Push, Repository
from forge.repositories import point_head

_log = logging.getLogger(__name__)
_BATCH = 500
# Telling a forced push from a plain one takes git a moment each; a push of more moved branches is not told apart.
_MOST_COMPARED = 200


def record(*, repository: Repository, actor: Actor, commands: Sequence[Command], live: LivePushes) -> list[int]:
    """Write down what a push is about to do, before git hears of it; the ids of the new rows, in order."""
    rows = [
        Push(
            repository=repository,
            pusher_id=actor.pk,
            pusher_name=actor.name if isinstance(actor, JobActor) else actor.get_username(),
            by_job=isinstance(actor, JobActor),
            ref=command.ref,
            before=command.before,
            after=command.after,
        )
        for command in commands
    ]
    with transaction.atomic():
        ids = [row.pk for row in Push.objects.bulk_create(rows)]
        live.list(ids)
    return ids


def settle(*, repository: Repository, push_ids: Sequence[int], outcomes: dict[str, bool]) -> list[int]:
    """Settle or refuse the rows of a push whose git has ended; the ids of those that happened.

    `outcomes` is what git reported for each ref; of the others, where the ref points now decides. The tasks that plan
    them are enqueued in the same transaction. A repeat changes nothing.
    """
    rows = list(Push.objects.filter(pk__in=push_ids, state=Push.State.RECORDED))
    unknown = [row for row in rows if row.ref not in outcomes]
    if unknown:
        looked_at = time.time()
        _free(repository, unknown, _refs_of(live_push_ids() - set(push_ids)), before=looked_at)
    found = bare.refs_at(repository, [row.ref for row in unknown])
    repeats = _repeats(unknown)
    happened = [
        row for row in rows if outcomes.get(row.ref, row.pk not in repeats and _points_at(found.get(row.ref), row))
    ]
    forced = _forced(repository, happened)
    with transaction.atomic():
        # Before the rows that hang on it, as who deletes the repository has it, or each could wait for the other. They
        # need no lock of their own: a recorded one is settled and deleted under this lock only.
        Repository.objects.select_for_update(no_key=True).filter(pk=repository.pk).first()
        left = Push.objects.filter(pk__in=[row.pk for row in rows], state=Push.State.RECORDED)
        still = set(left.values_list("pk", flat=True))
        settled = [row for row in happened if row.pk in still]
        now = timezone.now()
        _close(still - {row.pk for row in settled}, Push.State.REFUSED, now)
        _close({row.pk for row in settled} - forced, Push.State.SETTLED, now)
        _close({row.pk for row in settled} & forced, Push.State.SETTLED, now, forced=True)
        if settled:
            Repository.objects.filter(pk=repository.pk).update(pushed_at=now)
            _adopt_default_branch(repository, settled)
        for row in settled:
            async_task(settings.PUSH_TASK, row.pk)
    return [row.pk for row in settled]


def repair() -> int:
    """Settle what processes that are gone left recorded; how many rows were decided. Safe to call at any time."""
    decided = 0
    last: int | None = None
    while True:
        rows = Push.objects.filter(state=Push.State.RECORDED).select_related("repository__owner").order_by("-pk")
        batch = list(rows.filter(pk__lt=last)[:_BATCH] if last is not None else rows[:_BATCH])
        if not batch:
            return decided
        # After the rows: whatever is recorded was listed before it could be read.
        looked_at = time.time()
        live = live_push_ids()
        busy = _refs_of(live)
        for row in batch:
            if row.pk not in live and (row.repository_id, row.ref) not in busy:
                _free(row.repository, [row], busy, before=looked_at)
                decided += _repair(row)
        last = batch[-1].pk


def settle_recorded_pushes() -> int:
    """`repair`, for a start: an error is logged and left to the next repair, for the server must come up."""
    try:
        decided = repair()
    except Exception:
        _log.exception("Pushes that an earlier process left recorded could not be settled; the watch tries again")
        return 0
    if decided:
        _log.info("Settled %s pushes that an earlier process left recorded", decided)
    return decided


def _repair(row: Push) -> int:
    """Decide one row of a dead process, newest first, so that what came later is decided already."""
    later = (
        Push.objects.filter(repository=row.repository_id, ref=row.ref, pk__gt=row.pk, state=Push.State.SETTLED)
        .order_by("pk")
        .first()
    )
    try:
        if later is not None:
            # The next push started from where this one led, or this one did not happen.
            happened = later.before == row.after
        else:
            happened = _points_at(bare.ref_sha(row.repository, row.ref), row)
        happened = happened and row.pk not in _repeats([row])
        settle(repository=row.repository, push_ids=[row.pk], outcomes={row.ref: happened})
    except bare.GitError:
        _log.exception("Push %s stays recorded: its repository cannot be read", row.pk)
        return 0
    return 1


def _free(repository: Repository, rows: Sequence[Push], busy: set[tuple[int, str]], *, before: float) -> None:
    """Remove what the killed git of these rows may have locked, unless another push has it in hand."""
    names = [row.ref for row in rows if (repository.pk, row.ref) not in busy]
    if all(repository_id != repository.pk for repository_id, _ in busy):
        names.append("packed-refs")
    remove_stale_locks(repository, names, before=before)


def _refs_of(push_ids: Iterable[int]) -> set[tuple[int, str]]:
    return set(Push.objects.filter(pk__in=push_ids).values_list("repository_id", "ref"))


def _repeats(rows: Sequence[Push]) -> set[int]:
    """Those of one push's rows whose ref an earlier push had led to the same place, so that git refused them.

    A client whose connection breaks repeats its request by itself; where the ref points does not tell the two apart.
    """
    if not rows:
        return set()
    earlier = (
        Push.objects.filter(repository=rows[0].repository_id, ref__in=[row.ref for row in rows])
        .filter(state=Push.State.SETTLED, pk__lt=min(row.pk for row in rows))
        .order_by("ref", "-pk")
        .distinct("ref")
    )
    led_to = dict(earlier.values_list("ref", "after"))
    return {row.pk for row in rows if led_to.get(row.ref) == row.after}


def _points_at(found: str | None, row: Push) -> bool:
    return (found or ZERO_SHA) == row.after


def _close(ids: set[int], state: Push.State, now: datetime, *, forced: bool = False) -> None:
    if ids:
        Push.objects.filter(pk__in=ids).update(state=state, settled_at=now, forced=forced)


def _forced(repository: Repository, rows: Sequence[Push]) -> set[int]:
    """Which of the pushes left commits behind: branches that do not reach their old tip, tags that moved at all."""
    moved = [row for row in rows if not row.created and not row.deleted]
    tags = {row.pk for row in moved if row.ref.startswith("refs/tags/")}
    branches = [row for row in moved if row.pk not in tags][:_MOST_COMPARED]
    try:
        return tags | {row.pk for row in branches if not bare.is_ancestor(repository, row.before, row.after)}
    except bare.GitTimeout:
        _log.warning("Repository %s: whether its last push was forced takes git too long to tell", repository.pk)
        return tags


def _adopt_default_branch(repository: Repository, settled: Sequence[Push]) -> None:
    """The first branch of an empty repository becomes its default, where the intended default was not pushed."""
    pushed = [
        row.ref.removeprefix("refs/heads/") for row in settled if row.ref.startswith("refs/heads/") and row.created
    ]
    if not pushed or bare.ref_sha(repository, f"refs/heads/{repository.default_branch}") is not None:
        return
    if any(branch.name not in pushed for branch in bare.branches(repository, limit=len(pushed) + 1)):
        return
    name = next((name for name in ("main", "master") if name in pushed), pushed[0])
    if is_branch_name(name) and len(name) <= 255:
        point_head(repository, name)
        Repository.objects.filter(pk=repository.pk).update(default_branch=name)
        repository.default_branch = name
