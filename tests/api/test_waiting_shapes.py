"""Do the raw routes take and answer what the views do?"""

import httpx

from tests.api.calls import TIME
from tests.api.polls import registered


def test_errors_have_the_shapes_of_the_other_calls(world, server):
    _, token = registered(world)
    url = f"{server.url}/api/runner/v1/jobs/"
    good = {"Authorization": f"Bearer {token}"}
    sent = [
        ("fetch", {}, b"{}", 401, "unauthenticated"),
        ("fetch", {"Authorization": "Bearer frr_x"}, b"{", 401, "unauthenticated"),
        ("fetch", {"Authorization": b"Bearer \xff\xfe"}, b"{}", 401, "unauthenticated"),
        ("fetch", good, b"", 400, "invalid"),
        ("fetch", good, b"[]", 400, "invalid"),
        ("fetch", good, b'{"poll_id": "\\u0000"}', 400, "invalid"),
        ("fetch", good, b'{"poll_id": "p", "wait": 51}', 400, "invalid"),
        ("fetch", good, b'{"poll_id": "p", "wait": NaN}', 400, "invalid"),
        ("fetch", good, b'{"poll_id": "p", "wait": "1"}', 400, "invalid"),
        ("fetch", good, b'{"x": "' + b"x" * 20_000 + b'"}', 413, "too_large"),
        ("fetch", good | {"Content-Type": "text/plain"}, b'{"poll_id": "p"}', 415, "unsupported_media_type"),
        ("999999/heartbeat", {"Authorization": "Bearer frj_x"}, b"{}", 404, "not_found"),
        (f"{2**63}/heartbeat", {"Authorization": "Bearer frj_x"}, b"{}", 404, "not_found"),
        ("1/heartbeat", good, b"{}", 401, "unauthenticated"),
    ]
    for path, headers, body, status, code in sent:
        answer = httpx.post(url + path, content=body, headers={"Content-Type": "application/json"} | headers)
        assert (answer.status_code, answer.json()["code"]) == (status, code), (path, body[:40], answer.text)
        assert answer.json()["detail"]
        assert ("WWW-Authenticate" in answer.headers) == (status == 401)
    answer = httpx.get(url + "fetch", headers=good)
    assert (answer.status_code, answer.headers["Allow"]) == (405, "POST")


def test_a_body_that_comes_in_pieces_is_whole(world, server):
    _, token = registered(world)
    world.run()
    pieces = iter([b'{"poll_id"', b': "p", "wait"', b": 1}"])
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    answer = httpx.post(f"{server.url}/api/runner/v1/jobs/fetch", content=pieces, headers=headers)
    assert answer.status_code == 200
    assert answer.json()["job"]["name"] == "build"


def test_log_lines_go_through_the_whole_server(world, server):
    """A batch near its limit passes the server's own bounds."""
    runner, _ = registered(world)
    world.run()
    assigned = world.assigned(runner).begin()
    body = {"offset": 0, "lines": [[TIME, "x" * 800]] * 9_000}
    headers = {"Authorization": f"Bearer {assigned.token}"}
    answer = httpx.post(f"{server.url}/api/runner/v1/jobs/{assigned.id}/log", json=body, headers=headers, timeout=60)
    assert answer.json() == {"next_offset": 9_000}


def test_log_lines_are_refused_as_by_the_view(world, server):
    runner, runner_token = registered(world)
    world.run()
    assigned = world.assigned(runner).begin()
    url = f"{server.url}/api/runner/v1/jobs/"
    good = {"Authorization": f"Bearer {assigned.token}"}
    lines = b'{"offset": 0, "lines": [["%b", "x"]]}' % TIME.encode()
    long = b'{"offset": 0, "lines": [["%b", "%b"]]}' % (TIME.encode(), b"x" * 100_000)
    own = f"{assigned.id}/log"
    sent = [
        (own, {}, lines, 401, "unauthenticated"),
        (own, {}, b"{", 401, "unauthenticated"),
        (own, {"Authorization": "Bearer frj_x"}, lines, 401, "unauthenticated"),
        (own, {"Authorization": "Bearer frj_x"}, b"{", 401, "unauthenticated"),
        (own, {"Authorization": "Bearer frj_x"}, long, 401, "unauthenticated"),
        (own, {"Authorization": f"Bearer {runner_token}"}, lines, 401, "unauthenticated"),
        ("999999/log", {"Authorization": "Bearer frj_x"}, lines, 404, "not_found"),
        ("999999/log", {"Authorization": "Bearer frj_x"}, b"{", 404, "not_found"),
        ("0/log", good, lines, 404, "not_found"),
        (f"{2**63}/log", good, lines, 404, "not_found"),
        (own, good, b"", 400, "invalid"),
        (own, good, b"[]", 400, "invalid"),
        (own, good, b'{"offset": -1, "lines": []}', 400, "invalid"),
        (own, good, b'{"offset": 0, "lines": [["yesterday", "x"]]}', 400, "invalid"),
        (own, good, lines.replace(b": 0", b": 7"), 409, "log_offset"),
        (own, good | {"Content-Type": "text/plain"}, lines, 415, "unsupported_media_type"),
    ]
    for path, headers, body, status, code in sent:
        answer = httpx.post(url + path, content=body, headers={"Content-Type": "application/json"} | headers)
        if answer.headers["Content-Type"].startswith("application/json"):
            assert (answer.status_code, answer.json()["code"]) == (status, code), (path, body[:40], answer.text)
        assert answer.status_code == status, (path, body[:40], answer.text)
        assert ("WWW-Authenticate" in answer.headers) == (status == 401)
    assert httpx.get(url + own, headers=good).status_code == 405
    for body, end in [(lines, 1), (lines, 1), (long.replace(b": 0", b": 1"), 2)]:
        answer = httpx.post(url + own, content=body, headers=good | {"Content-Type": "application/json"})
        assert (answer.json(), answer.headers["Cache-Control"]) == ({"next_offset": end}, "no-store")
    pieces = iter([lines.replace(b": 0", b": 2")])
    answer = httpx.post(url + own, content=pieces, headers=good | {"Content-Type": "application/json"})
    assert answer.json() == {"next_offset": 3}
