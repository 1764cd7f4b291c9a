"""Which calls do an owner, the watch and a runner set make, in whatever state, and what must each be answered?

A deadline that passes and the watch that acts on it are one move: but for the watch nobody asks for deadlines, so
whatever comes between could as well have come before. The watch that comes too late, after somebody has moved the
deadline or sent a heartbeat, is the move that must change nothing. In the same way the runner set that decided on an
older row of a runner is a move of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any

from django.db.models import F
from django.utils import timezone

from ci.lifecycle import registration, transitions
from ci.lifecycle.errors import Conflict
from ci.models import ACTIVE_STATES, TERMINAL_PHASES, Heartbeat, Job, Run, RunnerPhase
from tests.races.exploring import Answer, Move, Seen, answered
from tests.races.interleaving import amid
from tests.races.rows import Row

# The lock that a runner's deletion takes, and no other move of that verb.
LOCK_FOR_DELETION = r'FROM "ci_runner" WHERE [^;]* LIMIT 21 FOR NO KEY UPDATE'
PAST = timedelta(days=999)


def newest(seen: Seen) -> list[Row]:
    (run,) = seen.rows["runs"]
    return [job for job in seen.rows["jobs"] if job["attempt"] == run["attempt"]]


def owner_moves(seen: Seen, owner: Any) -> Iterator[Move]:
    (run,) = seen.rows["runs"]
    for force in (False, True):
        how = " by force" if force else ""
        act = lambda force=force: transitions.cancel_run(run_id=run["id"], actor=owner, force=force)  # noqa: E731
        yield _move(f"owner cancels the run{how}", "owner", act, _only_before_the_end(run))
    for mode in ("all", "failed"):
        act = lambda mode=mode: transitions.rerun(run_id=run["id"], actor=owner, mode=mode)  # noqa: E731
        yield _move(f"owner re-runs {mode}", "owner", act, _only_after_the_end(run))
    for job in newest(seen):
        act = lambda job=job: transitions.requeue_job(job_id=job["id"], actor=owner)  # noqa: E731
        yield _move(f"operator requeues {job['key']}", "owner", act, _only_while_active(job))


def job_moves(seen: Seen, owner: Any) -> Iterator[Move]:
    """An owner who cancels one job of the run and not the other."""
    for job in newest(seen):
        for force in (False, True):
            cancel = {"job_id": job["id"], "actor": owner, "force": force}
            act = lambda cancel=cancel: transitions.cancel_job(**cancel)  # noqa: E731
            how = " by force" if force else ""
            yield _move(f"owner cancels {job['key']}{how}", "owner", act, _only_before_the_end(job))


def watch_moves(seen: Seen) -> Iterator[Move]:
    (run,) = seen.rows["runs"]
    jobs = newest(seen)
    if run["deadline_at"] is not None:
        yield _move("deadline of the run passes", "watch", lambda: _let_run_pass(run["id"]), _acts)
    for job in jobs:
        name, job_id = job["key"], job["id"]
        if job["deadline_at"] is not None:
            yield _move(f"deadline of {name} passes", "watch", lambda job_id=job_id: _let_pass(job_id), _acts)
        if job["state"] == "running":
            yield _move(f"runner of {name} falls silent", "watch", lambda job_id=job_id: _fall_silent(job_id), _acts)
    yield _move("watch is late for all", "watch", lambda: _too_late(run, jobs), _changes_nothing)


def set_moves(runner: Row, busy: bool, owner: Any) -> Iterator[Move]:
    """Of one single-use runner: it may go where it has no job, and its process may die at any time."""
    runner_id, name = runner["id"], runner["name"]
    may_go = not busy and runner["phase"] not in TERMINAL_PHASES

    def retires(before: Seen, answer: Answer, after: Seen) -> None:
        assert answer.error is None, answer
        assert answer.value == may_go, f"{name}, {'busy' if busy else runner['phase']}, was retired: {answer.value}"
        assert may_go or after.text == before.text

    def refused(before: Seen, answer: Answer, after: Seen) -> None:
        assert isinstance(answer.error, Conflict), answer

    retire: dict[str, Any] = {"runner_id": runner_id, "reason": "Too many idle."}
    yield _move(f"set retires {name}", "set", lambda: transitions.retire_runner(**retire), retires)
    if runner["version"]:
        older = runner["version"] - 1
        act = lambda: transitions.retire_runner(**retire, version=older)  # noqa: E731
        yield _move(f"set retires {name} as it was", "set", act, refused)
    for phase in (RunnerPhase.FAILED, RunnerPhase.OUTDATED):
        end = {"runner_id": runner_id, "phase": phase, "reason": "Its process died."}
        act = lambda end=end: transitions.finish_runner(**end)  # noqa: E731
        yield _move(f"{name} ends {phase}", "set", act)


def removal_moves(runner: Row, busy: bool, owner: Any) -> Iterator[Move]:
    """It goes, and what it had is not left with nobody; also when it claims just before its deletion."""
    remove = lambda: registration.remove_runner(runner_id=runner["id"], actor=owner)  # noqa: E731
    claim = lambda: transitions.claim(runner_id=runner["id"], poll_id="amid")  # noqa: E731

    def remove_amid() -> None:
        with amid(LOCK_FOR_DELETION, claim, nth=2 if busy else 1):
            remove()

    def gone(before: Seen, answer: Answer, after: Seen) -> None:
        assert answer.error is None, answer
        assert runner["id"] not in {row["id"] for row in after.rows["runners"]}
        left = [job["key"] for job in after.rows["jobs"] if job["state"] in ACTIVE_STATES and not job["runner_id"]]
        assert not left, f"{left} were left with nobody"

    yield _move(f"owner removes {runner['name']}", "owner", remove, gone, atomic=False)
    yield _move(f"owner removes {runner['name']}, amid it claims", "owner", remove_amid, gone, atomic=False)


def _move(name: str, actor: str, act: Callable[[], Any], expect: Any = None, *, atomic: bool = True) -> Move:
    return Move(name, actor, lambda beliefs: answered(beliefs, act), expect, atomic)


def _let_pass(job_id: int) -> str:
    Job.objects.filter(pk=job_id).update(deadline_at=F("deadline_at") - PAST)
    return transitions.act_on_deadline(job_id=job_id)


def _let_run_pass(run_id: int) -> bool:
    Run.objects.filter(pk=run_id).update(deadline_at=F("deadline_at") - PAST)
    return transitions.act_on_run_deadline(run_id=run_id)


def _fall_silent(job_id: int) -> str:
    Heartbeat.objects.filter(job=job_id).update(at=timezone.now() - PAST)
    return transitions.lose_job(job_id=job_id)


def _too_late(run: Row, jobs: Sequence[Row]) -> list[Any]:
    """What was done about deadlines that have not passed, and about runners that are not silent."""
    acts = (transitions.act_on_deadline, transitions.lose_job)
    done = [transitions.act_on_run_deadline(run_id=run["id"])]
    done += [act(job_id=job["id"]) for job in jobs for act in acts]
    return [each for each in done if each]


def _acts(before: Seen, answer: Answer, after: Seen) -> None:
    assert answer.value, "what was due was not done"


def _changes_nothing(before: Seen, answer: Answer, after: Seen) -> None:
    assert answer.value == [], answer
    assert after.text == before.text, "the watch came too late, and changed something"


def _only_before_the_end(row: Row) -> Any:
    def expect(before: Seen, answer: Answer, after: Seen) -> None:
        assert row["state"] != "ended" or isinstance(answer.error, Conflict), f"it had ended: {answer}"

    return expect


def _only_after_the_end(run: Row) -> Any:
    def expect(before: Seen, answer: Answer, after: Seen) -> None:
        assert run["state"] == "ended" or isinstance(answer.error, Conflict), f"it had not ended: {answer}"

    return expect


def _only_while_active(job: Row) -> Any:
    def expect(before: Seen, answer: Answer, after: Seen) -> None:
        if job["state"] not in ACTIVE_STATES or job["cancel_reason"]:
            assert isinstance(answer.error, Conflict), answer
        if answer.error is None:
            now = after.job(job["id"])
            assert now is not None
            assert (now["state"], now["token_hash"], now["poll_id"]) == ("queued", None, "")

    return expect
