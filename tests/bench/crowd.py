"""How do many runners come to wait, and jobs to be queued for them? By rows that SQL copies."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from forge.tokens import hash_token, new_token
from tests.bench.ground import Companion, Ground
from tests.e2e.product import eventually
from tests.e2e.projects import Project

# A runner that got a job does nothing with it here, and no job shall be given twice for that.
SETTINGS = {"FORGE_ACKNOWLEDGE_SECONDS": "3600"}
LABELS = ["linux"]
_LOOK_SECONDS = 120.0
_WORKFLOW = "name: one\non: workflow_dispatch\njobs:\n  one: {runs-on: linux, steps: [{run: echo}]}\n"


class Crowd:
    """Runners that wait for jobs which are blocked until a queuer queues them."""

    def __init__(self, ground: Ground, *, jobs: int) -> None:
        self.ground, self.sql = ground, ground.sql
        project = Project.create(ground.person, "crowd", ground.folder / "tree")
        project.start({".github/workflows/one.yml": _WORKFLOW})
        self._api = project.api
        self._run = project.dispatch("one.yml").id
        self.jobs = self._blocked_jobs(jobs)

    def waiting(self, count: int, *, wait: float = 30.0, rate: float = 400.0) -> Companion:
        """So many new runners, once all of them wait."""
        tokens = self._registered(count)
        started = time.time()
        companion = Companion(
            "waiters",
            {"host": "127.0.0.1", "port": self.ground.product.port, "tokens": tokens, "wait": wait, "rate": rate},
        )

        def all_looked() -> bool:
            seen = "SELECT count(*) FROM ci_runner WHERE last_seen_at >= to_timestamp(%s)"
            return bool(self.sql(seen, started)[0][0] >= count)

        eventually(all_looked, seconds=_LOOK_SECONDS, what=f"{count} runners wait", every=0.5)
        return companion

    def queuer(self, jobs: Sequence[int], *, rate: float, bare: int = 0) -> Companion:
        task = {"data": str(self.ground.product.data), "jobs": list(jobs), "rate": rate, "bare": bare}
        return Companion("queuer", {**task, "database": self.ground.database})

    def idle_runners(self, count: int) -> list[tuple[int, str, str]]:
        """Id, name and token hash of new runners of which nobody polls."""
        hashes = [hash_token(token) for token in self._registered(count)]
        rows = self.sql("SELECT id, name, token_hash FROM ci_runner WHERE token_hash = ANY(%s) ORDER BY id", hashes)
        return [(int(number), str(name), str(token_hash)) for number, name, token_hash in rows]

    def left(self) -> int:
        """Jobs that are queued, and nobody has taken."""
        return int(self.sql("SELECT count(*) FROM ci_job WHERE state = 'queued'")[0][0])

    def _registered(self, count: int) -> list[str]:
        """Tokens of new runners, made after the first, which registers by the API."""
        [(first, _)] = self.ground.register(1, [LABELS], api=self._api)
        [(template,)] = self.sql("SELECT id FROM ci_runner WHERE token_hash = %s", hash_token(first))
        tokens = [new_token("runner") for _ in range(count - 1)]
        self._copy(
            "ci_runner",
            f"ci_runner row, unnest(%s::text[]) hash WHERE row.id = {template}",
            [hash_token(token) for token in tokens],
            token_hash="hash",
            name="row.name || '-' || left(hash, 20)",
        )
        self.sql("ANALYZE ci_runner")
        return [first, *tokens]

    def _blocked_jobs(self, count: int) -> list[int]:
        """Each of a run of its own, as many pushes would make them; the one they are made after ends."""
        runs = self._copy(
            "ci_run", f"ci_run row, generate_series(1, %s) n WHERE row.id = {self._run}", count, number="row.number + n"
        )
        jobs = self._copy(
            "ci_job",
            f"ci_job row, unnest(%s::bigint[]) run WHERE row.run_id = {self._run}",
            runs,
            run_id="run",
            state="'blocked'",
            hold="'needs'",
            queued_at="NULL",
            deadline_at="NULL",
        )
        self.sql("UPDATE ci_workflow SET run_count = run_count + %s", count)
        self.ground.person.call("POST", f"{self._api}/runs/{self._run}/cancel")
        self.sql("ANALYZE")
        return jobs

    def _copy(self, table: str, source: str, values: Any, **changed: str) -> list[int]:
        """Ids of new rows like `row` of the source, but for what is changed."""
        columns = [
            name
            for (name,) in self.sql(
                "SELECT column_name FROM information_schema.columns WHERE table_name = %s AND column_name <> 'id'",
                table,
            )
        ]
        taken = ", ".join(changed.get(name, f"row.{name}") for name in columns)
        # All names are this file's own or the schema's.
        made = self.sql(f"INSERT INTO {table} ({', '.join(columns)}) SELECT {taken} FROM {source} RETURNING id", values)
        return sorted(int(number) for (number,) in made)
