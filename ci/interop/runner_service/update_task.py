"""How far is a task, and shall it go on? Each report is a heartbeat; its answer is the only way to tell of a cancel."""

from __future__ import annotations

from collections.abc import Mapping

from ci.interop.connect import Call
from ci.interop.protocol import runner_pb2 as pb
from ci.interop.runner_service import step_reports
from ci.interop.runner_service.callers import caller
from ci.interop.runner_service.results import conclusion_of, result_of
from ci.interop.runner_service.stale import check_held_before
from ci.interop.runner_service.task_ids import job_and_holder
from ci.lifecycle import reports
from ci.lifecycle.errors import NotFound, Unauthenticated
from ci.lifecycle.transitions.complete import MAX_OUTPUT_KEY, MAX_OUTPUT_VALUE, MAX_OUTPUTS
from ci.models import Job, Runner
from ci.waiting.process import current
from ci.workflow.storable import UNSTORABLE

# Characters of all of a job's outputs together.
MAX_OUTPUTS_SIZE = 16 * 1024 * 1024


async def update_task(call: Call, request: pb.UpdateTaskRequest) -> pb.UpdateTaskResponse:
    return await current().beat(_update, caller(call), request)


def _update(runner: Runner, request: pb.UpdateTaskRequest) -> pb.UpdateTaskResponse:
    state = request.state
    job_id, holder = job_and_holder(state.id, runner)
    job = Job.objects.filter(pk=job_id).first()
    if job is None:
        raise NotFound("There is no such task; its run may have been deleted.")
    conclusion = conclusion_of(state.result)
    # Before the end they are neither kept nor acknowledged, so the runner sends them again with its end.
    outputs, left_out = _sorted_out(request.outputs) if conclusion is not None else ({}, [])
    try:
        standing = reports.report(
            job_id=job_id,
            token=holder,
            steps=step_reports.of(job, state, left_out=left_out),
            conclusion=conclusion,
            outputs=outputs,
        )
    except Unauthenticated:
        check_held_before(job_id, holder)
        # Nothing was noted. For this runner the task is over, and it must not go on with what another one does.
        standing = reports.Standing(cancelled=True)
    result = result_of(standing.conclusion)
    if not standing.conclusion and standing.cancelled:
        result = pb.RESULT_CANCELLED
    return pb.UpdateTaskResponse(state=pb.TaskState(id=state.id, result=result), sent_outputs=standing.outputs)


def _sorted_out(given: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """The outputs that can be kept, and the names of the others: a job does not fail to end for one of them."""
    kept: dict[str, str] = {}
    left_out: list[str] = []
    size = 0
    for name, value in sorted(given.items()):
        fits = len(name) <= MAX_OUTPUT_KEY and len(value) <= MAX_OUTPUT_VALUE
        fits = fits and len(kept) < MAX_OUTPUTS and size + len(value) <= MAX_OUTPUTS_SIZE
        if fits and not UNSTORABLE.search(name + value):
            kept[name] = value
            size += len(value)
        else:
            left_out.append(name)
    return kept, left_out
