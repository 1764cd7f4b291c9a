"""How does a Connect call arrive, and its answer leave? The unary half of the protocol, over POST, as an ASGI route.

Source: the Connect protocol reference (connectrpc.com), "Unary RPCs" and "Error codes".
"""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from google.protobuf import json_format
from google.protobuf.message import DecodeError, Message

from ci.interop.connect_bodies import Receive, Send, Turn, read
from ci.interop.connect_errors import ConnectError, described
from ci.interop.wire import has_more_fields
from ci.models import Runner
from ci.waiting.hang_up import HangUp
from forge.git.bodies import ClientGone

logger = logging.getLogger(__name__)

PROTO, JSON = "application/proto", "application/json"
# As the existing servers do: below it packing costs more than it saves.
_WORTH_PACKING = 1024
# From this size on, packing and parsing would hold up everybody else's calls.
_LARGE = 128 * 1024
# No runner sends JSON, and it is read many times more slowly.
_LARGEST_JSON = 512 * 1024

Request = TypeVar("Request", bound=Message)


class Call:
    """One call: its headers, who makes it, and, once its message was read, whether the client is still there."""

    def __init__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        self._headers: dict[str, str] = {
            name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]
        }
        self._receive = receive
        self._send = send
        self._hang_up: HangUp | None = None
        self._answered = False
        self._turn = Turn()
        self.began = asyncio.get_running_loop().time()
        self.runner: Runner | None = None  # None where no runner needs to prove itself
        self.answer_headers: dict[str, str] = {}

    def header(self, name: str) -> str:
        return self._headers.get(name, "").strip()

    @property
    def is_gone(self) -> bool:
        return self._hang_up is not None and self._hang_up.is_gone

    async def wait(self, event: asyncio.Event, seconds: float) -> bool:
        """True when the event came; False after `seconds`, or when the client hung up."""
        return self._hang_up is not None and await self._hang_up.wait(event, seconds)

    @property
    def seconds(self) -> float | None:
        """The time that the client gives the whole call. Raises ConnectError."""
        given = self.header("connect-timeout-ms")
        if not given:
            return None
        if not (given.isascii() and given.isdigit() and len(given) <= 10):
            raise ConnectError("invalid_argument", "Connect-Timeout-Ms must be a number of at most 10 digits.")
        return int(given) / 1000

    def codec(self) -> str:
        """The content type of the messages in both directions. Raises ConnectError."""
        if self.header("connect-protocol-version") not in ("", "1"):
            raise ConnectError("invalid_argument", "Connect-Protocol-Version must be 1.")
        kind = self.header("content-type").partition(";")[0].strip().lower()
        if kind not in (PROTO, JSON):
            text = f"The content type {kind[:50]!r} is not understood: send {PROTO} or {JSON}."
            raise ConnectError("unknown", text, status=415, headers={"accept-post": f"{JSON}, {PROTO}"})
        return kind

    async def message(self, method: Method[Request], *, codec: str) -> Request:
        """The message sent. Raises ConnectError, ClientGone."""
        largest = min(method.largest, _LARGEST_JSON) if codec == JSON else method.largest
        raw = await read(self._receive, encoding=self.header("content-encoding"), largest=largest, turn=self._turn)
        self._hang_up = HangUp(self._receive)
        if len(raw) < _LARGE:
            return _parsed(method, raw, codec)
        return await asyncio.to_thread(_parsed, method, raw, codec)

    async def answer(self, message: Message, *, codec: str) -> None:
        accepted = {part.partition(";")[0].strip() for part in self.header("accept-encoding").lower().split(",")}
        headers = {"content-type": codec, **self.answer_headers}
        content = _serialized(message, codec)
        if "gzip" in accepted and len(content) >= _WORTH_PACKING:
            headers["content-encoding"] = "gzip"
            if len(content) < _LARGE:
                content = _packed(content)
            else:
                content = await asyncio.to_thread(_packed, content)
        await self._respond(200, content, headers)

    async def fail(self, error: ConnectError) -> None:
        """Say what went wrong, unless an answer has begun."""
        if self._answered:
            return
        content = json.dumps({"code": error.code, "message": error.message}).encode()
        await self._respond(error.status, content, {"content-type": JSON, **error.headers})

    async def _respond(self, status: int, content: bytes, headers: Mapping[str, str]) -> None:
        sent = {**headers, "content-length": str(len(content)), "cache-control": "no-store"}
        self._answered = True
        pairs = [(name.encode(), value.encode("latin-1")) for name, value in sent.items()]
        await self._send({"type": "http.response.start", "status": status, "headers": pairs})
        await self._send({"type": "http.response.body", "body": content})

    def close(self) -> None:
        self._turn.end()
        if self._hang_up is not None:
            self._hang_up.close()


Handler = Callable[[Call, Any], Awaitable[Message]]


@dataclass(frozen=True)
class Method(Generic[Request]):
    """`admit`: checked before the message is read, by the headers alone; raises what the handler may raise.

    `most_fields`: of the message, and of what its field `within` holds.
    """

    request: type[Request]
    handler: Handler
    largest: int
    admit: Callable[[Call], Awaitable[None]] | None = None
    most_fields: int = 50_000
    within: int = 0


async def serve(
    methods: Mapping[str, Method[Any]], procedure: str, scope: dict[str, Any], receive: Receive, send: Send
) -> None:
    """Answer one request for the procedure `<service>/<method>`."""
    call = Call(scope, receive, send)
    try:
        await _serve(methods, procedure, scope["method"], call)
    except ClientGone:
        pass
    except Exception as error:
        known = described(error)
        if known is None:
            logger.error("the call %s failed", procedure[:100], exc_info=error)
            known = ConnectError("internal", "The server failed. The operator finds the cause in its log.")
        await call.fail(known)
    finally:
        call.close()


async def _serve(methods: Mapping[str, Method[Any]], procedure: str, http_method: str, call: Call) -> None:
    method = methods.get(procedure)
    if method is None:
        raise ConnectError("unimplemented", "There is no such procedure here.")
    if http_method != "POST":
        raise ConnectError("unknown", "Use POST.", status=405, headers={"allow": "POST"})
    codec = call.codec()
    if method.admit is not None:
        await method.admit(call)
    request = await call.message(method, codec=codec)
    await call.answer(await method.handler(call, request), codec=codec)


def _parsed(method: Method[Request], raw: bytes, codec: str) -> Request:
    """Nothing at all is the message without any field set. Raises ConnectError."""
    kind = method.request
    if codec == PROTO and has_more_fields(raw, method.most_fields, within=method.within):
        text = f"The message has more than {method.most_fields} parts, which is the limit here. Send less at once."
        raise ConnectError("resource_exhausted", text)
    try:
        if codec == PROTO or not raw:
            return kind.FromString(raw)
        given = json.loads(raw)
        if not isinstance(given, dict):
            raise ValueError("it is no JSON object")
        return json_format.ParseDict(given, kind(), ignore_unknown_fields=True)
    except (DecodeError, json_format.ParseError, ValueError, RecursionError) as error:
        what = f"The body is no {kind.DESCRIPTOR.full_name}"
        reason = str(error).splitlines()[0][:200] if codec == JSON and str(error) else "it is cut off or damaged"
        raise ConnectError("invalid_argument", f"{what}: {reason}.") from None


def _serialized(message: Message, codec: str) -> bytes:
    if codec == PROTO:
        return message.SerializeToString()
    return json.dumps(json_format.MessageToDict(message), separators=(",", ":")).encode()


def _packed(content: bytes) -> bytes:
    return gzip.compress(content, compresslevel=5)
