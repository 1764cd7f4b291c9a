"""A server process for the tests of uploads and downloads, and the addresses that they call."""

from __future__ import annotations

import base64
import http.client
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
from django.conf import settings

from ci.models import Blob
from ci.storage import signed_urls
from tests.api.server import Server

BLOCK_BLOB = {"x-ms-blob-type": "BlockBlob"}


def block_id(name: str) -> str:
    return base64.b64encode(name.encode()).decode()


def block_list(*names: str) -> str:
    """As the Azure SDK writes it."""
    entries = "".join(f"<Latest>{block_id(name)}</Latest>" for name in names)
    return f'<?xml version="1.0" encoding="UTF-8" standalone="yes"?><BlockList>{entries}</BlockList>'


def upload_address(server: Server, blob: Blob, **given: Any) -> str:
    return _at(server, signed_urls.upload_url(blob, **given))


def download_address(server: Server, blob: Blob, filename: str = "a.zip", **given: Any) -> str:
    return _at(server, signed_urls.download_url(blob, filename=filename, **given))


def _at(server: Server, url: str) -> str:
    # The test's own process signs with the same key, but does not know the port.
    return url.replace(settings.SERVER_URL, server.url)


class Uploads:
    """What a client does at one address."""

    def __init__(self, server: Server, blob: Blob) -> None:
        self.address = upload_address(server, blob)

    def put(self, data: Any, **headers: str) -> httpx.Response:
        return self._put("", data, BLOCK_BLOB | _dashed(headers))

    def block(self, name: str, data: Any, **headers: str) -> httpx.Response:
        quoted = block_id(name).replace("+", "%2B").replace("/", "%2F").replace("=", "%3D")
        return self._put(f"&comp=block&blockid={quoted}", data, _dashed(headers))

    def commit(self, *names: str, **headers: str) -> httpx.Response:
        return self.commit_document(block_list(*names), **headers)

    def commit_document(self, document: Any, **headers: str) -> httpx.Response:
        return self._put("&comp=blocklist", document, _dashed(headers))

    def _put(self, query: str, data: Any, headers: dict[str, str]) -> httpx.Response:
        return httpx.put(self.address + query, content=data, headers=headers, timeout=60)


def _dashed(headers: dict[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}


def assert_refused(answer: httpx.Response, status: int, code: str) -> None:
    """In the way that clients of Azure's storage read."""
    assert (answer.status_code, answer.headers.get("x-ms-error-code")) == (status, code), answer.text
    assert answer.headers["content-type"] == "application/xml"
    assert re.fullmatch(rf"<\?xml [^>]+><Error><Code>{code}</Code><Message>[^<]+</Message></Error>", answer.text)


def begun_upload(address: str, *, length: int, **headers: str) -> http.client.HTTPConnection:
    """The headers are sent; the body is the caller's, with `send`."""
    parts = urlsplit(address)
    client = http.client.HTTPConnection(parts.netloc, timeout=60)
    client.putrequest("PUT", f"{parts.path}?{parts.query}")
    for name, value in (BLOCK_BLOB | {"Content-Length": str(length)} | headers).items():
        client.putheader(name, value)
    client.endheaders()
    return client


def peak(server: Server) -> int:
    """The most memory the server ever held, in bytes (Linux: VmHWM)."""
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


def zeros(size: int, piece: int = 2**20) -> Iterator[bytes]:
    for _ in range(size // piece):
        yield bytes(piece)


def at_once(*calls: Any) -> list[Any]:
    """Each in a thread of its own; their results in the order of the calls."""
    results: dict[int, Any] = {}
    threads = [
        threading.Thread(target=lambda n=number, c=call: results.update({n: c()})) for number, call in enumerate(calls)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [results[number] for number in range(len(calls))]
