"""Are workflows switched off and on, and repository_dispatch fired, by those who may?"""

import pytest

from ci.models import Run, Workflow
from tests.api.calls import error_of
from tests.playground import WORKFLOW

REPOSITORY = "repositories/alice/widgets"
ADDRESS = f"{REPOSITORY}/workflows/ci.yml"
DISPATCHES = f"{REPOSITORY}/dispatches"
LISTENER = """
    name: Deploy
    on: {repository_dispatch: {types: [deploy]}, pull_request: , release: }
    jobs: {a: {runs-on: linux, steps: [{run: echo}]}}
"""


def test_one_is_disabled_and_enabled_again(playground, bob, carol):
    playground.push({WORKFLOW: LISTENER})
    assert bob("PATCH", ADDRESS, {"enabled": False}).json()["enabled"] is False
    assert carol.get(ADDRESS).json()["enabled"] is False
    assert bob.post(DISPATCHES, {"event_type": "deploy"}).json() == {"run_ids": []}
    error_of(bob("PATCH", ADDRESS, {"enabled": False}), 409, "conflict")
    assert bob("PATCH", ADDRESS, {"enabled": True}).json()["enabled"] is True


@pytest.mark.parametrize("body", [{}, {"enabled": None}, {"enabled": "perhaps"}])
def test_what_is_no_switch_is_refused(playground, bob, body):
    playground.push({WORKFLOW: LISTENER})
    error_of(bob("PATCH", ADDRESS, body), 400, "invalid")


def test_events_that_are_never_fired_are_named(playground, carol):
    playground.push({WORKFLOW: LISTENER})
    assert carol.get(ADDRESS).json()["never_fired"] == ["pull_request", "release"]


def test_a_dispatch_starts_the_workflows_that_listen(playground, bob):
    playground.push({WORKFLOW: LISTENER})
    answer = bob.post(DISPATCHES, {"event_type": "deploy", "client_payload": {"version": 3, "to": ["a", {"b": None}]}})
    run = Run.objects.get()
    assert (answer.status_code, answer.json()) == (201, {"run_ids": [run.pk]})
    assert (run.event, run.actor) == ("repository_dispatch", playground.bob)
    assert run.payload["client_payload"] == {"version": 3, "to": ["a", {"b": None}]}
    assert bob.post(DISPATCHES, {"event_type": "other"}).json() == {"run_ids": []}


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"event_type": ""},
        {"event_type": "x" * 101},
        {"event_type": "deploy", "client_payload": [1]},
        {"event_type": "deploy", "client_payload": {"a": "\0"}},
        {"event_type": "deploy", "client_payload": {str(number): 1 for number in range(11)}},
    ],
)
def test_a_dispatch_that_will_not_do_is_refused(playground, bob, body):
    playground.push({WORKFLOW: LISTENER})
    error_of(bob.post(DISPATCHES, body), 400, "invalid")
    assert not Run.objects.exists()


def test_a_repository_without_a_branch_says_so(repository, bob):
    error_of(bob.post(DISPATCHES, {"event_type": "deploy"}), 404, "not_found")


@pytest.mark.parametrize(
    ("method", "address", "body"),
    [("PATCH", ADDRESS, {"enabled": False}), ("POST", DISPATCHES, {"event_type": "deploy"})],
)
def test_it_takes_the_write_role(playground, carol, mallory, visitor, method, address, body):
    playground.push({WORKFLOW: LISTENER})
    error_of(carol(method, address, body), 403, "not_allowed")
    error_of(mallory(method, address, body), 404, "not_found")
    assert visitor(method, address, body).status_code in (401, 404)
    playground.repository.private = False
    playground.repository.save()
    error_of(visitor(method, address, body), 401, "unauthenticated")
    assert Workflow.objects.get().enabled
    assert not Run.objects.exists()
