"""Which runs does the list show, to whom, and at what cost?"""

from typing import Any

import pytest
from django.test import Client

from ci.models import Run, Workflow
from tests.playground import ONE_JOB, Playground

RUNS = "/alice/widgets/actions/"


def many_runs(playground: Playground, count: int) -> None:
    workflow = Workflow.objects.create(repository=playground.repository, path=".github/workflows/ci.yml", name="CI")
    Run.objects.bulk_create(
        Run(
            repository=playground.repository, workflow=workflow, workflow_path=workflow.path, workflow_name="CI",
            number=number, title=f"Change {number:04}", event="push", ref="refs/heads/main", sha="a" * 40,
            actor=playground.alice, actor_name="alice",
        )
        for number in range(1, count + 1)
    )  # fmt: skip
    Workflow.objects.update(run_count=count)


def test_it_lists_newest_first(alice: Client, playground: Playground) -> None:
    playground.run(message="The first change")
    playground.run(message="The second change")
    text = alice.get(RUNS).content.decode()
    assert text.index("The second change") < text.index("The first change")


def test_it_says_what_to_do_when_there_is_none(alice: Client, playground: Playground) -> None:
    assert playground.repository
    response = alice.get(RUNS)
    assert b"No runs yet" in response.content
    assert b".github/workflows/" in response.content


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("branch=main", {"on main", "by bob"}),
        ("branch=topic", {"on topic"}),
        ("actor=BOB", {"by bob"}),
        ("event=push", {"on main", "on topic", "by bob"}),
        ("event=schedule", set()),
        ("state=active", {"on topic", "by bob"}),
        ("state=queued", {"on topic", "by bob"}),
        ("state=cancelled", {"on main"}),
        ("state=success", set()),
        ("workflow=ci.yml", {"on main", "on topic", "by bob"}),
        ("state=nonsense", set()),
        ("branch=%00", set()),
        ("branch=main&actor=bob", {"by bob"}),
    ],
)
def test_it_filters(alice: Client, playground: Playground, query: str, shown: set[str]) -> None:
    first = playground.run(message="on main")
    alice.post(f"{RUNS}runs/{first.pk}/cancel/")
    playground.run(message="on topic", branch="topic")
    playground.run(message="by bob", by=playground.bob)
    text = alice.get(f"{RUNS}?{query}").content.decode()
    assert {title for title in ("on main", "on topic", "by bob") if f">{title}</a>" in text} == shown
    if not shown:
        assert "No run matches these filters" in text


def test_filters_stay_while_paging(alice: Client, playground: Playground) -> None:
    many_runs(playground, 70)
    text = alice.get(f"{RUNS}?branch=main&page=2").content.decode()
    assert "Change 0040" in text
    assert "Change 0041" not in text
    assert "?branch=main&amp;page=3" in text
    assert "?branch=main&amp;page=1" in text


@pytest.mark.parametrize("page", ["0", "-1", "999", "x", ""])
def test_a_page_that_makes_no_sense_is_still_a_page(alice: Client, playground: Playground, page: str) -> None:
    many_runs(playground, 40)
    assert alice.get(f"{RUNS}?page={page}").status_code == 200


def test_a_thousand_runs_cost_as_many_queries_as_ten(
    alice: Client, playground: Playground, django_assert_num_queries: Any
) -> None:
    many_runs(playground, 1000)
    with django_assert_num_queries(6):  # session, user, repository, workflows, count, runs
        assert b"1000 runs" in alice.get(RUNS).content


def test_it_hides_a_private_repository_from_strangers(playground: Playground, browser: Any) -> None:
    playground.run(ONE_JOB)
    for person in (playground.mallory, None):
        assert browser(person).get(RUNS).status_code == 404
    assert browser(playground.carol).get(RUNS).status_code == 200


def test_titles_are_text(alice: Client, playground: Playground) -> None:
    playground.run(message="<script>alert(1)</script>", branch="x<b>y")
    text = alice.get(RUNS).content.decode()
    assert "<script>alert" not in text
    assert "<b>" not in text
    assert "&lt;script&gt;alert(1)" in text
