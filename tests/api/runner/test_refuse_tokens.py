"""Does a token open only what it is for, only while it lives, and does a refusal change nothing?"""

import pytest
from django.utils import timezone

from ci.lifecycle import registration
from ci.models import RegistrationToken, Runner
from forge.access_tokens import create_access_token
from tests.api.calls import CALLS, JOB_CALLS, NAMES, REGISTER, RUNNER_CALLS, call, error_of, snapshot


@pytest.fixture
def tokens(playground, registration_token, runner_token, running):
    return {
        "registration": registration_token,
        "runner": runner_token,
        "job": running.token,
        "access": create_access_token(user=playground.operator, name="laptop")[1],
    }


def altered(token):
    """What is not quite this token."""
    last = "A" if token[-1] != "A" else "B"
    yield from (None, "", token[:4], token[:-1] + last, token + "x", token.upper())
    yield from (token[:4] + "x" * 1000, f"{token} {token}", token[:4] + "ü\u0080")


@pytest.mark.parametrize(("kind", "method", "path", "body"), CALLS, ids=NAMES)
def test_a_token_of_another_kind_is_refused(tokens, running, kind, method, path, body):
    before = snapshot()
    for wrong in tokens.keys() - {kind}:
        error_of(call(method, path.format(id=running.id), token=tokens[wrong], body=body), 401, "unauthenticated")
    assert snapshot() == before


@pytest.mark.parametrize(("kind", "method", "path", "body"), CALLS, ids=NAMES)
def test_an_unknown_token_is_refused(tokens, running, kind, method, path, body):
    before = snapshot()
    for token in altered(tokens[kind]):
        error = error_of(call(method, path.format(id=running.id), token=token, body=body), 401, "unauthenticated")
        assert tokens[kind] not in str(error)
    assert snapshot() == before


@pytest.mark.parametrize(("kind", "method", "path", "body"), CALLS, ids=NAMES)
def test_a_body_is_not_even_read_for_an_unknown_token(tokens, running, kind, method, path, body):
    response = call(method, path.format(id=running.id), token=tokens[kind] + "x", raw=b"{" * 100)
    error_of(response, 401, "unauthenticated")


def test_a_revoked_or_expired_registration_token_is_refused(playground, registration_token):
    row = RegistrationToken.objects.get()
    registration.revoke_registration_token(token_id=row.pk, actor=playground.operator)
    error_of(call(*REGISTER[:2], token=registration_token, body=REGISTER[2]), 401, "unauthenticated")
    _, expired = registration.create_registration_token(
        scope=row.scope, created_by=playground.operator, expires_at=timezone.now()
    )
    error_of(call(*REGISTER[:2], token=expired, body=REGISTER[2]), 401, "unauthenticated")
    assert not Runner.objects.exists()


@pytest.mark.parametrize(("method", "path", "body"), RUNNER_CALLS, ids=[f"{m} {p}" for m, p, _ in RUNNER_CALLS])
def test_a_removed_runner_is_refused(playground, runner, runner_token, method, path, body):
    registration.remove_runner(runner_id=runner.pk)
    error_of(call(method, path, token=runner_token, body=body), 401, "unauthenticated")


@pytest.mark.parametrize(("method", "path", "body"), JOB_CALLS, ids=[p for _, p, _ in JOB_CALLS])
def test_the_token_of_an_earlier_assignment_is_refused(playground, assigned, runner, method, path, body):
    """The poll's answer was lost and repeated: only the newest token counts."""
    poll_id = assigned.job.poll_id
    newer = playground.assigned(runner, poll_id=poll_id)
    assert newer.id == assigned.id
    before = snapshot()
    error_of(call(method, path.format(id=assigned.id), token=assigned.token, body=body), 401, "unauthenticated")
    assert snapshot() == before


@pytest.mark.parametrize(("method", "path", "body"), JOB_CALLS, ids=[p for _, p, _ in JOB_CALLS])
def test_a_job_token_opens_no_other_job(playground, running, method, path, body):
    playground.run()
    other = playground.assigned(playground.runner(name="beta")).begin()
    before = snapshot()
    error_of(call(method, path.format(id=other.id), token=running.token, body=body), 401, "unauthenticated")
    assert snapshot() == before


@pytest.mark.parametrize(("method", "path", "body"), JOB_CALLS, ids=[p for _, p, _ in JOB_CALLS])
def test_an_unknown_job_is_not_found(running, method, path, body):
    for job_id in (999_999_999, 2**63 - 1):
        error_of(call(method, path.format(id=job_id), token=running.token, body=body), 404, "not_found")


@pytest.mark.parametrize(("method", "path", "body"), JOB_CALLS, ids=[p for _, p, _ in JOB_CALLS])
def test_what_is_no_id_is_not_found(running, method, path, body):
    for job_id in ("0", "-1", "01", "1.5", "x", str(2**63), "9" * 30, "%00", "1%0A"):
        assert call(method, path.format(id=job_id), token=running.token, body=body).status_code == 404, job_id
