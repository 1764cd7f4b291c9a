"""Do the calls of a runner find their rows by an index, however many jobs, steps and chunks there are?"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from ci.api import authentication
from ci.lifecycle import tokens, transitions
from ci.storage import logs
from tests.playground import Playground

MANY = 4_000
TIME = "2026-11-30T12:00:00Z"
# So that reading a whole table would be wrong: copies of the one row that there is, in a run that has ended.
FILL = """
CREATE TEMPORARY TABLE shape ON COMMIT DROP AS SELECT * FROM ci_job WHERE id = %(job)s;
INSERT INTO ci_job SELECT (jsonb_populate_record(shape, jsonb_build_object(
    'id', 1000000 + number, 'matrix_index', number, 'attempt', 7, 'state', 'ended', 'conclusion', 'success',
    'runner_id', NULL, 'token_hash', NULL, 'ended_at', now(), 'started_at', now(), 'deadline_at', NULL
))).* FROM shape, generate_series(1, %(many)s) number;
INSERT INTO ci_step (job_id, number, name, state, conclusion, first_line, line_count, annotations, summary)
    SELECT 1000000 + number, 1, 'x', 'ended', 'success', 0, 0, '[]', '' FROM generate_series(1, %(many)s) number;
INSERT INTO ci_log (job_id, lines, size, base, blob)
    SELECT 1000000 + number, 1, 1, 0, '' FROM generate_series(1, %(many)s) number;
INSERT INTO ci_logchunk (job_id, first_line, line_count, data)
    SELECT 1000000 + number, 0, 1, '' FROM generate_series(1, %(many)s) number;
INSERT INTO ci_heartbeat (job_id, at) SELECT 1000000 + number, now() FROM generate_series(1, %(many)s) number;
INSERT INTO ci_runner SELECT (jsonb_populate_record(runner, jsonb_build_object(
    'id', 1000000 + number, 'uuid', gen_random_uuid(), 'token_hash', lpad(number::text, 64, '0'), 'name', 'r' || number
))).* FROM ci_runner runner, generate_series(1, %(many)s) number WHERE runner.id = %(runner)s;
ANALYZE ci_job, ci_step, ci_log, ci_logchunk, ci_heartbeat, ci_runner;
"""
BIG = {"ci_job", "ci_step", "ci_log", "ci_logchunk", "ci_heartbeat", "ci_runner"}
EXPLAINED = re.compile(r"\s*(SELECT|UPDATE|INSERT|WITH)\b")


@pytest.fixture
def crowd(playground: Playground) -> Any:
    """A running job with a token, among many others' rows."""
    runner = playground.runner()
    playground.run()
    assigned = playground.assigned(runner).begin()
    with connection.cursor() as cursor:
        for statement in FILL.split(";\n"):
            if statement.strip():
                cursor.execute(statement, {"job": assigned.id, "runner": runner.pk, "many": MANY})
    return assigned


def plans_of(call: Any) -> list[Any]:
    """The nodes of the plans of all statements that `call` issues, as they are planned before it."""
    with CaptureQueriesContext(connection) as captured:
        call()
    found: list[Any] = []
    with connection.cursor() as cursor:
        for query in captured.captured_queries:
            if EXPLAINED.match(query["sql"]) and "pg_notify" not in query["sql"]:
                cursor.execute(f"EXPLAIN (FORMAT JSON) {query['sql'].replace('%', '%%')}", [])
                answer = cursor.fetchone()[0]
                plan = json.loads(answer) if isinstance(answer, str) else answer
                found += nodes_of(plan[0]["Plan"])
    return found


def nodes_of(plan: Any) -> list[Any]:
    return [plan, *(node for inner in plan.get("Plans", ()) for node in nodes_of(inner))]


def check(plans: list[Any], *indexes: str) -> None:
    read_whole = {node["Relation Name"] for node in plans if node["Node Type"] == "Seq Scan"} & BIG
    assert not read_whole, f"read as a whole: {read_whole}"
    used = {node.get("Index Name") for node in plans}
    assert set(indexes) <= used, f"used {used}, not all of {indexes}"


def test_the_token_of_a_runner_is_found_by_its_hash(playground: Playground, crowd: Any) -> None:
    plans = plans_of(lambda: tokens.runner_of(playground.runner_token))
    check(plans)
    used = {node.get("Index Name") for node in plans}
    assert any(name is not None and name.startswith("ci_runner_token_hash_") for name in used), used


def test_the_token_of_a_job_is_found_by_the_job(crowd: Any) -> None:
    header = f"Bearer {crowd.token}"
    check(plans_of(lambda: authentication.job(header, job_id=crowd.id)), "ci_job_pkey")


def test_a_heartbeat_reads_no_other_job(crowd: Any) -> None:
    check(plans_of(crowd.heartbeat), "ci_job_pkey")


def test_a_report_of_steps_reads_no_other_steps(crowd: Any) -> None:
    report = {"number": 3, "name": "x", "state": "running"}
    plans = plans_of(lambda: crowd.steps(report))
    check(plans, "ci_job_pkey")
    assert any(node.get("Relation Name") == "ci_step" and "Index" in node["Node Type"] for node in plans), plans


def test_lines_are_appended_to_the_log_of_one_job(crowd: Any) -> None:
    crowd.log("first")
    lines = [(TIME, "second")]
    append = lambda: transitions.append_log(job_id=crowd.id, token=crowd.token, offset=1, lines=lines)  # noqa: E731
    plans = plans_of(append)
    check(plans, "ci_job_pkey")
    assert {"ci_log_pkey", "log_unsealed"} & {node.get("Index Name") for node in plans}, plans


def test_a_range_of_lines_is_read_by_its_offset(crowd: Any) -> None:
    for offset in range(20):
        crowd_line = [(TIME, f"line {offset}")]
        transitions.append_log(job_id=crowd.id, token=crowd.token, offset=offset, lines=crowd_line)
    plans = plans_of(lambda: logs.lines(crowd.id, 10, 5))
    check(plans, "log_chunk_once_an_offset")
    conditions = [node["Index Cond"] for node in plans if node.get("Index Name") == "log_chunk_once_an_offset"]
    assert any("job_id" in condition and "first_line" in condition for condition in conditions), conditions


def test_the_end_of_a_job_reads_its_own_run(crowd: Any) -> None:
    check(plans_of(crowd.complete), "ci_job_pkey")
