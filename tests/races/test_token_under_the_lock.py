"""A token that is replaced between look-up and lock proves nothing any more."""

from collections.abc import Callable

import pytest

from ci.lifecycle import transitions
from ci.lifecycle.errors import Unauthenticated
from ci.models import Job
from tests.lifecycle.test_deadlines import let_pass
from tests.playground import Assigned, Playground
from tests.races.interleaving import LOCK_JOB, LOCK_RUN, rival_before

CALLS: dict[str, tuple[str, Callable[[Assigned], object]]] = {
    "heartbeat": (LOCK_RUN, lambda assigned: assigned.heartbeat()),
    "steps": (LOCK_RUN, lambda assigned: assigned.steps({"number": 2, "name": "x", "state": "running"})),
    "log": (LOCK_JOB, lambda assigned: assigned.log("x")),
    "complete": (LOCK_RUN, lambda assigned: assigned.complete()),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_call_is_unauthenticated_and_writes_nothing(committing_playground: Playground, name: str) -> None:
    playground = committing_playground
    playground.run()
    assigned = playground.assigned()
    let_pass(assigned.id)
    other = playground.runner(name="other")

    def requeue_and_claim() -> Assigned:
        transitions.act_on_deadline(job_id=assigned.id)
        return playground.assigned(other)

    point, call = CALLS[name]
    with rival_before(point, requeue_and_claim) as rival, pytest.raises(Unauthenticated):
        call(assigned)
    assert rival.error is None
    job = Job.objects.get(pk=assigned.id)
    assert (job.state, job.runner, job.assignment) == ("assigned", other, 2)
    assert not job.steps.exists()
    rival.result.heartbeat()
