"""Is there anything for the runners that poll? One look for all that ask at about the same time.

A poll that looks for itself takes a transaction and its runner's lock, and of thousands that wait nearly all find
nothing. Here they are only told whether that look is worth it: it decides, under its lock, as ever.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

from django.db import connection

from ci.lifecycle.fetch import SEEN_EVERY
from ci.lifecycle.matching import normalised
from ci.models import Runner

# Seen-at is for people: whoever is locked just now is seen another time, and no two of these statements wait for each
# other's rows.
POLLING = """
WITH seen AS (
    UPDATE ci_runner SET last_seen_at = now() WHERE id IN (
        SELECT id FROM ci_runner
        WHERE token_hash = ANY(%(hashes)s)
            AND (last_seen_at IS NULL OR last_seen_at < now() - make_interval(secs => %(seen_every)s))
        ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
    )
)
SELECT token_hash, id, labels, repository_id, owner_id, paused, runner_set_id, agent_version, used_job_id,
    EXISTS (SELECT 1 FROM ci_job WHERE ci_job.runner_id = ci_runner.id AND ci_job.state IN ('assigned', 'running'))
FROM ci_runner WHERE token_hash = ANY(%(hashes)s)
"""
# Of lists of labels, those that some queued job's are among: one look into the partial index for each label set.
FITTING = """
SELECT asked.place::int - 1 FROM jsonb_array_elements(%(labels)s::jsonb) WITH ORDINALITY asked (labels, place)
WHERE EXISTS (
    SELECT 1 FROM ci_labelset
    WHERE ci_labelset.labels <@ ARRAY(SELECT jsonb_array_elements_text(asked.labels))::varchar[]
        AND EXISTS (SELECT 1 FROM ci_job WHERE ci_job.label_set_id = ci_labelset.id AND ci_job.state = 'queued')
)
"""
QUEUED = """
SELECT id FROM ci_labelset WHERE id = ANY(%(label_sets)s)
    AND EXISTS (SELECT 1 FROM ci_job WHERE ci_job.label_set_id = ci_labelset.id AND ci_job.state = 'queued')
"""


@dataclass(frozen=True, slots=True)
class Poller:
    """What a poll must know of its runner; `row`: what else would make it another one, as the table had it."""

    pk: int
    token_hash: str
    labels: frozenset[str]
    repository: int | None
    owner: int | None
    paused: bool
    row: tuple[Any, ...] = field(repr=False)

    @classmethod
    def of(cls, runner: Runner) -> Poller:
        row = (
            runner.pk,
            tuple(runner.labels),
            runner.repository_id,
            runner.owner_id,
            runner.paused,
            runner.runner_set_id,
            runner.agent_version,
            runner.used_job_id,
        )
        labels = frozenset(normalised(runner.labels))
        token_hash = runner.token_hash or ""
        return cls(runner.pk, token_hash, labels, runner.repository_id, runner.owner_id, runner.paused, row)


class Word(Enum):
    CHANGED = auto()  # another token, other labels, gone: what is known of it is no longer true
    PERHAPS = auto()  # a look is worth it
    NOTHING = auto()


def identify(hashes: Sequence[str]) -> list[Poller | None]:
    """Whose tokens these are, by their hashes; None for one that must be let in by itself: nobody's, or of a set."""
    found = {runner.token_hash: runner for runner in Runner.objects.filter(token_hash__in=set(hashes))}
    runners = [found.get(token_hash) for token_hash in hashes]
    return [None if runner is None or runner.runner_set_id is not None else Poller.of(runner) for runner in runners]


def look_for(pollers: Sequence[Poller]) -> list[Word]:
    """Whether there may be anything for each: the assignment it has, or a queued job whose labels fit.

    Notes that they were seen. Say of a poller only what was true when it was last looked up: `row` is compared.
    """
    with connection.cursor() as cursor:
        hashes = [poller.token_hash for poller in pollers]
        cursor.execute(POLLING, {"hashes": hashes, "seen_every": SEEN_EVERY.total_seconds()})
        rows = {row[0]: ((row[1], tuple(row[2]), *row[3:9]), row[9]) for row in cursor.fetchall()}
        kinds = list({poller.labels for poller in pollers})
        cursor.execute(FITTING, {"labels": json.dumps([sorted(kind) for kind in kinds])})
        fitting = {kinds[place] for (place,) in cursor.fetchall()}
    return [_word(poller, rows.get(poller.token_hash), fitting) for poller in pollers]


def _word(poller: Poller, found: tuple[tuple[Any, ...], bool] | None, fitting: Collection[frozenset[str]]) -> Word:
    if found is None or found[0] != poller.row:
        return Word.CHANGED
    if found[1] or (poller.labels in fitting and not poller.paused):
        return Word.PERHAPS
    return Word.NOTHING


def still_queued(label_sets: Collection[int]) -> set[int]:
    """Of these label sets, the ones that a queued job names."""
    if not label_sets:
        return set()
    with connection.cursor() as cursor:
        cursor.execute(QUEUED, {"label_sets": list(label_sets)})
        return {label_set for (label_set,) in cursor.fetchall()}
