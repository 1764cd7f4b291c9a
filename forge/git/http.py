"""How do clone, fetch and push reach a repository over HTTP? As a raw ASGI application (git: gitprotocol-http)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

from django.conf import settings

from forge.access import Actor, can_read, can_write
from forge.authentication import TooManyAttempts, WrongCredentials, actor_of
from forge.git.bodies import BadBody, ClientGone, Receive, RequestBody
from forge.git.database import UNREACHABLE, in_database
from forge.git.pktlines import FLUSH, packet
from forge.git.process import GitProcess
from forge.git.pushing import receive_push, refuse_push
from forge.git.responses import Refused, Response, Send
from forge.models import Repository

_log = logging.getLogger(__name__)
_ADDRESS = re.compile(
    r"/(?P<owner>[\w.@+-]{1,150})/(?P<name>[A-Za-z0-9._-]{1,104})/(?P<call>info/refs|git-upload-pack|git-receive-pack)"
)
_SERVICES = ("git-upload-pack", "git-receive-pack")
_PROTOCOL = re.compile(r"[\x21-\x7e]{1,200}")
# What a client wants and has, in object ids; a million refs still fit.
_MAX_FETCH_REQUEST = 64 * 1024 * 1024
_QUEUE_SECONDS = 30.0
# Beyond its limit a push is read on this far, so that git's own message about the limit still arrives.
_OVERSHOOT = 64 * 1024 * 1024
_CHALLENGE = (b"www-authenticate", b'Basic realm="Forge CI", charset="UTF-8"')


@dataclass(frozen=True)
class _Request:
    """What the address and the headers of a call say."""

    owner: str
    name: str
    service: str
    advertises: bool
    headers: dict[str, str]
    address: str

    @property
    def writes(self) -> bool:
        return self.service == "git-receive-pack"

    @property
    def protocol(self) -> str:
        # Pushing has no protocol v2, and its v1 differs by a greeting only.
        given = self.headers.get("git-protocol", "")
        return given if not self.writes and _PROTOCOL.fullmatch(given) else ""


def is_git(path: str) -> bool:
    """Whether the address is one of git's; everything else is Django's."""
    return _ADDRESS.fullmatch(path) is not None


async def application(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    response = Response(send)
    try:
        request = _read_request(scope)
        limit = settings.GIT_MAX_PUSH_BYTES + _OVERSHOOT if request.writes else _MAX_FETCH_REQUEST
        if int(request.headers.get("content-length") or 0) > limit:
            raise BadBody(413, f"The request is larger than {limit} bytes, which is the limit here.")
        body = RequestBody(receive, encoding=request.headers.get("content-encoding", ""), max_bytes=limit)
        await _serve(request, body, response)
    except (Refused, BadBody) as error:
        refusal = error if isinstance(error, Refused) else Refused(error.status, str(error))
        with contextlib.suppress(ClientGone):
            await response.refuse(refusal)
    except ClientGone:
        pass


async def _serve(request: _Request, body: RequestBody, response: Response) -> None:
    try:
        repository, actor = await in_database(_authorise, request)
    except UNREACHABLE:
        _log.exception("A git request finds no database")
        sentence = "The forge cannot reach its database. Nothing was changed; try again in a moment."
        if request.writes and not request.advertises:
            # git shows nothing of an HTTP error here, but all of a refused push.
            await refuse_push(body, response, sentence)
            return
        raise Refused(503, sentence, (b"retry-after", b"10")) from None
    kind = "advertisement" if request.advertises else "result"
    response.content_type = f"application/x-{request.service}-{kind}"
    async with _slot(request):
        if request.advertises:
            await _advertise(request, repository, body, response)
        elif request.writes:
            await receive_push(repository=repository, actor=actor, body=body, response=response)
        else:
            await _upload(request, repository, body, response)


def _read_request(scope: dict[str, Any]) -> _Request:
    found = _ADDRESS.fullmatch(scope["path"])
    if found is None:
        raise Refused(404, "There is nothing at this address.")
    headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
    advertises = found["call"] == "info/refs"
    method, allowed = scope["method"], "GET" if advertises else "POST"
    if method != allowed:
        raise Refused(405, f"Use {allowed}.", (b"allow", allowed.encode()))
    if advertises:
        service = parse_qs(scope["query_string"].decode("latin-1")).get("service", [""])[0]
        if service not in _SERVICES:
            raise Refused(403, "Only git's smart HTTP protocol is served here: use git 1.6.6 or newer.")
    else:
        service = found["call"]
        if headers.get("content-type") != f"application/x-{service}-request":
            raise Refused(415, f"The Content-Type must be application/x-{service}-request.")
    length = headers.get("content-length", "0")
    if not (length.isascii() and length.isdigit() and len(length) < 20):
        raise Refused(400, "The Content-Length is not a number.")
    client = scope.get("client")
    name = found["name"].removesuffix(".git")
    return _Request(found["owner"], name, service, advertises, headers, client[0] if client else "")


def _authorise(request: _Request) -> tuple[Repository, Actor]:
    """Who calls, and what of. A private repository and none at all look the same to whoever may not see it."""
    try:
        actor = actor_of(
            authorization=request.headers.get("authorization"), address=request.address, headers=request.headers
        )
    except WrongCredentials:
        sentence = "The user name, password or token is wrong, expired or revoked."
        raise Refused(401, sentence, _CHALLENGE) from None
    except TooManyAttempts as error:
        seconds = str(int(settings.AXES_COOLOFF_TIME.total_seconds())).encode()
        raise Refused(429, str(error), (b"retry-after", seconds)) from None
    repositories = Repository.objects.select_related("owner")
    repository = repositories.filter(owner__username=request.owner, name__iexact=request.name).first()
    visible = repository is not None and can_read(actor, repository)
    if not actor.is_authenticated and (request.writes or not visible):
        raise Refused(401, "Sign in with your user name and your password or an access token.", _CHALLENGE)
    if repository is None or not visible:
        raise Refused(404, f"There is no repository {request.owner}/{request.name}, or you may not see it.")
    if request.writes and not can_write(actor, repository):
        raise Refused(403, f"You may read {repository}, but not push to it: ask its owner for the role 'write'.")
    if not repository.path.is_dir():
        _log.error("The folder of repository %s is missing: %s", repository.pk, repository.path)
        raise Refused(500, f"The files of {repository} are missing on the server; tell its operator.")
    return repository, actor


# By whether they write: slow clones do not keep pushes out.
_places = {writes: asyncio.Semaphore(settings.GIT_PROCESSES) for writes in (False, True)}


@contextlib.asynccontextmanager
async def _slot(request: _Request) -> AsyncIterator[None]:
    """A place among the git processes that may run at once."""
    places = _places[request.writes]
    try:
        async with asyncio.timeout(_QUEUE_SECONDS):
            await places.acquire()
    except TimeoutError:
        raise Refused(503, "The forge is busy with other git requests; try again.", (b"retry-after", b"30")) from None
    try:
        yield
    finally:
        places.release()


async def _advertise(request: _Request, repository: Repository, body: RequestBody, response: Response) -> None:
    verb = request.service.removeprefix("git-")
    arguments = [verb, "--stateless-rpc", "--advertise-refs"]
    if not _is_version_2(request.protocol):
        await response.write(packet(f"# service={request.service}\n".encode()) + FLUSH)
    await _run(arguments, request, repository, body, response)


async def _upload(request: _Request, repository: Repository, body: RequestBody, response: Response) -> None:
    await _run(["upload-pack", "--stateless-rpc"], request, repository, body, response)


async def _run(
    arguments: list[str], request: _Request, repository: Repository, body: RequestBody, response: Response
) -> None:
    try:
        async with (
            asyncio.timeout(settings.GIT_TIMEOUT_SECONDS),
            GitProcess(arguments, path=repository.path, protocol=request.protocol) as process,
        ):
            status = await process.exchange(body, response.write)
    except TimeoutError:
        _log.warning("%s of repository %s took too long and was ended", request.service, repository.pk)
        raise Refused(504, "git took too long and was ended.") from None
    if status != 0:
        # A client that hangs up early, or asks for what is not there, is told so by git itself.
        _log.info("%s of repository %s: %s", request.service, repository.pk, process.errors)
        if not response.started:
            raise Refused(500, "git could not serve this request.")
    await response.finish()


def _is_version_2(protocol: str) -> bool:
    return "version=2" in protocol.split(":")
