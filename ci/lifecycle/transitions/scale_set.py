"""How many runners shall a set have now, and which come, go and start? Decided under the set's lock.

Everything follows from the rows, nothing from earlier looks: once too often, or twice at once, and nothing more
happens.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Q
from django.utils import timezone

from ci.lifecycle import demand, events, measures
from ci.lifecycle.end_words import OUTDATED_CODE
from ci.lifecycle.transitions import samples, trouble
from ci.lifecycle.transitions.dying import SOON, Stop, dying
from ci.lifecycle.transitions.guard import guarded, lock_free_runner, lock_set
from ci.lifecycle.transitions.moves import write
from ci.lifecycle.transitions.retire_runner import retire_runner
from ci.models import Runner, RunnerPhase, RunnerSet

# So many are made at once; the rest follow at the next look, so that no look locks the set for long.
MOST_MADE = 200
MOST_RETIRED = 200
MOST_FORGOTTEN = 500


@dataclass(frozen=True, kw_only=True)
class Scaled:
    """What is to be done outside of the database: runners to `launch`, processes to `stop`; and when to look again."""

    desired: int
    assigned: int
    launch: tuple[int, ...] = ()
    stop: tuple[Stop, ...] = ()
    wake_at: datetime | None = None
    deleted: bool = False


@guarded
def scale_set(*, set_id: int, losing_from: datetime | None = None) -> Scaled:
    """Bring a set's runners to what its jobs need. Before `losing_from` no silence is held against a runner.

    Raises NotFound.
    """
    runner_set = lock_set(set_id)
    now = timezone.now()
    _park(runner_set, now)
    sight = demand.look(runner_set)
    live = {runner.pk: runner for runner in Runner.objects.filter(runner_set=runner_set, stopped_at=None)}
    seen = [(one, live[one.id]) for one in sight.runners if one.id in live]
    desired = _desired(runner_set, sight)
    going = dying(seen, now, losing_from=losing_from)
    wakes = [*going.wakes]
    useful = _let_go(runner_set, seen, desired, now, wakes)
    if runner_set.phase == RunnerSet.Phase.DELETING and _deleted(runner_set):
        return Scaled(desired=0, assigned=sight.assigned, deleted=True)
    # Of the one moment of the look: a job that has ended since would leave a gap that is none.
    missing = min(desired - useful, runner_set.maximum - len(sight.runners))
    _make(runner_set, missing, now)
    if missing > MOST_MADE:
        wakes.append(now)
    starts = trouble.launches(runner_set, now)
    wakes += [*starts.wakes, *samples.take(runner_set, sight, desired, now)]
    _forget(runner_set, now)
    measures.add_up(set_id)
    wake_at = min(wakes, default=None)
    # No decision of a person's: what their forms were opened on has not changed.
    RunnerSet.objects.filter(pk=set_id).update(
        desired=desired,
        assigned=sight.assigned,
        wake_at=wake_at,
        trouble=starts.trouble,
        troubled_until=starts.troubled_until,
    )
    return Scaled(
        desired=desired, assigned=sight.assigned, launch=starts.ready, stop=tuple(going.stop), wake_at=wake_at
    )


def _desired(runner_set: RunnerSet, sight: demand.Sight) -> int:
    if runner_set.phase != RunnerSet.Phase.RUNNING:
        return 0
    return demand.desired_count(minimum=runner_set.minimum, maximum=runner_set.maximum, assigned=sight.assigned)


def _park(runner_set: RunnerSet, now: datetime) -> None:
    """A runner of this revision ended as outdated: others of it would do the same, one by one."""
    if runner_set.phase != RunnerSet.Phase.RUNNING:
        return
    outdated = Runner.objects.filter(
        Q(phase=RunnerPhase.OUTDATED) | Q(exit_code=OUTDATED_CODE),
        runner_set=runner_set,
        spec_revision=runner_set.spec_revision,
    )
    first = outdated.order_by("pk").first()
    if first is None:
        return
    write(runner_set, phase=RunnerSet.Phase.OUTDATED, parked_at=now)
    events.record(
        "runner_set_parked",
        runner_set=runner_set,
        runner=first,
        from_state=RunnerSet.Phase.RUNNING,
        to_state=RunnerSet.Phase.OUTDATED,
        detail=f"{first} is outdated: {first.reason}",
    )


def _let_go(
    runner_set: RunnerSet,
    seen: Sequence[tuple[demand.Seen, Runner]],
    desired: int,
    now: datetime,
    wakes: list[datetime],
) -> int:
    """Retire idle runners: all of a set that starts none, those of an old revision, and what is beyond need, the oldest
    first. How many are left that have a job or may get one."""
    left, retired = sum(1 for one, _ in seen if one.is_useful), 0
    for one, runner in sorted((pair for pair in seen if _is_idle(*pair)), key=_age):
        if retired >= MOST_RETIRED:
            wakes.append(now)
            break
        # A paused one counts for nothing, so it is not too much either: whoever paused it wants to look at it.
        too_many = left > desired and one.is_useful
        calm_at = runner.idle_since and runner.idle_since + timedelta(seconds=settings.SCALE_CALM_SECONDS)
        reason = _reason_to_go(runner_set, runner, too_many=too_many, calm=bool(calm_at and calm_at <= now))
        if reason and _retire(runner, reason):
            left -= int(one.is_useful)
            retired += 1
        elif reason:
            wakes.append(now + SOON)
        elif too_many and calm_at:
            wakes.append(calm_at)
    return left


def _is_idle(one: demand.Seen, runner: Runner) -> bool:
    return not one.is_done and not one.busy and runner.deleting_at is None


def _age(pair: tuple[demand.Seen, Runner]) -> tuple[bool, datetime, int]:
    """Those first that have no process yet, then the oldest."""
    runner = pair[1]
    return (runner.next_attempt_at is None, runner.created_at, runner.pk)


def _reason_to_go(runner_set: RunnerSet, runner: Runner, *, too_many: bool, calm: bool) -> str:
    """ "" for one that stays; also one that is only coming up, which has a deadline for that."""
    if runner_set.phase != RunnerSet.Phase.RUNNING:
        return f"Its set is {runner_set.get_phase_display().lower()}."
    if runner.next_attempt_at is not None:
        return "Its work was done before it was started." if too_many else ""
    if runner.spec_revision != runner_set.spec_revision:
        return "Its set has a newer revision."
    return "More runners were idle than are needed." if too_many and calm else ""


def _retire(runner: Runner, reason: str) -> bool:
    """False where it got a job, ended, or is locked by whoever sees to that just now."""
    if lock_free_runner(runner) is None:
        return False
    return retire_runner(runner_id=runner.pk, reason=reason, version=runner.version)


def _make(runner_set: RunnerSet, missing: int, now: datetime) -> None:
    for _ in range(min(missing, MOST_MADE)):
        made = Runner.objects.create(
            owner=runner_set.owner,
            repository=runner_set.repository,
            name=f"{runner_set.name[:90]}-{secrets.token_hex(4)}",
            labels=runner_set.labels,
            runner_set=runner_set,
            ephemeral=True,
            ready=False,
            spec_revision=runner_set.spec_revision,
            next_attempt_at=now,
            created_at=now,
        )
        events.record("runner_made", runner=made, runner_set=runner_set, to_state=made.phase)


def _deleted(runner_set: RunnerSet) -> bool:
    """The last step of deleting a set: nothing of it runs any more."""
    if Runner.objects.filter(runner_set=runner_set, stopped_at=None).exists():
        return False
    Runner.objects.filter(runner_set=runner_set).delete()
    events.record("runner_set_deleted", from_state=runner_set.phase, detail=runner_set.name)
    runner_set.delete()
    return True


def _forget(runner_set: RunnerSet, now: datetime) -> None:
    old = Runner.objects.filter(
        runner_set=runner_set, stopped_at__lt=now - timedelta(seconds=settings.SCALE_KEEP_SECONDS)
    )
    Runner.objects.filter(pk__in=list(old.order_by("pk").values_list("pk", flat=True)[:MOST_FORGOTTEN])).delete()
