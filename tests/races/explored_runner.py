"""Which calls does a runner make, in whatever state, and what must each be answered?

Guard granularity. A call of a runner is authenticated by a look-up first, and looked at again under its lock. Since a
look-up hands on nothing but its yes, a call with a token that has been replaced *is* the call whose token was replaced
between the two; so each runner calls with its last token, current or not, in every state. A poll is two guarded steps,
the repeat and the claim, and each is a move of its own. Where a decision is taken outside of any lock, a rival acts at
just that point (`amid`): the process of a runner dies before its acknowledgement writes its phase; a job is ended or
taken back between the append that filled its log and the stop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from django.test import override_settings

from ci.lifecycle import transitions
from ci.lifecycle.errors import Conflict, JobEnded, LogLimit, Unauthenticated
from ci.models import ACTIVE_STATES, CancelReason, Log, RunnerPhase
from tests.races.exploring import Answer, Belief, Beliefs, Move, Seen, answered, believing
from tests.races.interleaving import LOCK_RUN, WRITE_PHASE, amid
from tests.races.rows import Row

# Of a call with a token that is current: the job before it, its answer, and the job after it.
Expect = Callable[[Row, Answer, Row], None]
BEGUN = [{"number": 2, "name": "Run echo", "state": "running"}]


class RunnerMoves:
    """What runner number `index` may call, with the last token that it was given."""

    def __init__(self, index: int, runner_id: int, *, ephemeral: bool, owner: Any) -> None:
        self.index = index
        self.runner_id = runner_id
        self.ephemeral = ephemeral
        self.owner = owner
        self.poll_id = f"poll of runner {index}"

    def moves(self, seen: Seen) -> Iterator[Move]:
        yield self._move("claims", self._claim)
        yield self._move("claims, the answer is lost", lambda beliefs: self._claim(beliefs, lost=True))
        yield self._move("asks again", self._repeat, self._expect_repeat)
        belief = seen.beliefs[self.index]
        if belief is None:
            return
        if not seen.is_current(belief):
            yield self._move("calls with a replaced token", lambda beliefs: _call_all(belief, beliefs), _all_refused)
            return
        call = {"job_id": belief.job_id, "token": belief.token}
        yield self._call("heartbeat", lambda: transitions.heartbeat(**call), _stopped_by_the_end)
        yield self._call("begins a step", lambda: transitions.update_steps(**call, steps=BEGUN), _stopped_by_the_end)
        for conclusion in ("success", "failure"):
            end = lambda conclusion=conclusion: transitions.complete(**call, conclusion=conclusion)  # noqa: E731
            yield self._call(f"completes with {conclusion}", end, _answered_with_the_end)
        yield self._call("logs", lambda: _log(belief), _takes_the_line)
        job = seen.job(belief.job_id)
        if job is not None and job["state"] in ACTIVE_STATES:
            yield self._call("fills its log", lambda: _fill(belief), _stops_at_the_limit, atomic=False)
            yield from self._amid(belief, job)

    def _amid(self, belief: Belief, job: Row) -> Iterator[Move]:
        """What is decided outside of any lock, and a rival that acts right then."""
        if self.ephemeral and job["state"] == "assigned":
            beat = lambda: self._dies_amid(lambda: transitions.heartbeat(job_id=belief.job_id, token=belief.token))  # noqa: E731
            yield self._call("dies amid its heartbeat", beat, _stopped_by_the_end)
        if job["state"] != "running" or job["cancel_reason"]:
            return
        forced = lambda: transitions.cancel_job(job_id=belief.job_id, actor=self.owner, force=True)  # noqa: E731
        taken = lambda: transitions.requeue_job(job_id=belief.job_id, actor=self.owner)  # noqa: E731
        for name, rival in (("ended by force", forced), ("taken back", taken)):
            fill = lambda rival=rival: _fill_amid(belief, rival)  # noqa: E731
            act = lambda beliefs, fill=fill: answered(beliefs, fill)  # noqa: E731
            yield self._move(f"fills its log, amid it is {name}", act, atomic=False)

    def _dies_amid(self, call: Callable[[], Any]) -> Any:
        die = lambda: transitions.finish_runner(  # noqa: E731
            runner_id=self.runner_id, phase=RunnerPhase.FAILED, reason="Its process died."
        )
        with amid(WRITE_PHASE, die):
            return call()

    def _claim(self, beliefs: Beliefs, *, lost: bool = False) -> Answer:
        answer = answered(beliefs, lambda: transitions.claim(runner_id=self.runner_id, poll_id=self.poll_id))
        return self._given(answer, lost)

    def _repeat(self, beliefs: Beliefs) -> Answer:
        answer = answered(beliefs, lambda: transitions.repeat_claim(runner_id=self.runner_id, poll_id=self.poll_id))
        return self._given(answer, lost=False)

    def _given(self, answer: Answer, lost: bool) -> Answer:
        if answer.value is None or lost:
            return answer
        return believing(answer, self.index, Belief(answer.value.job.pk, answer.value.token))

    def _expect_repeat(self, before: Seen, answer: Answer, after: Seen) -> None:
        """The same assignment with a working token, as long as it is assigned; else nothing, and nothing changes."""
        jobs = before.rows["jobs"]
        mine = [job for job in jobs if job["state"] == "assigned" and job["runner_id"] == self.runner_id]
        if not mine:
            assert answer.value is None, "an assignment was repeated that is over"
            assert after.text == before.text
            return
        assert answer.value is not None, "an assignment that is not acknowledged was not repeated"
        belief = after.beliefs[self.index]
        assert belief is not None
        assert belief.job_id == mine[0]["id"]
        assert after.is_current(belief)
        assert answer.value.job.assignment == mine[0]["assignment"]

    def _move(self, name: str, act: Callable[[Beliefs], Answer], expect: Any = None, *, atomic: bool = True) -> Move:
        return Move(f"runner {self.index} {name}", "runner", act, expect, atomic)

    def _call(self, name: str, act: Callable[[], Any], expect: Expect, *, atomic: bool = True) -> Move:
        """A call with a job token that is current."""

        def expected(before: Seen, answer: Answer, after: Seen) -> None:
            belief = before.beliefs[self.index]
            assert belief is not None
            job, now = before.job(belief.job_id), after.job(belief.job_id)
            assert job is not None and now is not None, "its job is gone"
            if job["state"] == "assigned" and name.startswith(("begins", "completes")):
                assert isinstance(answer.error, Conflict), f"{name} before the acknowledgement: {answer}"
            else:
                expect(job, answer, now)

        return self._move(name, lambda beliefs: answered(beliefs, act), expected, atomic=atomic)


def _call_all(belief: Belief, beliefs: Beliefs) -> Answer:
    """The errors of every call that a job token opens."""
    call = {"job_id": belief.job_id, "token": belief.token}
    calls: list[Callable[[], Any]] = [
        lambda: transitions.heartbeat(**call),
        lambda: transitions.update_steps(**call, steps=BEGUN),
        lambda: transitions.append_log(**call, offset=0, lines=[("2026-01-01T00:00:00Z", "x")]),
        lambda: transitions.complete(**call, conclusion="success"),
    ]
    return Answer(beliefs, value=[answered(beliefs, each).error for each in calls])


def _all_refused(before: Seen, answer: Answer, after: Seen) -> None:
    assert {type(error) for error in answer.value} == {Unauthenticated}, answer.value
    assert after.text == before.text, "a replaced token changed something"


def _log(belief: Belief) -> int:
    # The offset is the right one: holes and repeats have tests of their own.
    offset = Log.objects.filter(pk=belief.job_id).values_list("lines", flat=True).first() or 0
    line = ("2026-01-01T00:00:00Z", f"line {offset}")
    return transitions.append_log(job_id=belief.job_id, token=belief.token, offset=offset, lines=[line])


def _fill(belief: Belief) -> int:
    with override_settings(LOG_LIMIT_LINES=0):
        return _log(belief)


def _fill_amid(belief: Belief, rival: Callable[[], Any]) -> int:
    """The append takes no run's lock: the first one is the stop's."""
    with amid(LOCK_RUN, lambda: answered((), rival)):
        return _fill(belief)


def _takes_the_line(job: Row, answer: Answer, now: Row) -> None:
    """Also after the end, until the log is sealed."""
    assert answer.error is None, answer
    assert now == job, "a line of a log changed its job"


def _stops_at_the_limit(job: Row, answer: Answer, now: Row) -> None:
    assert isinstance(answer.error, LogLimit), answer
    if job["state"] == "running" and not job["cancel_reason"]:
        assert now["cancel_reason"] == CancelReason.LOG_LIMIT, "its log is full, and it goes on"
    else:
        assert now == job


def _stopped_by_the_end(job: Row, answer: Answer, now: Row) -> None:
    """Taken while the job is active, told of the end after it."""
    if job["state"] == "ended":
        assert isinstance(answer.error, JobEnded), answer
        assert (answer.error.conclusion, answer.error.reason) == (job["conclusion"], job["cancel_reason"])
    else:
        assert answer.error is None, answer
        assert now["state"] == "running"


def _answered_with_the_end(job: Row, answer: Answer, now: Row) -> None:
    """As it is, or as it was: a repeat changes nothing, and an end is answered as what it became."""
    assert answer.error is None, answer
    assert now["state"] == "ended"
    assert (answer.value.conclusion, answer.value.reason) == (now["conclusion"], now["cancel_reason"])
    assert job["state"] != "ended" or now == job, "a repeated end changed something"
