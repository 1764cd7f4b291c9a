"""How does a long queue come to be at once? As copies of a run and its job that the product itself made, so that every
column and constraint is as it is in real ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import psycopg
from psycopg import sql

from forge.tokens import hash_token
from tests.bench.ground import Ground
from tests.e2e.projects import Project

Session = psycopg.Connection[tuple[Any, ...]]
WORKFLOW = "on: workflow_dispatch\njobs: {job: {runs-on: model, steps: [{run: echo}]}}\n"
ENDED = "UPDATE ci_job SET state = 'ended', conclusion = 'success', ended_at = now(), deadline_at = NULL WHERE id = %s"


class Queue:
    """The first job was dispatched, the others are its copies."""

    def __init__(self, ground: Ground, *, name: str = "queued") -> None:
        self.project = Project.create(ground.person, name, ground.folder / name)
        self.project.start({".github/workflows/model.yml": WORKFLOW})
        self._run = self.project.dispatch("model.yml").id
        self.session = ground.connect()
        [(self._job, self.repository, self.owner)] = self.session.execute(
            "SELECT id, queue_repository, queue_owner FROM ci_job WHERE run_id = %s", [self._run]
        ).fetchall()
        self.session.execute(ENDED, [self._job])  # it is not among those that are measured

    def repositories(self, count: int) -> list[int]:
        """This one, and new ones of the same owner, which have no folder; their ids."""
        name = sql.SQL("'copy-' || n")
        return [self.repository, *copy(self.session, "forge_repository", self.repository, count - 1, {"name": name})]

    def label_sets(self, count: int) -> list[int]:
        """New ones, of two labels each: `label-<n>`, from 1, and `linux`; their ids."""
        rows = self.session.execute(
            "INSERT INTO ci_labelset (labels) SELECT ARRAY['label-' || n, 'linux'] FROM generate_series(1, %s) n"
            " RETURNING id",
            [count],
        ).fetchall()
        return [row[0] for row in rows]

    def fill(
        self, count: int, label_sets: Sequence[int], *, repositories: Sequence[int] = (), jobs_a_run: int = 1
    ) -> None:
        """So many queued jobs more, of these label sets and repositories in turn, a millisecond apart."""
        own = list(repositories) or [self.repository]
        with self.session.transaction():
            [(number,)] = self.session.execute("SELECT max(number) FROM ci_run").fetchall()
            runs = (count + jobs_a_run - 1) // jobs_a_run
            fields = {"number": sql.SQL("{} + n").format(number), "repository_id": _in_turn(own, "n - 1")}
            first = copy(self.session, "ci_run", self._run, runs, fields)[0]
            in_run = f"(n - 1) / {jobs_a_run}"
            fields = {
                "run_id": sql.SQL(f"{first} + {in_run}"),
                "matrix_index": sql.SQL(f"(n - 1) % {jobs_a_run}"),
                "label_set_id": _in_turn(label_sets, "n - 1"),
                "queue_repository": _in_turn(own, in_run),
                "queued_at": sql.SQL("now() + n * interval '1 millisecond'"),
                "deadline_at": sql.SQL("now() + interval '1 day'"),
                "state": sql.SQL("'queued'"),
                "conclusion": sql.SQL("NULL"),
                "ended_at": sql.SQL("NULL"),
            }
            copy(self.session, "ci_job", self._job, count, fields)
        self.session.execute("VACUUM (ANALYZE) ci_job, ci_run")

    def runners(self, count: int, labels: Sequence[str], *, name: str) -> tuple[list[int], list[str]]:
        """Runners of the instance: their ids, and their tokens."""
        tokens = [f"frr_bench-{name}-{number}" for number in range(count)]
        rows = self.session.execute(
            "INSERT INTO ci_runner (name, labels, token_hash, ephemeral, paused, agent_version, os, arch, phase, ready,"
            " reason, used_job_name, created_at, last_seen_at, version, attempts, failures, launcher, handle)"
            " SELECT %(name)s || n, %(labels)s, hash, false, false, '', '', '', 'pending', true,"
            " '', '', now(), now(), 0, 0, 0, '', '' FROM unnest(%(hashes)s::text[]) WITH ORDINALITY AS given (hash, n)"
            " ORDER BY n RETURNING id",
            {"name": name, "labels": list(labels), "hashes": [hash_token(token) for token in tokens]},
        ).fetchall()
        self.session.execute("VACUUM (ANALYZE) ci_runner")
        return [row[0] for row in rows], tokens


def copy(session: Session, table: str, row: int, count: int, fields: Mapping[str, sql.Composable]) -> list[int]:
    """Copies of a row with new ids, which are returned; `fields` are expressions of `n`, which counts from 1."""
    names = session.execute(
        "SELECT column_name FROM information_schema.columns WHERE table_schema = 'public' AND table_name = %s"
        " AND column_name <> 'id' ORDER BY ordinal_position",
        [table],
    ).fetchall()
    columns = [name for (name,) in names]
    statement = sql.SQL(
        "INSERT INTO {table} ({columns}) SELECT {values} FROM {table} model, generate_series(1, {count}) n"
        " WHERE model.id = {row} ORDER BY n RETURNING id"
    ).format(
        table=sql.Identifier(table),
        columns=sql.SQL(", ").join(map(sql.Identifier, columns)),
        values=sql.SQL(", ").join(fields.get(name, sql.SQL("model.") + sql.Identifier(name)) for name in columns),
        count=count,
        row=row,
    )
    return [new for (new,) in session.execute(statement).fetchall()]


def _in_turn(ids: Sequence[int], which: str) -> sql.Composed:
    return sql.SQL("({}::bigint[])[1 + ({}) % {}]").format(list(ids), sql.SQL(which), len(ids))
