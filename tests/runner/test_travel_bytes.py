"""How do the built-in actions' calls and bytes get through to the forge?"""

from __future__ import annotations

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from ci.runner.builtin.blobs import BLOCK, Sink, upload, upload_file
from ci.runner.builtin.transfers import ATTEMPTS, Exhausted, Refused, Slice, Transfers

ADDRESS = "/_blobs/upload/1?sig=x"


class Storage(ThreadingHTTPServer):
    """Answers with the statuses it is told, then takes what comes; remembers all."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.statuses: list[int] = []
        self.targets: list[str] = []
        self.bodies: list[bytes] = []
        self.hosts: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Storage

    def log_message(self, format: str, *args: object) -> None:
        pass

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.targets.append(self.path)
        self.server.hosts.append(self.headers["Host"])
        self.server.bodies.append(body)
        status = self.server.statuses.pop(0) if self.server.statuses else 201
        said = b"why not" if status >= 400 else b"content"
        self.send_response(status)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    do_GET = do_PUT = do_POST = _answer


@pytest.fixture
def storage(monkeypatch: pytest.MonkeyPatch) -> Iterator[Storage]:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    server = Storage()
    thread = Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def pauses() -> list[float]:
    return []


@pytest.fixture
def transfers(pauses: list[float]) -> Transfers:
    return Transfers(sleep=pauses.append)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "file"
    made.write_bytes(b"0123456789" * 10)
    return made


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_passing_faults_are_tried_five_times_with_growing_pauses(
    storage: Storage, transfers: Transfers, pauses: list[float], file: Path, status: int
) -> None:
    storage.statuses = [status] * ATTEMPTS
    with pytest.raises(Exhausted, match=f"Failed to make request after 5 attempts: {status}"):
        upload_file(transfers, storage.url + ADDRESS, file)
    assert len(storage.targets) == ATTEMPTS and len(pauses) == ATTEMPTS - 1
    assert pauses[0] == 3.0 and pauses == sorted(pauses) and sum(pauses) < 60


def test_after_a_passing_fault_the_same_bytes_come_again(storage: Storage, transfers: Transfers, file: Path) -> None:
    storage.statuses = [503, 500]
    upload_file(transfers, storage.url + ADDRESS, file)
    assert storage.bodies == [file.read_bytes()] * 3


@pytest.mark.parametrize("status", [400, 403, 404, 409, 413])
def test_a_refusal_is_final_and_told(
    storage: Storage, transfers: Transfers, pauses: list[float], file: Path, status: int
) -> None:
    storage.statuses = [status]
    with pytest.raises(Refused, match=f"The upload was refused: {status} .* why not") as refused:
        upload_file(transfers, storage.url + ADDRESS, file)
    assert refused.value.status == status and not pauses
    storage.statuses = [status]
    with pytest.raises(Refused, match="Unexpected HTTP response from blob storage"):
        transfers.download(f"{storage.url}/x", file)


def test_a_forge_that_is_gone_is_a_passing_fault(transfers: Transfers, pauses: list[float], storage: Storage) -> None:
    url = storage.url
    storage.shutdown()
    storage.server_close()
    with pytest.raises(Exhausted, match="ConnectionRefusedError"):
        transfers.repeat(lambda: transfers.send("GET", url))
    assert len(pauses) == ATTEMPTS - 1


def test_what_is_written_leaves_in_blocks_and_a_list_joins_them(storage: Storage, transfers: Transfers) -> None:
    def write(sink: Sink) -> None:
        for number in range(5):
            sink.write(bytes([number]) * (BLOCK // 2))

    sent = upload(transfers, storage.url + ADDRESS, content_type="text/plain", write=write)
    assert sent.size == BLOCK * 5 // 2
    *blocks, last = storage.bodies
    assert sorted(map(len, blocks)) == [BLOCK // 2, BLOCK, BLOCK]
    assert last.count(b"<Latest>") == 3 and storage.targets[-1].endswith("&comp=blocklist")


def test_a_refused_block_ends_the_upload_before_its_list(storage: Storage, transfers: Transfers) -> None:
    storage.statuses = [403]

    def write(sink: Sink) -> None:
        sink.write(b"x" * BLOCK)

    with pytest.raises(Refused):
        upload(transfers, storage.url + ADDRESS, content_type="text/plain", write=write)
    assert not any("blocklist" in target for target in storage.targets)


def test_a_slice_is_read_piece_by_piece_and_again(file: Path) -> None:
    part = Slice(file, 5, 10)
    assert b"".join(part) == b"5678901234" == b"".join(part) and len(part) == 10
    assert b"".join(Slice(file, 95, 10)) == b"56789"


def test_names_below_localhost_are_this_machine(storage: Storage, transfers: Transfers) -> None:
    answer = transfers.send("GET", f"http://forge.localhost:{storage.server_address[1]}/x")
    assert answer.content == b"content" and storage.hosts == [f"forge.localhost:{storage.server_address[1]}"]


def test_calls_and_downloads_go_through_the_proxy(
    storage: Storage, transfers: Transfers, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", storage.url)
    monkeypatch.setenv("no_proxy", "")
    storage.statuses = [200, 200]
    transfers.download("http://forge.example/_blobs/download/1?sig=x", file)
    transfers.send("GET", "http://forge.example/twirp")
    assert file.read_bytes() == b"content"
    assert storage.targets == ["http://forge.example/_blobs/download/1?sig=x", "http://forge.example/twirp"]
