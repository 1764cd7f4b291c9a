"""Who is let in, and as whom?"""

from datetime import timedelta

import pytest
from django.core.cache import cache
from django.test import Client
from django.utils import timezone
from rest_framework.throttling import SimpleRateThrottle

from ci.api.owners.base import AnonymousThrottle
from forge.access_tokens import create_access_token, revoke_access_token
from forge.models import AccessToken
from tests.api.calls import call, error_of


@pytest.fixture
def token(playground):
    return create_access_token(user=playground.alice, name="laptop")


def repositories(token):
    return call("GET", "/api/v1/repositories", token=token)


def test_a_token_lets_its_person_in(playground, repository, token):
    found = repositories(token[1]).json()
    assert [row["name"] for row in found["results"]] == ["widgets"]


def test_a_visitor_sees_public_repositories_only(playground, repository):
    playground.make_repository(name="public", private=False)
    assert [row["name"] for row in repositories(None).json()["results"]] == ["public"]


def test_the_word_token_is_taken_as_clients_of_github_send_it(repository, token):
    headers = {"Authorization": f"token {token[1]}"}
    assert Client().get("/api/v1/repositories", headers=headers).json()["count"] == 1


def test_a_revoked_token_is_refused(playground, token):
    revoke_access_token(user=playground.alice, token_id=token[0].pk)
    error_of(repositories(token[1]), 401, "unauthenticated")


def test_an_expired_token_is_refused(token):
    AccessToken.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    error_of(repositories(token[1]), 401, "unauthenticated")


def test_the_token_of_a_deactivated_person_is_refused(playground, token):
    playground.alice.is_active = False
    playground.alice.save()
    error_of(repositories(token[1]), 401, "unauthenticated")


def test_other_kinds_of_token_are_refused(registration_token, runner_token, running):
    for wrong in (registration_token, runner_token, running.token, "frp_unknown", "x", "frp_" + "x" * 500):
        error_of(repositories(wrong), 401, "unauthenticated")


def test_a_password_is_not_taken(playground, repository):
    headers = {"Authorization": "Basic YWxpY2U6YWxpY2UtcGFzc3dvcmQ="}
    error_of(Client().get("/api/v1/repositories", headers=headers), 401, "unauthenticated")


def test_a_session_reads_and_needs_the_csrf_token_to_write(playground, repository):
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(playground.alice, backend="django.contrib.auth.backends.ModelBackend")
    assert browser.get("/api/v1/repositories").json()["count"] == 1
    answer = browser.post("/api/v1/repositories", {"name": "forged"}, content_type="application/json")
    error_of(answer, 403, "not_allowed")


def test_visitors_are_throttled(db, monkeypatch):
    monkeypatch.setattr(SimpleRateThrottle, "THROTTLE_RATES", {AnonymousThrottle.scope: "2/min"})
    cache.clear()
    answers = [repositories(None) for _ in range(3)]
    cache.clear()
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    error_of(answers[-1], 429, "throttled")
    assert int(answers[-1]["Retry-After"]) > 0
