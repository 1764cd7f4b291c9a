"""Which index answers what is asked all the time? On tables of some size, as the database itself explains it.

Never how long it takes: only that no look reads a whole table whose rows stay for ever.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django_q.brokers.orm import ORM
from psycopg import sql

from ci.lifecycle import artifact_sweeps, polls, sweeps
from ci.lifecycle.queue_query import CLAIM, CLAIM_BY_REPOSITORY
from ci.models import ConcurrencyGroup, Job, LabelSet, Run
from ci.waiting import hub
from tests.bench.queued import copy
from tests.playground import Playground

OLD, WAITING, ACTIVE = 4000, 2000, 50
# Their rows stay: reading all of them is what must not happen.
LARGE = {"ci_job", "ci_run", "ci_log", "ci_heartbeat", "ci_event"}
N = sql.SQL


@pytest.fixture
def busy(playground: Playground) -> Playground:
    """Thousands of old runs with a job each, thousands that wait, and some that run; copies of what transitions made.

    The old ones take no part in any sweep.
    """
    playground.run()
    ended = playground.assigned().begin()
    ended.log("a line")
    ended.complete()
    waiting = Job.objects.get(run=playground.run())
    session = psycopg_session()
    number = Run.objects.order_by("-number").values_list("number", flat=True)[0]
    old_runs = copies(session, "ci_run", ended.job.run_id, OLD, number=f"{number} + n", push_id="NULL")
    group = str(ConcurrencyGroup.objects.create(repository=playground.repository, name="deploy").pk)
    in_groups = {"concurrency_group_id": group, "called_group_id": group}
    old = copies(session, "ci_job", ended.id, OLD, run_id=f"{old_runs[0]} + n - 1", **in_groups)
    runs = copies(session, "ci_run", waiting.run_id, WAITING, number=f"{number + OLD} + n", push_id="NULL")
    copies(session, "ci_job", waiting.pk, WAITING, run_id=f"{runs[0]} + n - 1")
    runners = copies(session, "ci_runner", ended.runner.pk, ACTIVE, token_hash="'token ' || n", phase="'running'")
    given = {"state": "'running'", "runner_id": f"{runners[0]} + n - 1", "token_hash": "'job ' || n"}
    times = {"assigned_at": "now()", "started_at": "now()"}
    active = copies(session, "ci_job", waiting.pk, ACTIVE, matrix_index="n", **given, **times)
    session.execute("DELETE FROM ci_heartbeat")
    session.execute("INSERT INTO ci_heartbeat (job_id, at) SELECT unnest(%s::bigint[]), now()", [old + active])
    session.execute("DELETE FROM ci_log")
    session.execute(
        "INSERT INTO ci_log (job_id, lines, size, base, blob, sealed_at)"
        " SELECT unnest(%s::bigint[]), 1, 1, 0, '', now()",
        [old],
    )
    session.execute("ANALYZE")
    return playground


def psycopg_session() -> psycopg.Connection[tuple[Any, ...]]:
    connection.ensure_connection()
    session: psycopg.Connection[tuple[Any, ...]] = connection.connection
    return session


def copies(session: psycopg.Connection[tuple[Any, ...]], table: str, row: int, count: int, **fields: str) -> list[int]:
    return copy(session, table, row, count, {name: N(expression) for name, expression in fields.items()})


def explained(statement: str, values: Any = None) -> list[dict[str, Any]]:
    """The nodes of a statement's plan."""
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (FORMAT JSON) {statement}", values)
        plan = cursor.fetchone()[0]
    return list(_nodes((plan if isinstance(plan, list) else json.loads(plan))[0]["Plan"]))


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", []):
        yield from _nodes(child)


def read_whole(nodes: list[dict[str, Any]]) -> set[str]:
    return {node["Relation Name"] for node in nodes if node["Node Type"] == "Seq Scan"} & LARGE


def indexes(nodes: list[dict[str, Any]]) -> set[str]:
    return {node["Index Name"] for node in nodes if "Index Name" in node}


def looks_of(act: Callable[[], object]) -> list[list[dict[str, Any]]]:
    """The plans of the SELECTs that it sends."""
    with CaptureQueriesContext(connection) as sent:
        act()
    texts = [query["sql"] for query in sent.captured_queries if query["sql"].lstrip().startswith("SELECT")]
    assert texts
    return [explained(text) for text in texts]


EVERYWHERE = {"repository": None, "owner": None, "repositories": None, "full": []}


@pytest.mark.parametrize(
    ("statement", "scope", "index"),
    [
        (CLAIM, {}, "job_queue"),
        (CLAIM, {"repository": 2**40}, "job_queue_of_repository"),
        (CLAIM, {"owner": 2**40}, "job_queue_of_owner"),
        (CLAIM_BY_REPOSITORY, {"repositories": [2**40]}, "job_queue_of_repository"),
        (CLAIM_BY_REPOSITORY, {"full": [1, 2]}, "job_queue_of_repository"),
    ],
)
@pytest.mark.parametrize("labels", [["linux"], ["windows"]])
def test_a_claim_reads_the_heads_of_the_queue_in_the_order_of_an_index(
    busy: Playground, statement: str, scope: dict[str, Any], index: str, labels: list[str]
) -> None:
    given = {"runner": 1, "name": "alpha", "single_use": False, "token_hash": "x", "poll_id": "p"}
    times = {"now": "now", "deadline": "now"}
    nodes = explained(statement, {**given, **times, **EVERYWHERE, "labels": labels, **scope})
    assert read_whole(nodes) == set()
    heads = [node for node in nodes if node.get("Alias", "").startswith("queued")]
    assert {node["Index Name"] for node in heads} == {index}
    # Nothing is sorted below a limit of heads but what the label sets and repositories each gave: so few are read.
    assert all("queued" not in node.get("Alias", "") for sort in sorts(nodes) for node in sort["Plans"])


def sorts(nodes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [node for node in nodes if "Sort" in node["Node Type"]]


def test_a_claim_without_a_scope_reads_the_job_alone(busy: Playground) -> None:
    given = {"runner": 1, "name": "alpha", "single_use": False, "token_hash": "x", "poll_id": "p"}
    nodes = explained(CLAIM, {**given, **EVERYWHERE, "now": "now", "deadline": "now", "labels": ["linux"]})
    assert {node["Relation Name"] for node in nodes if "Relation Name" in node} == {"ci_job", "ci_labelset"}


def test_a_look_of_the_hub_asks_each_label_set_once(busy: Playground) -> None:
    for nodes in (explained(hub._QUEUED_SETS), *looks_of(lambda: polls.still_queued([1]))):
        assert read_whole(nodes) == set()
        assert indexes(nodes) & {"job_queue", "job_queue_of_owner", "job_queue_of_repository"}


def test_a_sweep_reads_what_is_due(busy: Playground) -> None:
    plans = looks_of(sweeps.sweep)
    assert [read_whole(nodes) for nodes in plans] == [set()] * len(plans)
    used = set().union(*map(indexes, plans))
    assert {"job_deadline", "run_deadline", "job_one_at_a_time_for_a_runner", "log_unsealed"} <= used


def test_the_next_deadline_is_at_the_head_of_an_index(busy: Playground) -> None:
    plans = looks_of(sweeps.next_deadline)
    assert [read_whole(nodes) for nodes in plans] == [set()] * len(plans)
    used = set().union(*map(indexes, plans))
    assert {"job_deadline", "run_deadline", "job_one_at_a_time_for_a_runner", "log_unsealed"} <= used


def test_the_backstop_of_the_groups_reads_what_is_in_groups(busy: Playground) -> None:
    plans = looks_of(sweeps.settle_groups)
    assert [read_whole(nodes) for nodes in plans] == [set()] * len(plans)
    used = set().union(*map(indexes, plans))
    assert {"job_in_group", "job_in_called_group"} <= used


def test_expired_artifacts_whose_bytes_are_gone_are_not_read_again(busy: Playground) -> None:
    session = psycopg_session()
    session.execute(
        "INSERT INTO ci_artifact (run_id, attempt, name, size, digest, created_at, finalized_at, expires_at)"
        " SELECT id, 1, 'site', 1, '', now(), now(), now() - interval '1 day' FROM ci_run"
    )
    session.execute("ANALYZE ci_artifact, ci_artifactfile")
    zips, folders = looks_of(artifact_sweeps.expire_artifacts)
    assert indexes(zips) == {"artifact_to_expire"}
    assert "Seq Scan" not in {node["Node Type"] for node in folders if node.get("Relation Name") == "ci_artifact"}
    assert indexes(folders) == {"ci_artifact_pkey"}


def test_the_broker_of_the_tasks_reads_its_own_small_table(busy: Playground) -> None:
    """Which holds only what is not done yet: all of it is read, in a moment, and no other."""
    (nodes,) = looks_of(lambda: list(ORM(list_key="forge").get_connection().filter(key="forge")[:5]))
    assert {node["Relation Name"] for node in nodes if "Relation Name" in node} == {"django_q_ormq"}


def test_the_label_sets_are_few(busy: Playground) -> None:
    """They are the one table of the claim that is read whole."""
    assert LabelSet.objects.count() < 10
