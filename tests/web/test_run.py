"""What does the page of a run show, and to whom?"""

from typing import Any

import pytest
from django.test import Client

from ci.lifecycle import transitions
from ci.models import Job, Run
from tests.playground import Playground

THREE_LEVELS = """
    name: CI
    on: push
    jobs:
      lint:
        runs-on: linux
        steps: [{run: make lint}]
      test:
        needs: lint
        runs-on: linux
        steps: [{run: make test}]
      deploy:
        needs: [lint, test]
        runs-on: linux
        steps: [{run: make deploy}]
"""


def page(run: Run, more: str = "") -> str:
    return f"/alice/widgets/actions/runs/{run.pk}/{more}"


def text_of(client: Client, address: str) -> str:
    response = client.get(address)
    assert response.status_code == 200, response.status_code
    return response.content.decode()


def test_it_shows_what_the_run_is(alice: Client, playground: Playground) -> None:
    run = playground.run(THREE_LEVELS, message="Mend the lint", by=playground.bob)
    text = text_of(alice, page(run))
    for part in ("Mend the lint", "push by bob", run.sha[:7], "main", "Queued"):
        assert part in text


def test_jobs_stand_by_level(alice: Client, playground: Playground) -> None:
    text = text_of(alice, page(playground.run(THREE_LEVELS)))
    order = ["Level 1", ">lint<", "Level 2", ">test<", "Level 3", ">deploy<"]
    positions = [text.index(part) for part in order]
    assert positions == sorted(positions)


def test_an_unfinished_run_asks_to_be_looked_at_again(alice: Client, playground: Playground) -> None:
    run = playground.run()
    text = text_of(alice, page(run))
    assert '<noscript><meta http-equiv="refresh"' in text
    assert 'hx-trigger="every 3s"' in text
    assert 'role="status"' in text
    playground.work(playground.runner())
    text = text_of(alice, page(run))
    assert "http-equiv" not in text
    assert "hx-get" not in text


def test_the_failed_job_is_shown_with_its_failed_step(alice: Client, playground: Playground) -> None:
    run = playground.run()
    assigned = playground.assigned().begin()
    assigned.steps({"number": 2, "name": "Run make lint", "state": "ended", "conclusion": "failure"})
    assigned.complete("failure")
    text = text_of(alice, page(run))
    assert "Failed jobs" in text
    assert "Step 2, Run make lint" in text
    assert f"jobs/{assigned.id}/#step-2" in text


def test_a_startup_failure_shows_each_problem_with_its_line_marked(alice: Client, playground: Playground) -> None:
    run = playground.run("name: CI\non: push\njobs:\n  a:\n    runs-on: linux\n    stepz: []\n  b:\n    steps: []\n")
    text = text_of(alice, page(run))
    assert "Startup failure" in text
    assert "ci.yml:6:5" in text
    assert '<li data-number="6" class="marked">    stepz: []</li>' in text
    assert 'aria-hidden="true">    ^</li>' in text
    assert "Re-run" not in text
    assert len(run.problems) > 1
    assert text.count("ci.yml:") >= len(run.problems)


def test_a_problem_is_text(alice: Client, playground: Playground) -> None:
    run = playground.run("name: CI\non: push\njobs:\n  a: <script>alert(1)</script>\n")
    text = text_of(alice, page(run))
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(1)" in text


def test_annotations_and_summaries_are_shown_and_harmless(alice: Client, playground: Playground) -> None:
    run = playground.run()
    assigned = playground.assigned().begin()
    assigned.steps(
        {
            "number": 2, "name": "<img src=x onerror=alert(1)>", "state": "ended", "conclusion": "success",
            "annotations": [
                {"level": "warning", "message": "later <b>bold</b>"},
                {"level": "error", "message": "first", "title": "<script>", "path": "a/b\n.py", "line": 3},
                {"level": "bogus", "message": "odd", "line": "x"},
                "no annotation",
            ],
            "summary": "## Coverage\n\n<script>alert(1)</script>\n\n[bad](javascript:alert(1)) "
            "[good](https://example.org)\n\n<p onclick='x()' style='x'>par</p><form action=/logout/><button>x",
        }
    )  # fmt: skip
    assigned.complete("success")
    text = text_of(alice, page(run))
    assert text.index("first") < text.index("later &lt;b&gt;bold")
    assert "Coverage</h2>" in text
    assert 'rel="nofollow' in text
    assert "/blob/" in text
    for bad in (
        "<script>alert",
        'href="javascript:',
        "onclick",
        "onerror=alert(1)>",
        "<form action=/logout/",
        "<b>bold",
    ):
        assert bad not in text


def test_earlier_attempts_stay_readable(alice: Client, playground: Playground) -> None:
    run = playground.run()
    runner = playground.runner()
    playground.work(runner, {"build": "failure"})
    transitions.rerun(run_id=run.pk, actor=playground.bob, mode="all")
    newest, first = text_of(alice, page(run)), text_of(alice, page(run, "?attempt=1"))
    assert "attempt 2 by bob" in newest
    assert "?attempt=1" in newest
    assert "Failed jobs" in first
    assert "Re-run" not in first
    assert "hx-get" not in first
    old, new = Job.objects.filter(run=run).order_by("attempt")
    assert f"jobs/{old.pk}/" in first
    assert f"jobs/{new.pk}/" in newest


@pytest.mark.parametrize("attempt", ["0", "2", "x", "-1", "9" * 30, ""])
def test_an_attempt_that_never_was_is_not_found(alice: Client, playground: Playground, attempt: str) -> None:
    assert alice.get(page(playground.run(), f"?attempt={attempt}")).status_code == 404


def test_events_say_who_and_why(alice: Client, playground: Playground) -> None:
    run = playground.run()
    transitions.cancel_run(run_id=run.pk, actor=playground.bob)
    for address in (page(run), page(run, "events/")):
        text = text_of(alice, address)
        assert "<td>bob</td>" in text
        assert "Cancelled by bob." in text
    assert "the server" in text


def test_a_run_of_another_repository_is_not_found(alice: Client, playground: Playground) -> None:
    run = playground.run()
    playground.make_repository(name="other")
    assert alice.get(f"/alice/other/actions/runs/{run.pk}/").status_code == 404
    assert alice.get(f"/alice/widgets/actions/runs/{10**18}/").status_code == 404
    assert alice.get(f"/alice/widgets/actions/runs/{10**30}/").status_code == 404


@pytest.mark.parametrize("more", ["", "status/", "events/"])
def test_a_private_run_is_hidden_from_strangers(playground: Playground, browser: Any, more: str) -> None:
    run = playground.run()
    for person in (playground.mallory, None):
        assert browser(person).get(page(run, more)).status_code == 404
    assert browser(playground.carol).get(page(run, more)).status_code == 200


def test_a_reader_sees_no_buttons(playground: Playground, browser: Any) -> None:
    text = text_of(browser(playground.carol), page(playground.run()))
    assert "Cancel run" not in text


def test_a_run_of_256_jobs_costs_as_many_queries_as_one(
    alice: Client, playground: Playground, django_assert_num_queries: Any
) -> None:
    numbers = ", ".join(str(number) for number in range(16))
    run = playground.run(
        f"""
        name: CI
        on: push
        jobs:
          build:
            runs-on: linux
            strategy: {{matrix: {{a: [{numbers}], b: [{numbers}]}}}}
            steps: [{{run: make}}]
        """
    )
    assert run.jobs.count() == 256
    with django_assert_num_queries(9):
        text = text_of(alice, page(run))
    assert text.count("build (") >= 256
    with django_assert_num_queries(9):
        assert alice.get(page(run, "status/")).status_code == 200
