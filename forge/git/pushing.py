"""How does one push go? Its refs are read and recorded, git receives, the rows are settled, the person is told."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import time
from collections.abc import Mapping, Sequence

from django.conf import settings
from django.utils.module_loading import import_string

from forge.access import Actor
from forge.git import receive
from forge.git.bodies import PIECE, ClientGone, RequestBody
from forge.git.commands import Answer, BadPush, Command, CommandList, refusal, refuse_all
from forge.git.database import UNREACHABLE, in_database, report
from forge.git.durable import flush_push
from forge.git.live import LivePushes
from forge.git.maintenance import tidy
from forge.git.pktlines import ERROR, FLUSH, MalformedPacket, on_band
from forge.git.process import GitProcess
from forge.git.responses import Refused, Response
from forge.models import Repository

_log = logging.getLogger(__name__)
_REPORT_SECONDS = 10.0
_MAX_LINES = 200
_MAX_LINE = 1000  # characters
# More refusals do not fit the environment of a process.
_MOST_REFUSED = 100
_UNREACHABLE = "The forge cannot reach its database. Nothing was changed; try again in a moment."
_KEPT = (
    "The refs are moved, but the forge cannot reach its database just now. Nothing is lost: the workflows start later."
)


async def receive_push(*, repository: Repository, actor: Actor, body: RequestBody, response: Response) -> None:
    """Serve one git-receive-pack request. Raises Refused, BadBody, ClientGone; whatever git did is settled first."""
    request = await _read_commands(body)
    refusals = {
        command.ref: reason
        for command in request.commands
        if (reason := refusal(command, default_branch=repository.default_branch))
    }
    # git itself carries out the rest of an atomic push whose refused refs are hidden.
    if len(refusals) > _MOST_REFUSED or (refusals and request.is_atomic):
        reason = f"{len(refusals)} of the refs cannot be pushed; nothing was changed."
        await _refuse(request, body, response, reason, refusals)
        return
    recorded = [command for command in request.commands if command.is_recorded and command.ref not in refusals]
    with LivePushes() as live:
        try:
            push_ids = await _record(repository, actor, recorded, live)
        except UNREACHABLE:
            _log.exception("A push finds no database")
            await _refuse(request, body, response, _UNREACHABLE)
            return
        await _Push(repository, request, refusals, push_ids, live, body, response).go()


async def refuse_push(body: RequestBody, response: Response, reason: str) -> None:
    """Refuse a push in git's own words, which it shows to the person."""
    response.content_type = "application/x-git-receive-pack-result"
    await _refuse(await _read_commands(body), body, response, reason)


async def _read_commands(body: RequestBody) -> CommandList:
    request = CommandList()
    try:
        async for piece in body:
            request.feed(piece)
            if request.complete:
                break
        else:
            raise BadPush("the list of refs does not end")
    except BadPush as error:
        raise Refused(400, f"This push cannot be read: {error}.") from None
    refs = [command.ref for command in request.commands]
    if len(set(refs)) != len(refs):
        raise Refused(400, "This push cannot be read: a ref is named twice.")
    return request


async def _refuse(
    request: CommandList,
    body: RequestBody,
    response: Response,
    reason: str,
    refusals: Mapping[str, str] | None = None,
) -> None:
    async for _ in body:  # git listens only after it has sent everything
        pass
    await response.finish(refuse_all(request, reason, refusals=refusals))


async def _record(repository: Repository, actor: Actor, commands: Sequence[Command], live: LivePushes) -> Sequence[int]:
    if not commands:
        return []
    return await in_database(receive.record, repository=repository, actor=actor, commands=commands, live=live)


class _Push:
    """A recorded push, from git's start to the last line for the person."""

    def __init__(
        self,
        repository: Repository,
        request: CommandList,
        refusals: dict[str, str],
        push_ids: Sequence[int],
        live: LivePushes,
        body: RequestBody,
        response: Response,
    ) -> None:
        self._repository = repository
        self._request = request
        self._refusals = refusals
        self._push_ids = push_ids
        self._live = live
        self._body = body
        self._response = response
        self._answer = Answer(request)
        self._held = bytearray()
        self._began = time.time()

    async def go(self) -> None:
        trouble = ""
        try:
            trouble = await self._run_git()
        finally:
            # Whatever ended git: it may have moved refs before.
            settled = await asyncio.shield(asyncio.create_task(self._settle()))
        lines = [f"{ref}: {reason}" for ref, reason in self._refusals.items()]
        if self._body.seen > settings.GIT_MAX_PUSH_BYTES:
            lines.append(f"This push is larger than {settings.GIT_MAX_PUSH_BYTES:,} bytes, which is the limit here.")
        lines += [_KEPT] if settled is None else await _report(settled)
        await self._response.finish(bytes(self._held) + self._last_words(trouble, lines))
        tidy(self._repository)

    def _last_words(self, trouble: str, lines: list[str]) -> bytes:
        if not trouble or self._answer.has_report:
            return self._answer.finish(refusals=self._refusals, lines=[*lines, *([trouble] if trouble else [])])
        if self._request.has_side_band:
            return on_band(ERROR, f"{trouble}\n".encode()) + FLUSH
        return refuse_all(self._request, trouble)

    async def _run_git(self) -> str:
        """Run git; what went wrong, in a sentence, or nothing."""
        config = [("receive.maxInputSize", str(settings.GIT_MAX_PUSH_BYTES))]
        # git refuses refs that are hidden; a name it cannot read it refuses anyway.
        config += [("receive.hideRefs", ref) for ref in self._refusals if ref.startswith("refs/")]
        process = GitProcess(
            ["receive-pack", "--stateless-rpc"],
            path=self._repository.path,
            config=config,
            keep_open=[self._live.descriptor],
        )
        try:
            async with asyncio.timeout(settings.GIT_TIMEOUT_SECONDS), process:
                first = bytes(self._request.raw)
                status = await process.exchange(self._body, self._write, first=first, outlives_client=True)
        except TimeoutError:
            return f"The push took longer than {settings.GIT_TIMEOUT_SECONDS} s and was ended."
        except MalformedPacket as error:
            _log.error("receive-pack of repository %s: %s", self._repository.pk, error)
            return "git gave an answer that the forge cannot read."
        if status != 0:
            _log.warning("receive-pack of repository %s: %s", self._repository.pk, process.errors)
            return "git could not receive this push."
        return ""

    async def _write(self, chunk: bytes) -> None:
        """Pass progress on; while the client still sends, hold it back as far as that is harmless."""
        self._held += self._answer.feed(chunk)
        if self._held and (self._body.complete or len(self._held) > PIECE):
            held, self._held = bytes(self._held), bytearray()
            # Who left does not stop git now: the push is on its way to being done.
            with contextlib.suppress(ClientGone):
                await self._response.write(held)

    async def _settle(self) -> list[int] | None:
        """The pushes that happened; None when they stay recorded because the database, or the disk, does not answer."""
        try:
            refs = [command.ref for command in self._request.commands if command.ref not in self._refusals]
            await asyncio.to_thread(flush_push, self._repository.path, refs, since=self._began)
            if not self._push_ids:
                return []
            return await in_database(
                receive.settle,
                repository=self._repository,
                push_ids=self._push_ids,
                outcomes=self._answer.outcomes(),
            )
        except Exception:
            _log.exception("Pushes %s stay recorded until the next repair", self._push_ids)
            return None
        finally:
            self._live.release()


async def _report(push_ids: list[int]) -> list[str]:
    if not push_ids:
        return []
    try:
        lines = await report(functools.partial(_lines_for, push_ids), deadline=_REPORT_SECONDS)
    except TimeoutError:
        _log.warning("The report on pushes %s took longer than %g s", push_ids, _REPORT_SECONDS)
        return ["What this push starts is not known yet: see the repository's Actions page in a moment."]
    except Exception:
        _log.exception("The report on pushes %s failed", push_ids)
    else:
        return [line[:_MAX_LINE].replace("\n", " ") for line in lines[:_MAX_LINES]]
    return []


def _lines_for(push_ids: list[int]) -> list[str]:
    made: list[str] = import_string(settings.PUSH_REPORT)(push_ids)
    return made
