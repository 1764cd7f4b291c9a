"""Do calls reach the forge, whatever happens to their connections?"""

from __future__ import annotations

import base64
import socket
import threading
from collections.abc import Iterator

import pytest

from ci.runner.client import ApiError, Client
from tests.runner.fake_server import FakeServer

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
WHOLE = HEAD + b'Content-Length: 8\r\n\r\n{"a": 1}'


class Scripted:
    """A server that answers its calls as it was told, each a list of answers for one connection, then hangs up."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.requests: list[bytes] = []
        self.closed = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.listener.getsockname()[1]}"

    def serve(self, *connections: list[bytes]) -> None:
        threading.Thread(target=self._serve, args=(connections,), daemon=True).start()

    def _serve(self, connections: tuple[list[bytes], ...]) -> None:
        for answers in connections:
            connection, _ = self.listener.accept()
            with connection:
                for answer in answers:
                    self.requests.append(self._request(connection))
                    connection.sendall(answer)
            self.closed.set()

    def _request(self, connection: socket.socket) -> bytes:
        data = b""
        while b"\r\n\r\n" not in data or not data.endswith(b"{}"):
            part = connection.recv(65536)
            if not part:
                break
            data += part
        return data


@pytest.fixture
def scripted() -> Iterator[Scripted]:
    server = Scripted()
    yield server
    server.listener.close()


def test_a_connection_is_kept_for_the_next_call(scripted: Scripted) -> None:
    scripted.serve([WHOLE, WHOLE])
    client = Client(scripted.url)
    for _ in range(2):
        assert client.call("POST", "x", token="frj_t", body={}) == (200, {"a": 1})
    assert all(request.startswith(b"POST /api/runner/v1/x HTTP/1.1\r\n") for request in scripted.requests)
    assert all(b"Authorization: Bearer frj_t\r\n" in request for request in scripted.requests)


def test_a_connection_the_forge_closed_meanwhile_is_not_used_again(scripted: Scripted) -> None:
    scripted.serve([WHOLE], [WHOLE])
    said: list[str] = []
    client = Client(scripted.url, report=said.append)
    client.call("POST", "x", token="t", body={})
    assert scripted.closed.wait(60)
    assert client.call("POST", "x", token="t", body={}) == (200, {"a": 1})
    assert said == []


@pytest.mark.parametrize(
    "broken",
    [
        b"",
        HEAD,
        HEAD + b'Content-Length: 80\r\n\r\n{"a": 1}',
        HEAD + b'Transfer-Encoding: chunked\r\n\r\n8\r\n{"a": 1}\r\n',
        b"nonsense\r\n\r\n",
    ],
)
def test_half_an_answer_is_no_answer_and_asked_for_again(scripted: Scripted, broken: bytes) -> None:
    scripted.serve([broken], [WHOLE])
    said: list[str] = []
    assert Client(scripted.url, report=said.append).call("POST", "x", token="t", body={}) == (200, {"a": 1})
    assert len(said) == 1 and "trying again" in said[0]


def test_chunked_answers_are_read_and_redirects_are_refused(scripted: Scripted) -> None:
    chunked = HEAD + b'Transfer-Encoding: chunked\r\n\r\n4\r\n{"a"\r\n4\r\n: 1}\r\n0\r\n\r\n'
    elsewhere = b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:9/\r\nContent-Length: 0\r\n\r\n"
    scripted.serve([chunked, elsewhere])
    client = Client(scripted.url)
    assert client.call("POST", "x", token="t", body={}) == (200, {"a": 1})
    with pytest.raises(ApiError, match="is the address right"):
        client.call("POST", "x", token="t", body={})


def test_a_proxy_is_used_unless_told_otherwise(
    server: FakeServer, scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", scripted.url.replace("//", "//me:p%40ss@"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    scripted.serve([WHOLE])
    assert Client("http://forge.invalid").call("POST", "x", token="t", body={}) == (200, {"a": 1})
    pair = base64.b64encode(b"me:p@ss")
    assert scripted.requests[0].startswith(b"POST http://forge.invalid/api/runner/v1/x HTTP/1.1\r\n")
    assert b"Proxy-Authorization: Basic " + pair in scripted.requests[0]
    with pytest.raises(ApiError, match="401"):
        Client(server.url).call("GET", "runners/self", token="unknown")
