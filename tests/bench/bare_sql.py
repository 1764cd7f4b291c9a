"""What does the database alone take for what the product does? Its own statements, recorded once and run again bare.

Recorded with the server's `log_statement`, while one client works and everything but the web processes is halted: so
every statement of the log is one that the calls issued, in their order, with their BEGIN and COMMIT. Rows are told
apart by where their numbers begin (`NUMBERS`), tokens by their length; a life that is run again has them replaced by
its own.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import secrets
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import psycopg

from tests.bench.ground import Ground
from tests.e2e.product import children_of

# The first number of each table's rows: none is mistaken for another's, nor for any other number of a statement.
NUMBERS = {"ci_step": 60_000_000, "ci_job": 70_000_000, "ci_run": 80_000_000, "ci_runner": 90_000_000}
PROCESSES = 2
_GO_ON = ("postgres", "uvicorn")
_ENTRY = re.compile(r"^\d{4}-\d\d-\d\d \S+ UTC \[(?P<pid>\d+)\] (?P<kind>[A-Z]+): {1,2}(?P<text>.*)$")
# Not "execute …": those are of the hubs, which look around now and then whatever the calls do.
_STATEMENT = re.compile(r"statement: (?P<sql>.*)", re.DOTALL)
_NUMBER = re.compile(r"\b[6-9]00\d{5}\b")
_HASH = re.compile(r"'[0-9a-f]{64}'")


def tell_numbers_apart(ground: Ground) -> None:
    """Before the first row of these tables."""
    for table, first in NUMBERS.items():
        ground.sql(f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), {first})")


@contextmanager
def recording(ground: Ground) -> Iterator[list[str]]:
    """The statements that the web processes issue within, in the list once it is left."""
    log = ground.product.data / "logs" / "postgres.log"
    going = {pid for part in _GO_ON for pid in ground.family(part)}
    children = json.loads((ground.product.data / "children.json").read_text())
    halted = [pid for child in map(int, children) for pid in (child, *children_of(child)) if pid not in going]
    found: list[str] = []
    for pid in halted:
        os.kill(pid, signal.SIGSTOP)
    try:
        _log_statements(ground, "all")
        start = log.stat().st_size
        yield found
        text = log.read_bytes()[start:].decode("utf-8", "replace")
    finally:
        _log_statements(ground, "none")
        for pid in halted:
            os.kill(pid, signal.SIGCONT)
    found += statements_in(text)


def _log_statements(ground: Ground, which: str) -> None:
    ground.sql(f"ALTER SYSTEM SET log_statement = '{which}'")
    ground.sql("SELECT pg_reload_conf()")
    time.sleep(0.5)  # every session looks at the new settings before its next statement


def statements_in(log: str) -> list[str]:
    """The statements in the text of a server's log. Lines after an entry's first begin with a tab."""
    found: list[str] = []
    for line in log.splitlines():
        if line.startswith("\t"):
            if found:
                found[-1] += "\n" + line[1:]
        elif entry := _ENTRY.match(line):
            statement = _STATEMENT.match(entry["text"])
            found.append(statement["sql"] if statement and entry["kind"] == "LOG" else "")
    return [sql for sql in found if sql and "ALTER SYSTEM" not in sql and "pg_reload_conf" not in sql]


@dataclass(frozen=True)
class Client:
    """A runner in the database alone: its number, and the hash of its token."""

    number: int
    token_hash: str


@dataclass
class _Life:
    """One job's, while it is run again: what its own numbers are."""

    client: Client
    runs: Mapping[int, int]  # by job
    recorded: Client
    job: int = 0
    steps: list[int] = field(default_factory=list)
    hashes: dict[str, str] = field(default_factory=dict)

    def fill(self, sql: str) -> str:
        return _HASH.sub(self._hash, _NUMBER.sub(self._number, sql))

    def _number(self, match: re.Match[str]) -> str:
        number = int(match[0])
        if number >= NUMBERS["ci_runner"]:
            return str(self.client.number)
        if number >= NUMBERS["ci_run"]:
            return str(self.runs[self.job])
        if number >= NUMBERS["ci_job"]:
            return str(self.job)
        return str(self.steps[number - NUMBERS["ci_step"]])

    def _hash(self, match: re.Match[str]) -> str:
        known = match[0].strip("'")
        if known == self.recorded.token_hash:
            return f"'{self.client.token_hash}'"
        return f"'{self.hashes.setdefault(known, secrets.token_hex(32))}'"

    def learn(self, sql: str, cursor: psycopg.Cursor[Any]) -> None:
        """The numbers that the database has given."""
        if "RETURNING" not in sql or cursor.description is None:
            return
        if "UPDATE ci_job" in sql and "SKIP LOCKED" in sql:
            row = cursor.fetchone()
            assert row is not None, "no job was left to be claimed"
            self.job = row[0]
        elif 'INSERT INTO "ci_step"' in sql:
            self.steps += [row[0] for row in cursor.fetchall()]


@dataclass(frozen=True)
class Task:
    """What one process runs: so many lives, by as many threads as there are clients."""

    database: Mapping[str, str]
    statements: Sequence[str]
    recorded: Client
    clients: Sequence[Client]
    runs: Mapping[int, int]
    lives: int


def again(task: Task) -> float:
    """Run all lives of the task, as fast as the threads can; seconds."""
    statements = _with_steps_in_turn(task.statements)
    left = iter(range(task.lives))
    sessions = [psycopg.connect(**task.database, autocommit=True) for _ in task.clients]  # type: ignore[arg-type]

    def work(client: Client, session: psycopg.Connection[Any]) -> None:
        for _ in left:  # a range's iterator is safe among threads
            life = _Life(client, task.runs, task.recorded)
            with psycopg.ClientCursor(session) as cursor:
                for sql in statements:
                    cursor.execute(life.fill(sql))  # type: ignore[arg-type]
                    life.learn(sql, cursor)

    began = time.monotonic()
    with ThreadPoolExecutor(len(sessions)) as threads:
        for done in [threads.submit(work, *each) for each in zip(task.clients, sessions, strict=True)]:
            done.result()
    took = time.monotonic() - began
    for session in sessions:
        session.close()
    return took


def _with_steps_in_turn(statements: Sequence[str]) -> list[str]:
    """The numbers of steps as the order in which they were made, which a life counts in: 60000000, 60000001, …"""
    known = sorted({number for sql in statements for number in map(int, _NUMBER.findall(sql)) if _is_step(number)})
    order = {number: place for place, number in enumerate(known)}
    return [_NUMBER.sub(lambda match: _in_turn(int(match[0]), order), sql) for sql in statements]


def _is_step(number: int) -> bool:
    return NUMBERS["ci_step"] <= number < NUMBERS["ci_job"]


def _in_turn(number: int, order: Mapping[int, int]) -> str:
    return str(NUMBERS["ci_step"] + order[number] if _is_step(number) else number)


def rate(tasks: Sequence[Task], *, work: Callable[[Task], float] = again) -> float:
    """Lives a second of all tasks at once, a process each."""
    with ProcessPoolExecutor(len(tasks), mp_context=multiprocessing.get_context("spawn")) as processes:
        list(processes.map(_ready, tasks))
        return sum(task.lives / took for task, took in zip(tasks, processes.map(work, tasks), strict=True))


def _ready(task: Task) -> int:
    """Starts the process and loads what it needs, before the clock runs."""
    time.sleep(0.2)
    return os.getpid() * (len(task.clients) > 0)
