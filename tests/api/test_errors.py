"""Does every error have its status, its code and a sentence, and the database's troubles a time to come back?"""

import psycopg
import pytest
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import connection
from django.http import Http404
from rest_framework import exceptions

from ci.api.bodies import BodyError
from ci.api.errors import describe
from ci.lifecycle import errors as lifecycle
from ci.storage.logs import LogLost
from tests.api.calls import call, error_of

KNOWN = [
    (lifecycle.Unauthenticated(), 401, "unauthenticated", {}),
    (lifecycle.NotAllowed("No."), 403, "not_allowed", {}),
    (lifecycle.NotFound("No."), 404, "not_found", {}),
    (lifecycle.Conflict("No."), 409, "conflict", {}),
    (lifecycle.JobEnded("failure", ""), 409, "job_ended", {"conclusion": "failure", "reason": ""}),
    (lifecycle.LogOffset(5), 409, "log_offset", {"next_offset": 5}),
    (lifecycle.LogLimit(6), 413, "log_limit", {"next_offset": 6}),
    (lifecycle.InvalidInput({"name": "No."}), 400, "invalid", {"errors": {"name": "No."}}),
    (BodyError("No."), 400, "invalid", {}),
    (BodyError("No.", status=413, code="too_large"), 413, "too_large", {}),
    (exceptions.ValidationError({"a": ["No."]}), 400, "invalid", {"errors": {"a": ["No."]}}),
    (exceptions.ValidationError("No."), 400, "invalid", {"errors": {"non_field_errors": ["No."]}}),
    (exceptions.NotAuthenticated(), 401, "unauthenticated", {}),
    (exceptions.AuthenticationFailed(), 401, "unauthenticated", {}),
    (exceptions.PermissionDenied(), 403, "not_allowed", {}),
    (exceptions.MethodNotAllowed("PUT"), 405, "method_not_allowed", {}),
    (exceptions.UnsupportedMediaType("x/y"), 415, "unsupported_media_type", {}),
    (exceptions.Throttled(wait=7.2), 429, "throttled", {}),
    (ValidationError({"name": "No."}), 400, "invalid", {"errors": {"name": ["No."]}}),
    (ValidationError("No."), 400, "invalid", {"errors": {"non_field_errors": ["No."]}}),
    (PermissionDenied(), 403, "not_allowed", {}),
    (Http404(), 404, "not_found", {}),
    (LogLost("The log is gone."), 404, "log_lost", {}),
]


@pytest.mark.parametrize(("error", "status", "code", "more"), KNOWN, ids=[repr(error) for error, *_ in KNOWN])
def test_a_known_error_is_told_by_status_code_and_sentence(error, status, code, more):
    answer = describe(error)
    assert (answer.status, answer.body["code"]) == (status, code)
    assert answer.body["detail"]
    assert {key: value for key, value in answer.body.items() if key not in ("code", "detail")} == more
    assert ("WWW-Authenticate" in answer.headers) == (status == 401)


def test_when_to_come_back_is_said_in_whole_seconds():
    assert describe(exceptions.Throttled(wait=7.2)).headers["Retry-After"] == "8"
    assert describe(exceptions.Throttled(wait=0.1)).headers["Retry-After"] == "1"


def test_what_nobody_foresaw_is_not_made_up():
    assert describe(ZeroDivisionError()) is None
    assert describe(KeyError("x")) is None


@pytest.mark.django_db(transaction=True)
def test_a_row_that_stays_locked_is_answered_503_with_a_time_to_come_back(committing_playground):
    """The server gives up waiting for another transaction, and the runner tries the same call again."""
    runner = committing_playground.runner()
    wanted = ("dbname", "user", "password", "host", "port")
    parameters = {name: value for name, value in connection.get_connection_params().items() if name in wanted}
    with psycopg.connect(**parameters) as other, connection.cursor() as cursor:
        other.execute("SELECT 1 FROM ci_runner WHERE id = %s FOR UPDATE", [runner.pk])
        cursor.execute("SET lock_timeout = '20ms'")
        try:
            refused = call("PATCH", "runners/self", token=committing_playground.runner_token, body={"name": "new"})
        finally:
            cursor.execute("RESET lock_timeout")
        other.rollback()
    error_of(refused, 503, "unavailable")
    assert refused["Retry-After"] == "1"
    assert refused["Cache-Control"] == "no-store"
    again = call("PATCH", "runners/self", token=committing_playground.runner_token, body={"name": "new"})
    assert again.json()["name"] == "new"


def test_an_address_that_is_none_is_answered_as_json(db):
    for method, address in (("GET", "/api/"), ("POST", "/api/runner/v1/"), ("PUT", "/api/v2/x"), ("GET", "/api/%00")):
        error_of(call(method, address), 404, "not_found")
