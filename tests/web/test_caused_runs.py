"""Does a run lead to the run that caused it, and to those that it caused?"""

from django.test import Client

from ci.lifecycle import tasks
from ci.models import Run
from tests.playground import ONE_JOB, WORKFLOW, Playground

AFTER = """
    name: After
    on: {workflow_run: {workflows: [CI], types: [completed]}}
    jobs: {a: {runs-on: linux, steps: [{run: echo}]}}
"""


def text_of(client: Client, run: Run) -> str:
    return " ".join(client.get(f"/alice/widgets/actions/runs/{run.pk}/").content.decode().split())


def test_source_and_caused_run_lead_to_each_other(alice: Client, playground: Playground) -> None:
    playground.push({WORKFLOW: ONE_JOB, ".github/workflows/after.yml": AFTER})
    source = Run.objects.get(event="push")
    assert "Runs that it caused" not in text_of(alice, source)
    playground.work(playground.runner())
    tasks.fire_workflow_run(source.pk, 1, "completed")
    caused = Run.objects.get(event="workflow_run")
    assert f'caused by <a href="/alice/widgets/actions/runs/{source.pk}/">CI #1</a> (completed)' in text_of(
        alice, caused
    )
    text = text_of(alice, source)
    assert "Runs that it caused" in text
    assert f'<a href="/alice/widgets/actions/runs/{caused.pk}/">After #1</a>' in text
