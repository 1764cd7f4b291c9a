"""Does the page show what was deployed where, and to whom?"""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from ci.lifecycle.environments import environment_of
from ci.models import Job, Run
from tests.lifecycle.test_deployments import DEPLOY, WITHOUT
from tests.playground import Playground

PAGE = "/alice/widgets/deployments/"


def text_of(client: Client, address: str = PAGE) -> str:
    response = client.get(address)
    assert response.status_code == 200
    return " ".join(response.content.decode().split())


@pytest.fixture
def run(playground: Playground) -> Run:
    """Deployed twice."""
    runner = playground.runner()
    for _ in range(2):
        found = playground.run(DEPLOY)
        assigned = playground.assigned(runner).begin()
        assigned.complete(environment_url="https://example.test/?a=1&b=2")
    return found


def test_without_any_it_says_how_to_get_one(alice: Client, playground: Playground) -> None:
    playground.run(WITHOUT)
    text = text_of(alice)
    assert "No deployments yet" in text
    assert "deployment: false" in text
    assert "<form" not in text.partition("<main")[2]


def test_one_leads_to_its_run_job_commit_and_place(alice: Client, run: Run) -> None:
    text = text_of(alice)
    job = Job.objects.get(run=run)
    assert "2 deployments" in text
    assert f'href="{job.get_absolute_url()}"' in text
    assert f'href="{run.get_absolute_url()}"' in text
    assert f'href="/alice/widgets/commit/{run.sha}/"' in text
    assert 'href="https://example.test/?a=1&amp;b=2" rel="nofollow noopener"' in text
    assert "by alice" in text


def test_the_newest_success_is_active_and_the_older_inactive(alice: Client, run: Run) -> None:
    text = text_of(alice)
    assert text.count("</svg>Success</span>") == text.count("</svg>Inactive</span>") == 1
    assert text.index("</svg>Success</span>") < text.index("</svg>Inactive</span>")


def test_filters(alice: Client, playground: Playground, run: Run) -> None:
    playground.run(DEPLOY.replace("production", "'blue/green & co'"))
    assert "3 deployments" in text_of(alice)
    assert "1 deployment<" in text_of(alice, PAGE + "?environment=blue/green%20%26%20co")
    assert 'href="?environment=blue%2Fgreen%20%26%20co"' in text_of(alice)
    assert "1 deployment<" in text_of(alice, PAGE + "?state=inactive")
    assert "1 deployment<" in text_of(alice, PAGE + "?state=queued")
    for query in ("?state=failure", "?environment=nowhere", "?state=nonsense", "?environment=a%00b"):
        assert "No deployment matches these filters" in text_of(alice, PAGE + query)


def test_a_thousand_come_in_pages_at_a_fixed_number_of_queries(
    alice: Client, playground: Playground, run: Run, django_assert_num_queries: Any
) -> None:
    one = Job.objects.get(run=run)
    Job.objects.bulk_create(
        Job(
            run=run,
            key="deploy",
            name=f"deploy {number}",
            matrix_index=number,
            expanded=True,
            environment=one.environment,
            environment_name="production",
            deploys=True,
            state="ended",
            conclusion="success",
            started_at=one.started_at,
            ended_at=one.ended_at,
        )
        for number in range(1, 1001)
    )
    with django_assert_num_queries(7):  # session, user, repository, workflows, environments, count, deployments
        text = text_of(alice, PAGE + "?page=2")
    assert "1002 deployments" in text
    assert "Page 2 of 34" in text
    assert text.count("run-title") == 30
    assert "1 deployment<" in text_of(alice, PAGE + "?state=success")


@pytest.mark.parametrize(("private", "statuses"), [(True, [200, 200, 404, 404]), (False, [200, 200, 200, 200])])
def test_who_may_see_it(playground: Playground, browser: Any, run: Run, private: bool, statuses: list[int]) -> None:
    playground.repository.private = private
    playground.repository.save()
    people = (playground.alice, playground.carol, playground.mallory, None)
    assert [browser(person).get(PAGE).status_code for person in people] == statuses
    assert browser(playground.alice).post(PAGE).status_code == 405


def test_other_pages_lead_to_it(alice: Client, playground: Playground, run: Run) -> None:
    of_production = f'href="{PAGE}?environment=production"'
    assert f'href="{PAGE}"' in text_of(alice, "/alice/widgets/actions/")
    assert of_production in text_of(alice, Job.objects.get(run=run).get_absolute_url())
    environments = text_of(alice, "/alice/widgets/settings/environments/")
    assert f'{of_production}>2<span class="visually-hidden"> deployments to production' in environments


def test_a_job_without_deployment_does_not_lead_to_it(alice: Client, playground: Playground) -> None:
    run = playground.run(WITHOUT)
    text = text_of(alice, Job.objects.get(run=run).get_absolute_url())
    assert "environment production" in text
    assert f"{PAGE}?environment" not in text


def test_deleting_an_environment_says_what_becomes_of_them(alice: Client, playground: Playground, run: Run) -> None:
    environment = environment_of(playground.repository, "production")
    assert environment is not None
    text = text_of(alice, f"/alice/widgets/settings/environments/{environment.pk}/delete/")
    assert "and its 2 deployments are no longer listed" in text
