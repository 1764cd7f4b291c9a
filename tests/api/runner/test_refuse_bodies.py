"""Does every call answer a body it cannot take with one clear 400, 413 or 415, and change nothing?"""

import pytest
from django.test import Client

from tests.api.calls import CALLS, NAMES, RUNNER_API, call, error_of, snapshot

WITH_BODY = [(kind, method, path) for kind, method, path, body in CALLS if body is not None]
IDS = [name for name, (*_, body) in zip(NAMES, CALLS, strict=True) if body is not None]
NOT_OBJECTS = [b"[]", b'"text"', b"1", b"null", b"true", b'[{"name": "x"}]', b"1e5"]
NOT_JSON = [
    b"{",
    b"{'a': 1}",
    b'{"a": 1}}',
    b"name=beta",
    b'{"a": NaN}',
    b'{"a": Infinity}',
    b'{"a": -Infinity}',
    b'{"a": 1e999}',
    b'{"a": "\x00"}',
    b"\xff\xfe{\x00}\x00",
    b'{"a": "\xff"}',
    b'{"a": "\xed\xa0\x80"}',
    b'{"a": ' + b"9" * 5000 + b"}",
    b'{"a": ' + b"[" * 100 + b"]" * 100 + b"}",
    b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    b'{"a":' * 5000 + b"1" + b"}" * 5000,
]


@pytest.fixture
def tokens(registration_token, runner_token, running):
    return {"registration": registration_token, "runner": runner_token, "job": running.token}


@pytest.mark.parametrize(("kind", "method", "path"), WITH_BODY, ids=IDS)
def test_json_that_is_not_an_object_is_refused(tokens, running, kind, method, path):
    before = snapshot()
    for raw in NOT_OBJECTS:
        error = error_of(call(method, path.format(id=running.id), token=tokens[kind], raw=raw), 400, "invalid")
        assert "must be a JSON object" in error["detail"], raw
    assert snapshot() == before


@pytest.mark.parametrize(("kind", "method", "path"), WITH_BODY, ids=IDS)
def test_what_is_not_json_is_refused(tokens, running, kind, method, path):
    before = snapshot()
    for raw in NOT_JSON:
        error_of(call(method, path.format(id=running.id), token=tokens[kind], raw=raw), 400, "invalid")
    assert snapshot() == before


@pytest.mark.parametrize(("kind", "method", "path"), WITH_BODY, ids=IDS)
def test_a_huge_body_is_refused(tokens, running, kind, method, path):
    before = snapshot()
    raw = b'{"x": "' + b"x" * (13 * 1024 * 1024) + b'"}'
    error_of(call(method, path.format(id=running.id), token=tokens[kind], raw=raw), 413, "too_large")
    assert snapshot() == before


@pytest.mark.parametrize(("kind", "method", "path"), WITH_BODY, ids=IDS)
def test_a_form_is_refused(tokens, running, kind, method, path):
    response = Client().generic(
        method,
        RUNNER_API + path.format(id=running.id),
        b"name=beta",
        content_type="application/x-www-form-urlencoded",
        headers={"Authorization": f"Bearer {tokens[kind]}"},
    )
    error_of(response, 415, "unsupported_media_type")


@pytest.mark.parametrize("text", ["a\\u0000b", "\\ud800", "\\udfff and more", "\\ud800\\ud800"])
def test_text_that_cannot_be_stored_is_refused_outside_the_log(tokens, running, text):
    before = snapshot()
    for path, body in [
        ("runners", f'{{"name": "{text}", "labels": ["linux"]}}'),
        ("runners", f'{{"name": "beta", "labels": ["linux"], "{text}": 1}}'),
    ]:
        error_of(call("POST", path, token=tokens["registration"], raw=body.encode()), 400, "invalid")
    completed = f'{{"conclusion": "success", "outputs": {{"a": "{text}"}}}}'.encode()
    error_of(call("POST", f"jobs/{running.id}/complete", token=running.token, raw=completed), 400, "invalid")
    step = f'{{"steps": [{{"number": 3, "name": "{text}", "state": "running"}}]}}'.encode()
    error_of(call("PATCH", f"jobs/{running.id}/steps", token=running.token, raw=step), 400, "invalid")
    assert snapshot() == before


def test_a_pair_of_surrogates_is_one_character(playground, running):
    raw = b'{"conclusion": "success", "outputs": {"a": "\\ud83d\\ude00"}}'
    assert call("POST", f"jobs/{running.id}/complete", token=running.token, raw=raw).status_code == 200
    assert running.job.outputs == {"a": "😀"}


def test_another_method_is_refused(runner_token):
    response = call("PUT", "runners/self", token=runner_token, body={})
    error_of(response, 405, "method_not_allowed")
    assert "PATCH" in response["Allow"]
