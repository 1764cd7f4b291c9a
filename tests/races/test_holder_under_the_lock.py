"""Who proves a job by runner and assignment proves nothing once one of the two was replaced."""

from collections.abc import Callable

import pytest

from ci.lifecycle import reports, transitions
from ci.lifecycle.errors import Unauthenticated
from ci.lifecycle.transitions import Holder
from ci.models import Heartbeat, Job, Runner
from ci.storage import logs
from tests.lifecycle.test_deadlines import let_pass
from tests.playground import Assigned, Playground
from tests.races.interleaving import LOCK_JOB, LOCK_RUN, rival_before

STEP = {"number": 2, "name": "x", "state": "running"}
LINES = [("2026-01-01T00:00:00Z", "x")]
CALLS: dict[str, tuple[str, Callable[[int, Holder], object]]] = {
    "heartbeat": (LOCK_RUN, lambda job, holder: transitions.heartbeat(job_id=job, token=holder)),
    "steps": (LOCK_RUN, lambda job, holder: transitions.update_steps(job_id=job, token=holder, steps=[STEP])),
    "log": (LOCK_JOB, lambda job, holder: transitions.append_log(job_id=job, token=holder, offset=0, lines=LINES)),
    "seal": (LOCK_RUN, lambda job, holder: transitions.seal_log(job_id=job, token=holder)),
    "complete": (LOCK_RUN, lambda job, holder: transitions.complete(job_id=job, token=holder, conclusion="success")),
    "report": (LOCK_RUN, lambda job, holder: reports.report(job_id=job, token=holder, steps=[STEP])),
}


def holder_of(assigned: Assigned) -> Holder:
    return Holder(assigned.runner.pk, assigned.job.assignment)


@pytest.mark.parametrize("taker", ["another runner", "the same runner", "nobody"])
@pytest.mark.parametrize("name", CALLS)
def test_the_call_is_unauthenticated_and_writes_nothing(
    committing_playground: Playground, name: str, taker: str
) -> None:
    playground = committing_playground
    playground.run()
    assigned = playground.assigned()
    holder = holder_of(assigned)
    let_pass(assigned.id)
    takers: dict[str, Runner | None] = {
        "another runner": playground.runner(name="other"),
        "the same runner": assigned.runner,
        "nobody": None,
    }

    def take_it_back() -> None:
        transitions.act_on_deadline(job_id=assigned.id)
        if takers[taker] is not None:
            playground.assigned(takers[taker])

    point, call = CALLS[name]
    with rival_before(point, take_it_back) as rival, pytest.raises(Unauthenticated):
        call(assigned.id, holder)
    assert rival.error is None
    job = Job.objects.get(pk=assigned.id)
    expected = ("queued", 1) if takers[taker] is None else ("assigned", 2)
    assert (job.state, job.assignment, job.runner) == (*expected, takers[taker])
    assert not job.steps.exists()
    assert not Heartbeat.objects.filter(job=job).exists()
    assert (logs.length(job.pk), logs.is_sealed(job.pk)) == (0, False)


def test_the_holder_does_all_that_the_token_does(playground: Playground) -> None:
    playground.run()
    assigned = playground.assigned()
    holder = holder_of(assigned)
    for _, call in CALLS.values():
        call(assigned.id, holder)
    assert assigned.job.conclusion == "success"
    assert logs.length(assigned.id) == 1


def test_a_report_whose_end_is_refused_leaves_nothing_behind(playground: Playground) -> None:
    playground.run()
    assigned = playground.assigned()
    wrong = Holder(assigned.runner.pk, assigned.job.assignment + 1)
    with pytest.raises(Unauthenticated):
        reports.report(job_id=assigned.id, token=wrong, steps=[STEP], conclusion="success")
    assert assigned.job.state == "assigned"
    assert not assigned.job.steps.exists()
