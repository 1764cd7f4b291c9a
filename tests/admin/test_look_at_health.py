"""Does the health page say what is wrong, whose it is and what to do, to operators only and without a secret?"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import psycopg
import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django_q.models import OrmQ

from ci.admin import health
from ci.admin.health_parts import HEADS, PARTS, duration
from ci.lifecycle.leading import SCALER_LOCK
from ci.lifecycle.watch import LEADER_LOCK
from ci.models import Job

ADDRESS = "/admin/health/"
NAMES = [part.name for part in PARTS]


def page_of(operator: Client) -> dict[str, str]:
    """The text of each part, without its tags."""
    answer = operator.get(ADDRESS)
    assert answer.status_code == 200
    sections = re.findall(r"<section .*?</section>", answer.content.decode(), re.S)
    texts = [" ".join(re.sub(r"<[^>]+>", " ", section).split()) for section in sections]
    assert [text[: len(name)] for text, name in zip(texts, NAMES, strict=True)] == NAMES
    return dict(zip(NAMES, texts, strict=True))


@contextmanager
def session(name: str, *, autocommit: bool = False) -> Iterator[psycopg.Connection]:
    """A second session on the test's database, which calls itself so."""
    given = connection.get_connection_params()
    known = {key: given[key] for key in ("dbname", "user", "password", "host", "port") if key in given}
    with psycopg.connect(**known, application_name=name, autocommit=autocommit) as other:
        yield other
        other.rollback()


@pytest.fixture
def at_once(settings):
    """A transaction is long as soon as it is there."""
    settings.LONG_TRANSACTION_SECONDS = 0


def test_a_transaction_held_open_is_named_until_it_ends(operator, at_once):
    with session("a forgotten shell") as other:
        other.execute("SELECT 'the-secret-word', 42")
        found = page_of(operator)["Long transactions"]
        assert "✗&nbsp;Look at this" in found
        assert f"{other.info.backend_pid} a forgotten shell as " in found
        assert "idle in transaction" in found
        assert "SELECT ?, ?" in found
        assert "the-secret-word" not in operator.get(ADDRESS).content.decode()
    found = page_of(operator)["Long transactions"]
    assert "a forgotten shell" not in found
    assert "✓&nbsp;Good" in found


def test_a_transaction_that_is_not_long_yet_is_not_named(operator, settings):
    settings.LONG_TRANSACTION_SECONDS = 3600
    with session("a quick one") as other:
        other.execute("SELECT 1")
        assert "a quick one" not in page_of(operator)["Long transactions"]


def test_a_name_of_a_program_is_text_and_nothing_else(operator, at_once):
    with session("<script>alert(1)</script>") as other:
        other.execute("SELECT 1")
        page = operator.get(ADDRESS).content.decode()
    assert "&lt;script&gt;alert(1)" in page
    assert "<script>alert(1)" not in page


def test_nobody_but_an_operator_sees_it(playground):
    assert Client().get(ADDRESS).headers["Location"] == f"/admin/login/?next={ADDRESS}"
    browser = Client()
    browser.force_login(playground.alice, "django.contrib.auth.backends.ModelBackend")
    assert browser.get(ADDRESS).status_code == 302
    staff = get_user_model().objects.create_user("staff", password="x", is_staff=True)
    browser.force_login(staff, "django.contrib.auth.backends.ModelBackend")
    assert browser.get(ADDRESS).status_code == 403
    assert ADDRESS not in browser.get("/admin/").content.decode()


def test_the_admins_first_page_leads_to_it(operator):
    assert f'<a href="{ADDRESS}">Health</a>' in operator.get("/admin/").content.decode()


def test_it_changes_nothing(operator):
    assert operator.post(ADDRESS).status_code == 405


def test_it_takes_as_many_queries_however_much_there_is(operator, playground):
    with CaptureQueriesContext(connection) as few:
        page_of(operator)
    for _ in range(30):
        playground.run()
    OrmQ.objects.bulk_create(OrmQ(key="forge", payload="x", lock=timezone.now()) for _ in range(300))
    with session("one"), session("two"), CaptureQueriesContext(connection) as many:
        page_of(operator)
    assert len(many) == len(few) < 60


def test_a_part_that_fails_says_so_and_leaves_the_others(operator, monkeypatch):
    def slow() -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_sleep(60)")

    monkeypatch.setattr(health, "STATEMENT_MILLISECONDS", 200)
    broken = dataclasses.replace(PARTS[0], look=slow)
    monkeypatch.setattr(health, "PARTS", [broken, *PARTS[1:]])
    found = page_of(operator)
    assert "?&nbsp;Not known" in found["Long transactions"]
    assert "This could not be read: canceling statement due to statement timeout." in found["Long transactions"]


def test_old_tasks_and_jobs_are_named(operator, playground):
    old = timezone.now() - timedelta(minutes=30)
    OrmQ.objects.all().delete()
    assert "None waits." in page_of(operator)["Oldest task"]
    OrmQ.objects.create(key="forge", payload="x", lock=old)
    run = playground.run()
    run.jobs.update(queued_at=old)
    found = page_of(operator)
    assert "1 30 min" in found["Oldest task"]
    assert "Look at this" in found["Oldest task"]
    job = run.jobs.get()
    assert f"{', '.join(job.runs_on)} {job.pk} 30 min" in found["Jobs at the head of their queues"]


def test_the_heads_of_the_queues_are_found_by_their_index(playground):
    """However many jobs wait: one look for each label set."""
    first = playground.run().jobs.get()
    waiting = (
        Job(
            run=first.run, key=f"job-{number}", name="x", state="queued", runs_on=first.runs_on, expanded=True,
            label_set=first.label_set, queued_at=timezone.now(),
            queue_repository=first.queue_repository, queue_owner=first.queue_owner,
        )
        for number in range(5000)
    )  # fmt: skip
    Job.objects.bulk_create(waiting)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE ci_job; ANALYZE ci_labelset")
        cursor.execute(f"EXPLAIN {HEADS}")
        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert "using job_queue on ci_job" in plan
    assert "Seq Scan on ci_job" not in plan


def test_leaders_are_named_and_missed(operator):
    assert "watch nobody leads" in page_of(operator)["Leaders"]
    with session("forge watch 123", autocommit=True) as other, session("forge watch", autocommit=True):
        other.execute("SELECT pg_advisory_lock(%s)", [LEADER_LOCK])
        found = page_of(operator)["Leaders"]
        assert re.search(r"watch forge watch 123 this machine \d+ s \d+ s ago", found)
        assert "scale nobody leads" in found
        other.execute("SELECT pg_advisory_lock(%s)", [SCALER_LOCK])
        assert "scale nobody leads" not in page_of(operator)["Leaders"]


def test_limits_that_are_off_are_named(operator):
    """The server of the tests has no autovacuum."""
    found = page_of(operator)["Limits of sessions"]
    assert "autovacuum off on" in found
    for name, value in (("idle_in_transaction_session", 60000), ("lock", 20000), ("statement", 60000)):
        assert f"{name}_timeout {value} ms above 0" in found


def test_every_part_can_be_read(operator):
    assert "could not be read" not in " ".join(page_of(operator).values())


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(-1, "0 s"), (0, "0 s"), (119, "119 s"), (120, "2 min"), (7199, "120 min"), (7200, "2 h"), (400_000, "5 days")],
)
def test_a_duration_is_said_in_few_characters(seconds, said):
    assert duration(seconds) == said
