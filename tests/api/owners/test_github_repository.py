"""What GitHub's clients ask about a repository: actions/checkout wants its default branch, with its job's token."""

from __future__ import annotations

import pytest

from ci.models import Run
from tests.api.calls import call, error_of
from tests.playground import ONE_JOB

PATH = "/api/v1/repos/alice/widgets"


@pytest.fixture
def token(playground):
    playground.run(ONE_JOB.replace("on: push", "on: push\n    permissions: {}"))
    return playground.assigned().begin().token


@pytest.mark.parametrize("scheme", ["Bearer", "token"])
def test_a_running_job_is_told_of_its_own_repository_whatever_its_token_may_do(client, token, scheme):
    answer = client.get(PATH, headers={"Authorization": f"{scheme} {token}", "Accept": "application/vnd.github+json"})
    assert answer.status_code == 200
    shown = answer.json()
    assert (shown["full_name"], shown["default_branch"], shown["private"]) == ("alice/widgets", "main", True)
    assert shown["owner"]["login"] == "alice"


def test_a_job_sees_other_repositories_only_where_they_are_public(playground, token):
    playground.make_repository(name="tools")
    error_of(call("GET", "/api/v1/repos/alice/tools", token=token), 404, "not_found")
    playground.make_repository(name="shared", private=False)
    assert call("GET", "/api/v1/repos/alice/shared", token=token).json()["default_branch"] == "main"


def test_the_token_of_a_job_that_ended_is_refused(token):
    Run.objects.get().jobs.update(state="ended", conclusion="success", ended_at="2026-01-01T00:00:00Z")
    error_of(call("GET", PATH, token=token), 401, "unauthenticated")


def test_people_see_it_as_their_role_says(alice, mallory, visitor, repository):
    assert alice.get("repos/alice/widgets").status_code == 200
    for person in (mallory, visitor):
        error_of(person.get("repos/alice/widgets"), 404, "not_found")
