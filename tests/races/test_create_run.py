"""A push is planned by its own request and by its task at once: each of its workflows runs once."""

from ci.lifecycle import pushes
from ci.models import Run, Workflow
from tests.playground import ONE_JOB, WORKFLOW, Playground
from tests.races.interleaving import rival_before

NUMBER_THE_RUN = r'UPDATE "ci_workflow" SET "run_count"'
INSERT_THE_RUN = r'INSERT INTO "ci_run"'


def test_planning_before_the_number_is_taken(committing_playground: Playground) -> None:
    _plan_twice(committing_playground, NUMBER_THE_RUN)


def test_planning_before_the_run_is_written(committing_playground: Playground) -> None:
    _plan_twice(committing_playground, INSERT_THE_RUN)


def _plan_twice(playground: Playground, point: str) -> None:
    push = playground.push({WORKFLOW: ONE_JOB}, plan=False)
    with rival_before(point, lambda: pushes.plan_push(push.pk)) as rival:
        runs = pushes.plan_push(push.pk)
    assert rival.error is None
    assert runs == rival.result == list(Run.objects.all())
    assert len(runs) == 1
    assert Workflow.objects.get().run_count == 1
