"""Does the API list what was deployed, to whom may read the repository?"""

import pytest

from ci.models import Job
from tests.api.calls import error_of
from tests.lifecycle.test_deployments import DEPLOY

BASE = "repositories/alice/widgets/deployments"


@pytest.fixture
def deployed(playground):
    """Two to production, one of a branch to staging."""
    runner = playground.runner()
    runs = [
        playground.run(DEPLOY),
        playground.run(DEPLOY),
        playground.run(DEPLOY.replace("production", "staging"), branch="next", by=playground.bob),
    ]
    while (assigned := playground.fetch(runner)) is not None:
        assigned.begin()
        assigned.complete(environment_url="https://example.test/")
    return runs


def test_one_says_what_was_deployed_where_by_whom(playground, deployed, carol):
    run = deployed[2]
    job = Job.objects.get(run=run)
    found = carol.get(BASE).json()
    assert found["count"] == 3
    row = found["results"][0]
    for moment in ("created_at", "started_at", "ended_at"):
        assert row.pop(moment)
    assert row.pop("html_url").endswith(job.get_absolute_url())
    assert row == {
        "id": job.pk,
        "environment": "staging",
        "state": "success",
        "environment_url": "https://example.test/",
        "ref": "refs/heads/next",
        "sha": run.sha,
        "creator": "bob",
        "workflow_name": "Deploy",
        "run_id": run.pk,
        "attempt": 1,
        "job_name": "deploy",
    }


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        ("", [2, 1, 0]),
        ("environment=PRODUCTION", [1, 0]),
        ("environment=nowhere", []),
        ("state=inactive", [0]),
        ("state=success", [2, 1]),
        ("ref=next", [2]),
        ("ref=refs/heads/main&environment=production", [1, 0]),
        ("per_page=1&page=2", [1]),
    ],
)
def test_filters_and_pages(deployed, alice, query, numbers):
    rows = alice.get(f"{BASE}?{query}").json()["results"]
    assert [row["run_id"] for row in rows] == [deployed[number].pk for number in numbers]


def test_one_commit_may_be_asked_for(deployed, alice):
    rows = alice.get(f"{BASE}?sha={deployed[1].sha}").json()["results"]
    assert [row["run_id"] for row in rows] == [deployed[1].pk]


@pytest.mark.parametrize("query", ["state=gone", "environment=" + "x" * 256, "environment=a%00b", "sha=" + "a" * 65])
def test_a_filter_that_makes_no_sense_is_refused(deployed, alice, query):
    error_of(alice.get(f"{BASE}?{query}"), 400, "invalid")


def test_who_may_read_the_repository_may_read_them(playground, deployed, bob, mallory, visitor):
    assert bob.get(BASE).status_code == 200
    error_of(mallory.get(BASE), 404, "not_found")
    error_of(visitor.get(BASE), 404, "not_found")
    playground.repository.private = False
    playground.repository.save()
    assert visitor.get(BASE).json()["count"] == 3


def test_a_job_says_whether_it_deploys(deployed, alice):
    row = alice.get(f"repositories/alice/widgets/runs/{deployed[0].pk}/jobs").json()["results"][0]
    assert (row["deploys"], row["environment_url"]) == (True, "https://example.test/")


def test_the_list_costs_a_fixed_number_of_queries(deployed, alice, django_assert_num_queries):
    with django_assert_num_queries(5):  # token, its use, repository, count, deployments
        assert len(alice.get(BASE).json()["results"]) == 3
