"""Which runner calls? The one whose UUID and token stand in the headers."""

from __future__ import annotations

from collections.abc import Sequence

from ci.interop.connect import Call
from ci.interop.protocol import runner_pb2 as pb
from ci.lifecycle import foreign_runners
from ci.models import Runner, RunnerPhase
from ci.waiting.process import current

_STATUSES = {
    RunnerPhase.PENDING: pb.RUNNER_STATUS_IDLE,
    RunnerPhase.RUNNING: pb.RUNNER_STATUS_ACTIVE,
}


async def admit(call: Call) -> None:
    """Raises Unauthenticated."""
    call.runner = await current().poll(
        foreign_runners.runner_of, identity=call.header("x-runner-uuid"), token=call.header("x-runner-token")
    )


def caller(call: Call) -> Runner:
    """The runner that `admit` found."""
    if call.runner is None:
        raise LookupError("this procedure admits callers without a runner")
    return call.runner


def names_of(labels: Sequence[str]) -> list[str]:
    """The names alone: `ubuntu-latest` of `ubuntu-latest:host` or `ubuntu-latest:docker://node:22`."""
    return [label.partition(":")[0] for label in labels]


def described(runner: Runner, *, token: str = "") -> pb.Runner:
    """`token` only in the answer to its registration, the one time that it is known in plain."""
    return pb.Runner(
        id=runner.pk,
        uuid=str(runner.uuid or ""),
        token=token,
        name=runner.name,
        status=_STATUSES.get(RunnerPhase(runner.phase), pb.RUNNER_STATUS_OFFLINE),
        version=runner.agent_version,
        labels=runner.labels,
        ephemeral=runner.ephemeral,
    )
