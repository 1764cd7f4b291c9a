"""What is there when every order of the actors' calls has been tried? A search over the states of a real database.

Depth first: each call is made on a savepoint in the very state that it is about, looked at, and rolled back once all
that can follow from it is known. States that differ in nothing that any call asks for are one state: how often a job
was queued again and the how-many-th attempt of the run it is are not told apart, so that the search ends although
these go on for ever, and holds for any number of them.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from django.db import transaction

from ci.lifecycle.errors import LifecycleError
from forge.tokens import hash_token
from tests.races import invariants, rows

Digest = tuple[Any, ...]


class Belief(NamedTuple):
    """The last token that a runner was given, perhaps replaced since."""

    job_id: int
    token: str


Beliefs = tuple[Belief | None, ...]


@dataclass(frozen=True)
class Seen:
    """A state as the explorer sees it: the rows, and what each runner believes."""

    rows: rows.Picture
    text: str
    beliefs: Beliefs

    def job(self, job_id: int) -> rows.Row | None:
        return next((job for job in self.rows["jobs"] if job["id"] == job_id), None)

    def is_current(self, belief: Belief) -> bool:
        job = self.job(belief.job_id)
        return job is not None and job["token_hash"] == hash_token(belief.token)


@dataclass(frozen=True)
class Answer:
    """What a call came to: `beliefs` after it, `error` where it was refused, else its `value`."""

    beliefs: Beliefs
    value: Any = None
    error: LifecycleError | None = None


@dataclass(frozen=True)
class Move:
    """One call of one actor. `expect` raises AssertionError where the answer, or the rows after it, are wrong."""

    name: str
    actor: str
    act: Callable[[Beliefs], Answer]
    expect: Callable[[Seen, Answer, Seen], None] | None = None
    # Whether it is one transaction: then a refusal leaves all rows as they were.
    atomic: bool = True


@dataclass
class Found:
    """What the search came to. `ended`: states in which nothing is left to do. `after`: which follow from which."""

    states: int = 0
    transitions: int = 0
    depth: int = 0
    seconds: float = 0
    left: int = 0
    taken: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    ended: set[Digest] = field(default_factory=set)
    after: dict[Digest, set[tuple[str, Digest]]] = field(default_factory=dict)

    def __str__(self) -> str:
        return (
            f"{self.states} states, {self.transitions} transitions, at most {self.depth} deep, "
            f"{self.left} left unexplored, {self.seconds:.0f} s"
        )


class Explorer:
    """`moves` names what may be called in a state; `digest` what of a state counts."""

    def __init__(
        self,
        moves: Callable[[Seen], Sequence[Move]],
        digest: Callable[[Seen], Digest],
        *,
        most_states: int,
        say: Callable[[Found], None] = lambda found: None,
    ) -> None:
        self.found = Found()
        self._say = say
        self._moves = moves
        self._digest = digest
        self._most = most_states
        self._path: list[str] = []

    def explore(self, beliefs: Beliefs) -> Found:
        """From the rows as they are now. Must run inside a transaction; leaves the rows as they were."""
        began = time.monotonic()
        start = self._look(beliefs)
        self._visit(start, self._digest(start))
        self.found.seconds = time.monotonic() - began
        return self.found

    def _look(self, beliefs: Beliefs) -> Seen:
        found, text = rows.picture()
        return Seen(found, text, beliefs)

    def _visit(self, seen: Seen, digest: Digest) -> None:
        if self.found.states >= self._most:
            self.found.left += 1
            return
        self.found.states += 1
        self.found.depth = max(self.found.depth, len(self._path))
        self.found.after[digest] = set()
        self._check(seen)
        self._say(self.found)
        for move in self._moves(seen):
            self._path.append(move.name)
            savepoint = transaction.savepoint()
            after = self._try(move, seen)
            follows = self._digest(after)
            self.found.after[digest].add((move.actor, follows))
            if follows not in self.found.after:
                self._visit(after, follows)
            transaction.savepoint_rollback(savepoint)
            transaction.savepoint_commit(savepoint)
            self._path.pop()

    def _try(self, move: Move, before: Seen) -> Seen:
        answer = move.act(before.beliefs)
        self.found.transitions += 1
        self.found.taken[move.name] += 1
        after = self._look(answer.beliefs)
        try:
            if answer.error is not None and move.atomic:
                assert after.text == before.text, f"refused ({answer.error}), and changed something"
            rows.check_change(before.rows, after.rows)
            if move.expect is not None:
                move.expect(before, answer, after)
        except AssertionError as error:
            raise AssertionError(f"{error}\nafter: {' / '.join(self._path)}") from error
        return after

    def _check(self, seen: Seen) -> None:
        try:
            rows.check_state(seen.rows)
            invariants.check_rows()
            for belief in filter(None, seen.beliefs):
                assert belief.token not in seen.text, "a token is stored as it is"
        except AssertionError as error:
            raise AssertionError(f"{error}\nafter: {' / '.join(self._path)}") from error
        if all(run["state"] == "ended" for run in seen.rows["runs"]):
            self.found.ended.add(self._digest(seen))


def never_ending(found: Found, actors: Sequence[str]) -> set[Digest]:
    """The states from which these actors alone cannot bring the run to its end."""
    before: dict[Digest, set[Digest]] = defaultdict(set)
    for digest, follows in found.after.items():
        for actor, follow in follows:
            if actor in actors:
                before[follow].add(digest)
    reached, edge = set(found.ended), list(found.ended)
    while edge:
        for digest in before[edge.pop()] - reached:
            reached.add(digest)
            edge.append(digest)
    return set(found.after) - reached


def answered(beliefs: Beliefs, act: Callable[[], Any]) -> Answer:
    try:
        return Answer(beliefs, value=act())
    except LifecycleError as error:
        return Answer(beliefs, error=error)


def believing(answer: Answer, runner: int, belief: Belief | None) -> Answer:
    beliefs = list(answer.beliefs)
    beliefs[runner] = belief
    return replace(answer, beliefs=tuple(beliefs))
