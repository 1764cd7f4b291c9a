"""How does one call travel to the forge and its answer back?

On Python's own http.client: importing a larger client takes longer than many a job."""

from __future__ import annotations

import base64
import select
import socket
import ssl
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPMessage, HTTPResponse, HTTPSConnection, IncompleteRead
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

CONNECT_SECONDS = 10.0
LARGEST_ANSWER = 64 * 1024 * 1024
MOST_IDLE = 4


class WireError(Exception):
    """No answer came; the text says what happened."""


@dataclass(frozen=True)
class Answer:
    status: int
    headers: HTTPMessage
    content: bytes


class Wire:
    """Connections to one forge, kept open between calls. Safe to use from several threads.

    As other clients it goes through the proxy of HTTP_PROXY, HTTPS_PROXY or ALL_PROXY unless NO_PROXY names the
    forge (the proxy itself is spoken to in plain HTTP), and trusts the system's certificates, or those of
    SSL_CERT_FILE and SSL_CERT_DIR.
    """

    def __init__(self, url: str) -> None:
        self._to = urlsplit(url)
        self._proxy = _proxy_for(self._to)
        self._tls = ssl.create_default_context() if self._to.scheme == "https" else None
        self._idle: list[HTTPConnection] = []
        self._lock = threading.Lock()

    def call(
        self,
        method: str,
        path: str,
        *,
        content: bytes | Iterable[bytes] | None,
        headers: Mapping[str, str],
        seconds: float,
    ) -> Answer:
        """The answer, whatever its status. `seconds`: the longest pause in it. Content that is not bytes needs a
        Content-Length among the headers. Raises WireError."""
        target, given = self._request(path, headers)
        connection: HTTPConnection | None = None
        try:
            connection = self._take() or self._connect()
            connection.sock.settimeout(seconds)
            connection.request(method, target, body=content, headers=given)
            with connection.getresponse() as response:
                answer = Answer(response.status, response.headers, _body(response))
                reusable = response.isclosed() and not response.will_close
        except BaseException as error:
            # Also after a signal: half a call must not be taken for the next one's answer.
            if connection is not None:
                connection.close()
            if isinstance(error, (OSError, HTTPException)):
                raise WireError(f"{type(error).__name__}: {error}"[:200]) from error
            raise
        self._give_back(connection, reusable=reusable)
        return answer

    @contextmanager
    def open(self, method: str, path: str, *, headers: Mapping[str, str], seconds: float) -> Iterator[HTTPResponse]:
        """An answer whose body, of any length, is read by the caller: on a connection of its own. Raises WireError;
        the reading raises OSError and HTTPException."""
        target, given = self._request(path, headers)
        connection: HTTPConnection | None = None
        try:
            try:
                connection = self._connect()
                connection.sock.settimeout(seconds)
                connection.request(method, target, headers=given)
                response = connection.getresponse()
            except (OSError, HTTPException) as error:
                raise WireError(f"{type(error).__name__}: {error}"[:200]) from error
            with response:
                yield response
        finally:
            if connection is not None:
                connection.close()

    def close(self) -> None:
        """Close every connection that no call is using."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _request(self, path: str, headers: Mapping[str, str]) -> tuple[str, dict[str, str]]:
        """Target and headers, as the proxy wants them where there is one."""
        target = f"{self._to.path}{path}"
        if self._proxy is None or self._tls is not None:
            return target, dict(headers)
        return f"http://{self._to.netloc}{target}", {**headers, **_credentials(self._proxy)}

    def _take(self) -> HTTPConnection | None:
        """An idle connection; whatever can be read from one means that the forge has closed it."""
        while True:
            with self._lock:
                if not self._idle:
                    return None
                connection = self._idle.pop()
            if not select.select([connection.sock], [], [], 0)[0]:
                return connection
            connection.close()

    def _give_back(self, connection: HTTPConnection, *, reusable: bool) -> None:
        with self._lock:
            if reusable and len(self._idle) < MOST_IDLE:
                self._idle.append(connection)
                return
        connection.close()

    def _connect(self) -> HTTPConnection:
        to = self._proxy or self._to
        host = to.hostname or ""
        connection: HTTPConnection
        if self._tls is None:
            connection = HTTPConnection(host, to.port or 80, timeout=CONNECT_SECONDS)
            if host.endswith(".localhost"):
                # RFC 6761, section 6.3: this machine. Not every resolver knows.
                connection.sock = socket.create_connection(("localhost", to.port or 80), CONNECT_SECONDS)
                connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return connection
        else:
            port = to.port or (443 if self._proxy is None else 80)
            connection = HTTPSConnection(host, port, timeout=CONNECT_SECONDS, context=self._tls)
            if self._proxy is not None:
                connection.set_tunnel(self._to.hostname or "", self._to.port or 443, _credentials(self._proxy))
        connection.connect()
        return connection


def _body(response: HTTPResponse) -> bytes:
    """Raises HTTPException for an answer that is cut off or too long."""
    body = response.read(LARGEST_ANSWER + 1)
    if len(body) > LARGEST_ANSWER:
        raise HTTPException(f"the answer is larger than {LARGEST_ANSWER // 1024**2} MiB")
    if response.length:
        raise IncompleteRead(body, response.length)
    if not body and response.length is None and not response.chunked:
        # http.client takes the end of the connection for the end of the headers too.
        raise IncompleteRead(body)
    return body


def _proxy_for(to: SplitResult) -> SplitResult | None:
    proxies = getproxies()
    url = proxies.get(to.scheme) or proxies.get("all")
    if not url or proxy_bypass(to.hostname or ""):
        return None
    return urlsplit(url if "://" in url else f"http://{url}")


def _credentials(proxy: SplitResult) -> dict[str, str]:
    if not proxy.username:
        return {}
    pair = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return {"Proxy-Authorization": "Basic " + base64.b64encode(pair.encode()).decode()}
