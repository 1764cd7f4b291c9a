"""Is there a task for this runner? The answer waits a little for one, far below the 5 s that runners wait for it."""

from __future__ import annotations

import random
import re
import secrets

from ci.interop import task_payload
from ci.interop.connect import Call
from ci.interop.connect_errors import ConnectError
from ci.interop.protocol import runner_pb2 as pb
from ci.interop.runner_service.callers import caller
from ci.interop.runner_service.task_ids import job_and_holder
from ci.lifecycle import foreign_runners
from ci.lifecycle.errors import Unauthenticated
from ci.lifecycle.transitions import release_from_runner
from ci.models import Runner
from ci.waiting.polling import next_job
from ci.waiting.process import current

WAIT_SECONDS = 2.5
# Left of the client's own deadline for the look itself and the way back.
_LEFT_SECONDS = 2.0
_KEY = re.compile(r"[\x21-\x7e]{1,64}")


async def fetch_task(call: Call, request: pb.FetchTaskRequest) -> pb.FetchTaskResponse:
    """One task at most: a runner has one job at a time, whatever capacity it speaks of."""
    task = await _next_task(call)
    return pb.FetchTaskResponse(task=task, tasks_version=_version(request.tasks_version))


async def fetch_single_task(call: Call, request: pb.FetchSingleTaskRequest) -> pb.FetchSingleTaskResponse:
    if request.handle:
        raise ConnectError("invalid_argument", "This server gives no job a handle: ask without one.")
    task = await _next_task(call)
    return pb.FetchSingleTaskResponse(task=task, tasks_version=_version(request.tasks_version))


def _version(given: int) -> int:
    """What a runner has is no reason not to look, so the number needs only to be valid, and never to fall."""
    return max(1, given)


async def _next_task(call: Call) -> pb.Task | None:
    runner, process = caller(call), current()
    key = call.header("x-runner-request-key")
    if key and not _KEY.fullmatch(key):
        raise ConnectError("invalid_argument", "x-runner-request-key has at most 64 printable characters.")
    if runner.is_done and await process.poll(foreign_runners.has_nothing_left, runner):
        raise Unauthenticated("unregistered runner")
    task = await next_job(
        process,
        call,
        runner=runner,
        poll_id=key or secrets.token_hex(16),
        seconds=waiting_seconds(call.seconds),
        build=task_payload.build,
    )
    if task is not None and call.is_gone and not key and not runner.ephemeral:
        await process.beat(_give_back, task.id, runner)
    return task


def waiting_seconds(given: float | None) -> float:
    """How long an answer may wait for a job, of a call that its client gives so many seconds."""
    # Spread, or all runners that a restart made poll together would do so for ever.
    seconds = WAIT_SECONDS * random.uniform(0.8, 1.0)
    return max(0.0, seconds if given is None else min(seconds, given - _LEFT_SECONDS))


def _give_back(task_id: int, runner: Runner) -> None:
    """The answer reaches nobody, and without a key nobody can ask for it again. A single-use runner's waits for the
    end of its lease all the same: given back, the job would have ended its runner."""
    job_id, _ = job_and_holder(task_id, runner)
    release_from_runner(job_id=job_id, runner_id=runner.pk, why=f"runner {runner.name} hung up before it was told")
