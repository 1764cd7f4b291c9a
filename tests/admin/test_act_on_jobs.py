"""Do the actions on jobs cancel, requeue and re-run what the operator saw?"""

from ci.models import Job
from tests.playground import jobs_of, states_of

TWO_JOBS = """
    name: CI
    on: push
    jobs:
      build: {runs-on: linux, steps: [{run: a}]}
      deploy: {runs-on: linux, steps: [{run: b}]}
"""


def test_cancel_ends_one_job_and_leaves_the_other(playground, operator):
    run = playground.run(TWO_JOBS)
    assert operator.act("cancel", jobs_of(run)["build"]) == ["build: cancelled"]
    assert states_of(run) == {"build": "cancelled", "deploy": "queued"}


def test_one_message_a_row(playground, operator):
    run = playground.run(TWO_JOBS)
    playground.assigned().begin().complete()
    jobs = jobs_of(run)
    messages = operator.act("cancel", jobs["build"], jobs["deploy"])
    assert sorted(messages) == ["build: had already ended with Success.", "deploy: cancelled"]


def test_a_job_that_was_taken_meanwhile_is_not_cancelled(playground, operator):
    run = playground.run()
    page = operator.listed(Job)
    playground.assigned()
    assert operator.act("cancel", jobs_of(run)["build"], page=page) == [
        "build: has changed meanwhile: look again, then decide."
    ]
    assert states_of(run) == {"build": "assigned"}


def test_force_cancel_ends_a_running_job(playground, operator):
    run = playground.run()
    playground.assigned().begin()
    assert operator.act("force_cancel", jobs_of(run)["build"]) == ["build: cancelled by force"]
    assert states_of(run) == {"build": "cancelled"}


def test_requeue_takes_a_job_back_that_has_not_begun(playground, operator):
    run = playground.run()
    runner = playground.runner()
    assigned = playground.assigned(runner)
    assert operator.act("requeue", assigned.job) == ["build: queued again"]
    assert states_of(run) == {"build": "queued"}
    playground.assigned(runner).begin()
    assert "has begun its steps" in operator.act("requeue", assigned.job)[0]
    assert states_of(run) == {"build": "running"}


def test_rerun_runs_one_job_again(playground, operator):
    run = playground.run(TWO_JOBS)
    playground.work(playground.runner(), {"build": "failure"})
    job = jobs_of(run)["build"]
    assert operator.act("rerun", job) == ["build: runs again in attempt 2"]
    assert states_of(run) == {"build": "queued", "deploy": "success"}
    assert "build: " in operator.act("rerun", job)[0]
    assert states_of(run) == {"build": "queued", "deploy": "success"}


def test_a_job_that_ended_meanwhile_is_not_run_again(playground, operator):
    run = playground.run()
    assigned = playground.assigned().begin()
    page = operator.listed(Job)
    assigned.complete("failure")
    assert "has changed meanwhile" in operator.act("rerun", assigned.job, page=page)[0]
    assert states_of(run) == {"build": "failure"}


def test_the_log_is_one_link_away(playground, operator):
    playground.run()
    assigned = playground.assigned().begin()
    assigned.log("one", "two")
    page = operator.opened(assigned.job).content.decode()
    link = f"/alice/widgets/actions/runs/{assigned.job.run_id}/jobs/{assigned.id}/log/raw/"
    assert f'<a href="{link}">2 lines</a>' in page
    assert link in operator.listed(Job).content.decode()
    answer = operator.get(link)
    assert answer.status_code == 200
    assert b"two" in answer.getvalue()


def test_no_page_has_the_token_of_a_job(playground, operator):
    playground.run()
    assigned = playground.assigned()
    page = operator.opened(assigned.job).content.decode()
    assert assigned.job.token_hash not in page
    assert assigned.token not in page
