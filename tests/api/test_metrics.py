"""Does /metrics say what the rows say, to administrators and their Prometheus only, in a bounded number of series?

Feature table of runner sets, rows 46 (metrics: the names of section 9) and 47 (cardinality).
"""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.db.models import F
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse

from ci.lifecycle import measures
from ci.lifecycle.leading import SCALER_LOCK
from ci.lifecycle.transitions import delete_set
from ci.models import Job, JobMeasure, MeasureSum, Run, Runner, RunnerSet
from ci.scaling.launchers.protocol import PermanentLaunchError
from forge.models import Repository
from tests.playground import Assigned
from tests.scaling.world import World

POOL = {"name": "pool", "namespace": "(instance)"}
TOKEN = "a-token-of-32-characters-or-more"
GAUGES = {
    *("gha_available_jobs", "gha_assigned_jobs", "gha_running_jobs", "gha_registered_runners", "gha_busy_runners"),
    *("gha_min_runners", "gha_max_runners", "gha_desired_runners", "gha_idle_runners"),
    *("gha_controller_pending_ephemeral_runners", "gha_controller_running_ephemeral_runners"),
    *("gha_controller_failed_ephemeral_runners", "gha_controller_running_listeners"),
}
HISTOGRAMS = {
    *("gha_job_queue_duration_seconds", "gha_job_startup_duration_seconds", "gha_job_execution_duration_seconds"),
}


@pytest.fixture
def world(playground):
    return World(playground)


@pytest.fixture
def token(settings):
    settings.METRICS_TOKEN = TOKEN
    return TOKEN


@pytest.fixture
def scrape(token):
    """The values by name and labels, as Prometheus would read them."""

    def read():
        answer = Client().get("/metrics", headers={"Authorization": f"Bearer {token}"})
        assert answer.status_code == 200
        families = list(parse(answer.content.decode()))
        found = {}
        for family in families:
            for sample in family.samples:
                key = (sample.name, frozenset(sample.labels.items()))
                assert key not in found, f"{key} is there twice"
                found[key] = sample.value
        return found

    return read


def value(found, name, **labels):
    return found[name, frozenset({**POOL, **labels}.items())]


def work(world: World, assigned: Assigned, conclusion: str = "success", *, waited: float, started: float, ran: float):
    """A job that waited, began, and ran so many seconds."""
    now = timezone.now()
    Job.objects.filter(pk=assigned.id).update(
        queued_at=now - timedelta(seconds=waited + started), assigned_at=now - timedelta(seconds=started)
    )
    assigned.begin()
    Job.objects.filter(pk=assigned.id).update(assigned_at=F("assigned_at") - timedelta(seconds=ran - started))
    assigned.complete(conclusion)
    world.launcher.end(world.handle(assigned.runner), 0)


def test_the_gauges_are_what_the_rows_say(world, scrape):
    """Row 46."""
    world.make_set(minimum=1, maximum=3)
    world.queue(5)
    world.scale()
    first, second, third = world.runners
    assigned = [world.poll(first), world.poll(second)]
    assert all(assigned)
    assigned[0].begin()
    world.exit(third, 1, "it fell over")
    world.scale()
    found = scrape()
    pool = world.refreshed()
    said = {name: value(found, name) for name in GAUGES}
    live = Runner.objects.filter(runner_set=pool, stopped_at=None)
    assert said == {
        "gha_available_jobs": Job.objects.filter(state="queued").count(),
        "gha_assigned_jobs": pool.assigned,
        "gha_running_jobs": Job.objects.filter(state__in=["assigned", "running"]).count(),
        "gha_registered_runners": live.exclude(registered_at=None).count(),
        "gha_busy_runners": 2,
        "gha_idle_runners": 0,
        "gha_min_runners": 1,
        "gha_max_runners": 3,
        "gha_desired_runners": pool.desired,
        "gha_controller_pending_ephemeral_runners": live.filter(phase="pending").count(),
        "gha_controller_running_ephemeral_runners": live.filter(phase="running").count(),
        "gha_controller_failed_ephemeral_runners": 0,
        "gha_controller_running_listeners": 0,  # no scaler leads in this test
    }
    names = ("gha_available_jobs", "gha_assigned_jobs", "gha_running_jobs", "gha_desired_runners")
    assert [said[name] for name in names] == [3, 5, 2, 3]
    assert (said["gha_registered_runners"], said["gha_controller_running_ephemeral_runners"]) == (2, 1)


def test_an_idle_runner_is_idle_and_registered(world, scrape):
    world.make_set(minimum=2, maximum=3)
    world.scale()
    world.poll(world.runners[0])
    found = scrape()
    names = ("gha_idle_runners", "gha_registered_runners", "gha_controller_pending_ephemeral_runners")
    assert [value(found, name) for name in names] == [1, 1, 2]


def test_runners_that_failed_lately_are_counted(world, scrape, settings):
    world.make_set(minimum=1, maximum=1)
    world.launcher.refusals = [PermanentLaunchError("no such image")]
    world.scale()
    assert Runner.objects.filter(phase="failed").count() == 1
    assert value(scrape(), "gha_controller_failed_ephemeral_runners") == 1
    world.pass_time(settings.SCALE_TROUBLE_WINDOW_SECONDS + 1)
    assert value(scrape(), "gha_controller_failed_ephemeral_runners") == 0


def test_a_set_is_listened_to_while_a_scaler_leads(world, scrape):
    world.make_set()
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [SCALER_LOCK])
        try:
            assert value(scrape(), "gha_controller_running_listeners") == 1
            delete_set(set_id=world.set.pk, actor=world.playground.operator)
            assert value(scrape(), "gha_controller_running_listeners") == 0
        finally:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [SCALER_LOCK])


def test_a_set_that_has_done_nothing_has_counters_of_zero(world, scrape):
    world.make_set()
    found = scrape()
    assert value(found, "gha_started_jobs_total") == 0
    for result in ("success", "failure", "cancelled"):
        assert value(found, "gha_completed_jobs_total", job_result=result) == 0
        assert value(found, "gha_job_execution_duration_seconds_count", job_result=result) == 0
    assert value(found, "gha_job_queue_duration_seconds_bucket", le="+Inf") == 0


def test_counters_and_histograms_are_what_the_jobs_did(world, scrape):
    """Row 46."""
    world.make_set()
    world.queue(3)
    world.scale()
    one, two, three = world.poll_all()
    work(world, one, waited=3, started=4, ran=100)
    work(world, two, "failure", waited=70, started=9, ran=700)
    three.begin()
    found = scrape()
    assert value(found, "gha_started_jobs_total") == 3
    assert value(found, "gha_completed_jobs_total", job_result="success") == 1
    assert value(found, "gha_completed_jobs_total", job_result="failure") == 1
    assert value(found, "gha_completed_jobs_total", job_result="cancelled") == 0
    queue = "gha_job_queue_duration_seconds"
    assert [value(found, f"{queue}_bucket", le=le) for le in ("2.5", "5.0", "60.0", "120.0", "+Inf")] == [1, 2, 2, 3, 3]
    assert value(found, f"{queue}_sum") == pytest.approx(73, abs=30)
    startup = "gha_job_startup_duration_seconds"
    assert [value(found, f"{startup}_bucket", le=le) for le in ("5.0", "60.0", "120.0")] == [1, 2, 3]
    execution = "gha_job_execution_duration_seconds"
    assert value(found, f"{execution}_bucket", job_result="success", le="60.0") == 0
    assert value(found, f"{execution}_bucket", job_result="success", le="300.0") == 1
    assert value(found, f"{execution}_bucket", job_result="failure", le="600.0") == 0
    assert value(found, f"{execution}_count", job_result="failure") == 1


def test_a_cancelled_job_is_counted_as_one(world, scrape):
    world.make_set()
    world.queue(1)
    world.scale()
    (assigned,) = world.poll_all()
    assigned.begin()
    Job.objects.filter(pk=assigned.id).update(cancel_reason="owner")
    assigned.complete("failure")
    assert value(scrape(), "gha_completed_jobs_total", job_result="cancelled") == 1


def test_no_counter_goes_down_when_it_is_added_up_or_its_rows_are_deleted(world, scrape):
    """Also a restart changes nothing: what is counted is in the database alone."""
    world.make_set()
    world.queue(2)
    world.scale()
    one, two = world.poll_all()
    work(world, one, waited=1.001, started=0.333, ran=10.005)
    work(world, two, waited=2.002, started=0.777, ran=20.007)
    assert JobMeasure.objects.count() == 6
    before = {key: seen for key, seen in scrape().items() if _is_counted(key)}
    world.scale()
    assert not JobMeasure.objects.exists()
    assert MeasureSum.objects.exists()
    assert {key: seen for key, seen in scrape().items() if _is_counted(key)} == before
    Run.objects.all().delete()
    Runner.objects.filter(runner_set=world.set, stopped_at__isnull=False).delete()
    Repository.objects.all().delete()
    assert {key: seen for key, seen in scrape().items() if _is_counted(key)} == before
    assert value(before, "gha_started_jobs_total") == 2


def _is_counted(key):
    return "duration" in key[0] or key[0].endswith("_total")


def test_what_is_added_up_later_comes_to_what_was_there(world, scrape):
    world.make_set()
    for count in (1, 2, 3):
        world.queue(count)
        world.scale()
        assert world.work_all() == count
        world.scale()
    assert value(scrape(), "gha_started_jobs_total") == 6
    assert value(scrape(), "gha_completed_jobs_total", job_result="success") == 6
    assert value(scrape(), "gha_job_execution_duration_seconds_count", job_result="success") == 6
    assert sum(row.count for row in MeasureSum.objects.filter(kind="execution")) == 6


def test_jobs_of_other_runners_are_not_the_sets(world, scrape):
    world.make_set(labels=["gpu"])
    world.playground.run()
    world.playground.work(world.playground.runner())
    assert not JobMeasure.objects.exists()
    assert value(scrape(), "gha_started_jobs_total") == 0


def test_a_set_that_is_deleted_takes_its_measures_along(world, scrape):
    world.make_set()
    world.queue(1)
    world.scale()
    world.work_all()
    world.scale()
    Runner.objects.all().delete()
    RunnerSet.objects.get().delete()
    assert not MeasureSum.objects.exists() and not JobMeasure.objects.exists()
    assert {name for name, _ in scrape()} == {"gha_hidden_runner_sets", "forge_longest_transaction_seconds"}


def _measure(count: int, *, repository: str = "", of: RunnerSet) -> None:
    JobMeasure.objects.bulk_create(
        JobMeasure(
            runner_set=of,
            kind=kind,
            repository=repository,
            result="success" if kind == "execution" else "",
            bound=measures.BOUNDS[number % len(measures.BOUNDS)],
            milliseconds=number,
        )
        for number in range(count)
        for kind in ("queue", "startup", "execution")
    )


def test_a_thousand_jobs_are_as_many_series_and_queries_as_one(world, scrape):
    """Row 47."""
    pool = world.make_set()
    _measure(1, of=pool)
    with CaptureQueriesContext(connection) as few:
        one = scrape()
    _measure(1000, of=pool)
    with CaptureQueriesContext(connection) as many:
        thousand = scrape()
    assert thousand.keys() == one.keys()
    assert len(many) == len(few)
    assert value(thousand, "gha_started_jobs_total") == 1001
    measures.add_up(pool.pk)
    assert MeasureSum.objects.count() <= 3 * len(measures.BOUNDS)
    assert scrape() == thousand


def test_sets_beyond_the_limit_have_no_series_and_are_counted(world, scrape, settings):
    """Row 47."""
    settings.METRICS_SETS = 2
    for name in ("first", "second", "third"):
        world.make_set(name=name)
    found = scrape()
    assert {dict(labels)["name"] for _, labels in found if "name" in dict(labels)} == {"first", "second"}
    assert found["gha_hidden_runner_sets", frozenset()] == 1


def test_sets_of_one_name_in_several_scopes_are_told_apart(world, scrape):
    playground = world.playground
    for scope in ({}, {"owner": playground.alice}, {"repository": playground.repository}):
        world.make_set(**scope)
    found = scrape()
    namespaces = {dict(labels)["namespace"] for name, labels in found if name == "gha_max_runners"}
    assert namespaces == {"(instance)", "alice", "alice/widgets"}


def test_repositories_are_told_apart_only_on_demand_and_up_to_a_limit(world, scrape, settings):
    """Row 47."""
    world.make_set(maximum=20)
    settings.METRICS_REPOSITORIES = 2
    for name in ("widgets", "gears", "cogs", "nuts"):
        repository = world.playground.repository if name == "widgets" else world.playground.make_repository(name=name)
        world.queue(1, repository=repository)
        world.scale()
        assert world.work_all() == 1
        world.scale()
    found = scrape()
    started = {dict(labels)["repository"]: v for (name, labels), v in found.items() if name == "gha_started_jobs_total"}
    assert started == {"alice/widgets": 1, "alice/gears": 1, "(others)": 2}
    settings.METRICS_REPOSITORIES = 0
    assert value(scrape(), "gha_started_jobs_total") == 4


def test_prometheus_may_ask_for_the_newer_format(world, token):
    """Row 46."""
    world.make_set()
    headers = {"Authorization": f"Bearer {token}", "Accept": "application/openmetrics-text; version=1.0.0"}
    answer = Client().get("/metrics", headers=headers)
    assert answer.headers["Content-Type"].startswith("application/openmetrics-text; version=1.0.0")
    names = {family.name for family in parse_openmetrics(answer.content.decode())}
    assert names == {
        *(*GAUGES, *HISTOGRAMS, "gha_started_jobs", "gha_completed_jobs", "gha_hidden_runner_sets"),
        "forge_longest_transaction_seconds",
    }


def test_names_with_quotes_are_escaped(world, scrape):
    world.make_set(name='odd "pool"\\')
    assert {dict(labels)["name"] for name, labels in scrape() if name == "gha_max_runners"} == {'odd "pool"\\'}


@pytest.mark.parametrize("header", [None, "Bearer wrong", f"Basic {TOKEN}", "Bearer", f"Bearer {TOKEN}x", "Bearer é"])
def test_without_the_token_nothing_is_shown(world, token, header):
    world.make_set(name="secret-pool")
    answer = Client().get("/metrics", headers={} if header is None else {"Authorization": header})
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")
    assert b"secret-pool" not in answer.content


@pytest.mark.parametrize("header", ["Bearer ", "Bearer x", "Bearer None"])
def test_an_empty_setting_is_no_token(db, settings, header):
    settings.METRICS_TOKEN = ""
    assert Client().get("/metrics", headers={"Authorization": header}).status_code == 401


@pytest.mark.parametrize(("person", "status"), [("operator", 200), ("alice", 403), ("mallory", 403)])
def test_of_those_who_are_signed_in_only_administrators_may(world, settings, person, status):
    settings.METRICS_TOKEN = ""
    world.make_set(name="secret-pool")
    browser = Client()
    browser.force_login(getattr(world.playground, person), "django.contrib.auth.backends.ModelBackend")
    answer = browser.get("/metrics")
    assert answer.status_code == status
    assert (b"secret-pool" in answer.content) == (status == 200)
    assert answer.headers["Cache-Control"] == "no-store"
    assert browser.post("/metrics").status_code == 405


def test_the_longest_transaction_has_a_series_a_part(db, scrape):
    found = scrape()
    series = [dict(labels)["part"] for name, labels in found if name == "forge_longest_transaction_seconds"]
    assert sorted(series) == ["hub", "other", "scale", "tasks", "watch", "web"]
