"""Does what a step wrote as its summary come to its page, by the runner's own way of handing it in?"""

import httpx
import pytest

from ci.lifecycle import transitions
from tests.interop.foreign import SUCCESS, job_of, registered, step

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def runner(world, forge):
    return registered(world, forge.url)


@pytest.fixture
def task(world, runner):
    world.run()
    return runner.task()


@pytest.fixture
def put(forge, task):
    def call(text, *, index=0, job_id=None, token=None, method="PUT"):
        job = job_of(task)
        address = f"workflows/{job.run_id}/jobs/{job_id or job.pk}/steps/{index}/summary"
        headers = {
            "authorization": f"Bearer {token or task.context['gitea_runtime_token']}",
            "content-type": "text/markdown; charset=utf-8",
        }
        url = f"{forge.url}/api/actions_pipeline/_apis/pipelines/{address}"
        return httpx.request(method, url, content=text.encode(), headers=headers, timeout=60)

    return call


def test_the_server_says_that_it_takes_summaries(forge, runner):
    url = f"{forge.url}/api/actions/runner.v1.RunnerService/Declare"
    answer = httpx.post(url, headers={"content-type": "application/proto", **runner.client.headers})
    assert answer.headers["x-gitea-actions-capabilities"] == "job-summary"


def test_a_summary_is_kept_with_its_step_though_that_has_ended(runner, task, put):
    runner.state(task, steps=[step(0, count=1, result=SUCCESS)])
    assert put("# Done\n\0é").status_code == 204
    runner.state(task, result=SUCCESS, steps=[step(0, count=1, result=SUCCESS)])
    found = job_of(task).steps.get(number=2)
    assert (found.summary, found.conclusion) == ("# Done\n\ufffdé", "success")


def test_a_summary_may_come_before_anything_else_is_known_of_its_step(runner, task, put):
    assert put("early").status_code == 204
    runner.state(task, result=SUCCESS, steps=[step(0, count=1, result=SUCCESS)])
    found = job_of(task).steps.get(number=2)
    assert (found.name, found.summary, found.conclusion) == ("Run echo hello", "early", "success")


def test_the_first_summary_stays(task, put):
    assert put("first").status_code == put("second").status_code == 204
    assert job_of(task).steps.get(number=2).summary == "first"


@pytest.mark.parametrize("options", [{"index": 1}, {"job_id": 999}])
def test_what_is_no_step_of_the_tokens_job_is_not_found(task, put, options):
    assert put("x", **options).status_code == 404
    assert not job_of(task).steps.exists()


def test_it_refuses_what_is_too_large_and_other_methods_and_tokens(task, put):
    assert put("x" * (1024 * 1024 + 1)).status_code == 413
    assert put("x", method="POST").status_code == 405
    assert put("x", token="frj_x").status_code == 401
    assert not job_of(task).steps.exists()


def test_a_job_that_has_ended_or_was_taken_back_keeps_no_summary(world, runner, task, put):
    transitions.requeue_job(job_id=job_of(task).pk, actor=world.operator)
    assert put("x").status_code == 401
    newer = runner.task()
    runner.state(newer, result=SUCCESS)
    assert put("x", token=newer.context["forgejo_runtime_token"]).status_code == 409
    assert not job_of(task).steps.exclude(summary="").exists()
