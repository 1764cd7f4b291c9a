"""A runner is removed while it is given a job: the job is never left with nobody."""

from ci.lifecycle import registration
from ci.models import Job, Runner
from tests.playground import Playground
from tests.races.interleaving import LOCK_RUNNER, rival_before


def test_a_job_given_just_before_is_taken_back(committing_playground: Playground) -> None:
    playground = committing_playground
    playground.run()
    runner = playground.runner()
    with rival_before(LOCK_RUNNER, lambda: playground.assigned(runner)) as rival:
        registration.remove_runner(runner_id=runner.pk)
    assert rival.error is None
    assert not Runner.objects.filter(pk=runner.pk).exists()
    job = Job.objects.get()
    assert (job.state, job.runner) == ("queued", None)
    assert playground.fetch(playground.runner(name="beta")) is not None
