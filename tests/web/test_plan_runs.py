"""Do the lists of runs and a run's page find their rows by an index, however many others there are?"""

import json
from typing import Any

import pytest
from django.db import connection
from django.db.models import QuerySet
from django.http import QueryDict

from ci.lifecycle.commit_states import states_of_commits
from ci.models import Event, Job, Run, Step, Workflow
from ci.web.filters import RunFilters
from ci.web.runs import listed
from forge.models import Repository
from tests.playground import Playground

MANY = 10_000
_RUNS = """
INSERT INTO ci_run (repository_id, workflow_id, workflow_path, workflow_name, number, attempt, title, source_action,
    event, payload, inputs, ref, sha, actor_name, triggered_by_name, trusted, env, defaults, problems,
    cancel_in_progress, queue_all, approval_pending, cancel_reason, state, conclusion, created_at, ended_at, version)
SELECT repository, CASE WHEN n %% 50 = 0 THEN rare ELSE usual END, '.github/workflows/ci.yml', 'CI', n, 1,
    'Change', '', CASE WHEN n %% 40 = 0 THEN 'schedule' ELSE 'push' END, '{}', '{}', 'refs/heads/branch-' || n %% 200,
    md5(n::text), 'alice', 'alice', true, '{}', '{}', '[]', false, false, false, '', 'ended',
    CASE WHEN n %% 100 = 0 THEN 'failure' ELSE 'success' END, now(), now(), 0
FROM generate_series(1, %(many)s) n,
    (VALUES (%(repository0)s, %(usual0)s, %(rare0)s), (%(repository1)s, %(usual1)s, %(rare1)s))
        place(repository, usual, rare)
ORDER BY n
"""
_JOBS = """
INSERT INTO ci_job (run_id, attempt, key, name, needs, level, definition, call_inputs, expanded, matrix, matrix_index,
    matrix_total, fail_fast, continue_on_error, timeout_minutes, runs_on, cancel_in_progress, queue_all,
    called_cancel_in_progress, called_queue_all, environment_name, deploys, environment_url, state, hold, conclusion,
    cancel_reason, end_note, outputs, priority, assignment, runner_name, single_use, poll_id, created_at, ended_at,
    version)
SELECT id, 1, 'a', 'a', '{}', 0, '{}', '{}', true, '{}', 0, 1, true, false, 360, '{}', false, false, false, false, '',
    false, '', 'ended', '', 'success', '', '', '{}', 0, 0, '', false, '', now(), now(), 0
FROM ci_run
"""
_STEPS = """
INSERT INTO ci_step (job_id, number, name, state, conclusion, first_line, line_count, annotations, summary)
SELECT id, n, 'Run echo', 'ended', 'success', 0, 0, '[]', '' FROM ci_job, generate_series(1, 2) n
"""
_EVENTS = """
INSERT INTO ci_event (kind, run_id, from_state, to_state, actor_name, detail, created_at)
SELECT 'run_ended', id, '', 'ended', '', '', now() FROM ci_run, generate_series(1, 2) n
"""


@pytest.fixture
def busy(playground: Playground) -> Playground:
    """A repository of many runs beside one of as many, with their jobs, steps and events."""
    given: dict[str, Any] = {"many": MANY}
    other = Repository.objects.create(owner=playground.alice, name="other")
    for number, repository in enumerate((playground.repository, other)):
        given[f"repository{number}"] = repository.pk
        for name in ("usual", "rare"):
            path = f".github/workflows/{name}.yml"
            made = Workflow.objects.create(repository=repository, path=path, name=name, run_count=1)
            given[f"{name}{number}"] = made.pk
    with connection.cursor() as cursor:
        cursor.execute(_RUNS, given)
        for statement in (_JOBS, _STEPS, _EVENTS):
            cursor.execute(statement)
        for table in ("ci_run", "ci_job", "ci_step", "ci_event"):
            cursor.execute(f"ANALYZE {table}")
    return playground


def nodes(plan: dict[str, Any]) -> list[dict[str, Any]]:
    return [plan, *(node for inner in plan.get("Plans", ()) for node in nodes(inner))]


def indexes_of(rows: QuerySet[Any]) -> set[str]:
    """The indexes that the plan uses; it must read no table from its beginning to its end."""
    found = nodes(json.loads(rows.explain(format="json"))[0]["Plan"])
    assert not [node for node in found if node["Node Type"] == "Seq Scan"], found
    return {node["Index Name"] for node in found if "Index Name" in node}


def filtered(busy: Playground, query: str) -> QuerySet[Run]:
    workflows = Workflow.objects.filter(repository=busy.repository).order_by("path")
    return RunFilters(QueryDict(query), workflows=workflows).apply(listed(busy.repository))


@pytest.mark.parametrize(
    ("query", "index"),
    [
        ("", "run_of_repository"),
        ("branch=branch-7", "run_of_ref"),
        ("branch=nowhere", "run_of_ref"),
        ("event=schedule", "run_of_event"),
        ("event=workflow_dispatch", "run_of_event"),
        ("state=failure", "run_of_outcome"),
        ("state=active", "run_of_outcome"),
        ("workflow=rare.yml", "run_of_workflow"),
    ],
)
def test_a_list_is_found_by_its_filter(busy: Playground, query: str, index: str) -> None:
    assert index in indexes_of(filtered(busy, query)[:30])


def test_what_is_rare_is_counted_by_its_index(busy: Playground) -> None:
    for query, index in (("branch=nowhere", "run_of_ref"), ("state=active", "run_of_outcome")):
        assert indexes_of(filtered(busy, query).order_by().values("pk")[:1021]) == {index}


def test_older_runs_are_found_from_the_oldest_that_was_shown(busy: Playground) -> None:
    middle = Run.objects.filter(repository=busy.repository).order_by("pk")[MANY // 2]
    assert indexes_of(listed(busy.repository).filter(pk__lt=middle.pk)[:30]) <= {"run_of_repository", "ci_run_pkey"}


def test_the_rows_of_a_run_are_found_by_it(busy: Playground) -> None:
    run = Run.objects.filter(repository=busy.repository).order_by("pk")[MANY // 2]
    job = Job.objects.get(run=run)
    assert indexes_of(Job.objects.filter(run=run, attempt=1)) == {"job_once_an_attempt_and_call"}
    assert indexes_of(Step.objects.filter(job__in=[job.pk]))
    assert indexes_of(Event.objects.filter(run=run).order_by("-id")[:31])
    assert indexes_of(listed(busy.repository).filter(source_run=run)[:20])


def test_the_states_of_commits_are_found_by_the_commits(busy: Playground) -> None:
    shas = [found.sha for found in listed(busy.repository)[100:130]]
    newest = Run.objects.filter(repository=busy.repository, sha__in=shas).order_by("sha", "workflow_id", "-id")
    assert indexes_of(newest.distinct("sha", "workflow_id")) == {"run_of_commit"}
    assert set(states_of_commits(busy.repository, shas)) == set(shas)


def test_a_list_of_more_runs_than_are_counted_goes_on(busy: Playground, browser: Any) -> None:
    alice = browser(busy.alice)
    address = "/alice/widgets/actions/"
    text = alice.get(f"{address}?page=34").content.decode()
    oldest, next_one = (run.pk for run in listed(busy.repository)[1019:1021])
    assert "more than 1020 runs" in text
    assert f'href="?before={oldest}">Still older runs' in text
    older = alice.get(f"{address}?before={oldest}").content.decode()
    assert f"/runs/{next_one}/" in older
    assert f"/runs/{oldest}/" not in older
    assert "Newest runs" in older
