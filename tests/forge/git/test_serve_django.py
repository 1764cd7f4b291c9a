"""What the server does for requests on their way to Django."""

import asyncio
import http.client

import pytest

from forge import wsgi_bodies
from forge.wsgi_bodies import MAX_BUFFERED, prepared


@pytest.fixture
def ask(live_forge):
    def ask(method, path, body=None, *, chunked=False, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", live_forge.port, timeout=30)
        try:
            connection.request(method, path, body, headers, encode_chunked=chunked)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    return ask


def _prepare(*messages, headers=(), query=b""):
    sent, left = [], list(messages)

    async def receive():
        return left.pop(0) if left else await asyncio.Event().wait()

    async def send(message):
        sent.append(message)

    async def run():
        scope = {"type": "http", "headers": list(headers), "query_string": query}
        found = await prepared(scope, receive, send)
        if found is None:
            return None
        scope, replay = found
        has_body = any(name == b"content-length" for name, _ in scope["headers"])
        return scope, (await replay())["body"] if has_body and messages else None

    return asyncio.run(run()), sent


CHUNKED = (b"transfer-encoding", b"chunked")


def _chunks(*bodies):
    return [
        {"type": "http.request", "body": body, "more_body": number < len(bodies)}
        for number, body in enumerate(bodies, 1)
    ]


def test_a_chunked_body_gets_a_length():
    (scope, body), _ = _prepare(*_chunks(b"ab", b"c"), headers=[CHUNKED, (b"x", b"y")])
    assert body == b"abc" and scope["headers"] == [(b"x", b"y"), (b"content-length", b"3")]


def test_a_long_chunked_body_is_told_to_bring_a_length():
    found, sent = _prepare(*_chunks(b"x" * MAX_BUFFERED, b"y"), headers=[CHUNKED])
    assert found is None and sent[0]["status"] == 411


def test_a_client_that_leaves_half_way_reaches_no_view():
    found, sent = _prepare(_chunks(b"ab", b"c")[0], {"type": "http.disconnect"}, headers=[(b"content-length", b"3")])
    assert found is None and sent == []


def test_a_client_that_falls_silent_is_answered(monkeypatch):
    monkeypatch.setattr(wsgi_bodies, "_PATIENCE", 0.01)
    found, sent = _prepare(headers=[(b"content-length", b"3")])
    assert found is None and sent[0]["status"] == 408


def test_a_header_that_wsgi_would_mistake_for_another_is_dropped():
    (scope, _), _ = _prepare(headers=[(b"x_forwarded_for", b"1.2.3.4"), (b"x-forwarded-for", b"5.6.7.8")])
    assert scope["headers"] == [(b"x-forwarded-for", b"5.6.7.8")]


def test_a_query_that_is_not_ascii_is_quoted():
    (scope, _), _ = _prepare(query="q=ü&x=%41+b".encode())
    assert scope["query_string"] == b"q=%C3%BC&x=%41+b"


def test_pages_are_served_by_django(ask):
    status, body = ask("GET", "/admin/login/?next=/%FF")
    assert status == 200 and b"Forge CI" in body


def test_a_chunked_form_reaches_its_view(ask):
    pieces = iter([b"username=alice", b"&password=x"])
    status, _ = ask(
        "POST", "/admin/login/", pieces, chunked=True, **{"Content-Type": "application/x-www-form-urlencoded"}
    )
    assert status == 403  # read by Django, whose CSRF check found no token in it


def test_a_wrong_token_at_a_waiting_call_is_answered_there(ask):
    status, body = ask("POST", "/api/runner/v1/jobs/fetch", b"{}", Authorization="Bearer frr_x")
    assert status == 401 and b"unauthenticated" in body
