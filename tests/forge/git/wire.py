"""Requests that the git program would not make, sent as bytes."""

from __future__ import annotations

import base64
import hashlib
import http.client
import struct
from collections.abc import Sequence
from urllib.parse import unquote, urlsplit

PUSH_TYPE = "application/x-git-receive-pack-request"


def packet(data: bytes) -> bytes:
    return b"%04x" % (len(data) + 4) + data


def empty_pack() -> bytes:
    head = b"PACK" + struct.pack(">II", 2, 0)
    return head + hashlib.sha1(head).digest()


def push_request(
    commands: Sequence[tuple[str, str, str]], *, pack: bytes, capabilities: str = "report-status side-band-64k"
) -> bytes:
    lines = [" ".join(command).encode() for command in commands]
    lines[0] += b"\0 " + capabilities.encode()
    return b"".join(map(packet, lines)) + b"0000" + pack


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def post(remote: str, body: bytes, *, service: str = "git-receive-pack", **headers: str) -> tuple[int, bytes]:
    """Status and body of a POST to a remote with credentials in its address."""
    address = urlsplit(remote)
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=60)
    sent = {
        "Content-Type": f"application/x-{service}-request",
        "Authorization": basic(unquote(address.username or ""), unquote(address.password or "")),
    }
    sent |= {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        connection.request("POST", f"{address.path}/{service}", body, sent)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()
