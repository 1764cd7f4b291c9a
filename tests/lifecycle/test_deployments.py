"""list deployments: which jobs are one, and what has become of each."""

from __future__ import annotations

import pytest

from ci.lifecycle import settings_values, transitions
from ci.lifecycle.deployments import deployments
from ci.lifecycle.environments import delete_environment
from ci.models import Environment, Job, Scope
from tests.playground import Playground

DEPLOY = """
    name: Deploy
    on: push
    jobs:
      deploy:
        runs-on: linux
        environment: {name: production, url: "https://example.test"}
        steps: [{run: ./deploy}]
"""
WITHOUT = DEPLOY.replace("url:", "deployment: false, url:")


def states(playground: Playground) -> list[tuple[str, str]]:
    """Name and state, the newest first."""
    return [(job.name, job.deployment_state) for job in deployments(playground.repository)]


def test_a_job_without_deployment_reads_its_environment_and_is_none(playground: Playground) -> None:
    playground.run(DEPLOY)
    scope = Scope(repository=playground.repository, environment=Environment.objects.get())
    settings_values.set_secret(scope=scope, name="KEY", value="of-production", actor=playground.alice)
    settings_values.set_variable(scope=scope, name="WHERE", value="there", actor=playground.alice)
    runner = playground.runner()
    playground.work(runner)
    playground.run(WITHOUT)
    assigned = playground.assigned(runner)
    assert assigned.payload["contexts"]["secrets"]["KEY"] == "of-production"
    assert assigned.payload["contexts"]["vars"] == {"WHERE": "there"}
    assigned.begin()
    assigned.complete(environment_url="https://example.test")
    assert states(playground) == [("deploy", "success")]


def test_its_state_follows_its_job(playground: Playground) -> None:
    playground.run(DEPLOY.replace("runs-on", "strategy: {max-parallel: 1, matrix: {n: [1, 2]}}\n        runs-on"))
    assert states(playground) == [("deploy (2)", "waiting"), ("deploy (1)", "queued")]
    runner = playground.runner()
    assigned = playground.assigned(runner)
    assert states(playground)[1] == ("deploy (1)", "queued")
    assigned.begin()
    assert states(playground)[1] == ("deploy (1)", "in_progress")
    assigned.complete("success")
    assert states(playground) == [("deploy (2)", "queued"), ("deploy (1)", "success")]
    playground.work(runner)
    assert states(playground) == [("deploy (2)", "success"), ("deploy (1)", "inactive")]


def test_a_newer_success_makes_the_older_inactive_and_a_failure_does_not(playground: Playground) -> None:
    runner = playground.runner()
    for conclusion in ("success", "success", "failure", "cancelled"):
        playground.run(DEPLOY)
        playground.work(runner, {"deploy": conclusion})
    assert [state for _, state in states(playground)] == ["inactive", "failure", "success", "inactive"]


def test_what_succeeded_last_is_active_whatever_began_first(playground: Playground) -> None:
    playground.run(DEPLOY)
    first = playground.assigned(playground.runner(name="slow")).begin()
    playground.run(DEPLOY)
    playground.work(playground.runner(name="quick"))
    assert states(playground) == [("deploy", "success"), ("deploy", "in_progress")]
    first.complete()
    assert states(playground) == [("deploy", "inactive"), ("deploy", "success")]


def test_environments_do_not_end_each_others_deployments(playground: Playground) -> None:
    runner = playground.runner()
    for name in ("production", "PRODUCTION", "staging"):
        playground.run(DEPLOY.replace("production", name))
        playground.work(runner)
    found = [(job.environment.name, job.deployment_state) for job in deployments(playground.repository)]
    assert found == [("staging", "success"), ("production", "success"), ("production", "inactive")]
    assert Environment.objects.count() == 2


def test_a_success_without_deployment_leaves_the_active_one(playground: Playground) -> None:
    runner = playground.runner()
    for workflow in (DEPLOY, WITHOUT):
        playground.run(workflow)
        playground.work(runner)
    assert states(playground) == [("deploy", "success")]


def test_a_skipped_job_deploys_nothing(playground: Playground) -> None:
    playground.run(DEPLOY.replace("runs-on", "if: false\n        runs-on"))
    assert states(playground) == []


def test_each_leg_decides_for_itself(playground: Playground) -> None:
    playground.run(
        """
        on: push
        jobs:
          deploy:
            strategy: {matrix: {where: [a, b, c]}}
            runs-on: linux
            environment: {name: "${{ matrix.where }}", deployment: "${{ matrix.where != 'b' }}"}
            steps: [{run: ./deploy}]
        """
    )
    found = sorted(job.environment.name for job in deployments(playground.repository))
    assert found == ["a", "c"]
    assert Environment.objects.count() == 3


def test_a_flag_that_is_no_boolean_fails_the_job_and_says_why(playground: Playground) -> None:
    playground.run(DEPLOY.replace("url:", "deployment: '${{ github.ref_name }}', url:"))
    job = Job.objects.get()
    assert job.conclusion == "failure"
    assert "environment.deployment must be true or false, not 'main'" in job.end_note


@pytest.mark.parametrize("mode", ["all", "failed"])
def test_a_rerun_deploys_again_and_what_it_carries_along_does_not(playground: Playground, mode: str) -> None:
    two = DEPLOY + DEPLOY.split("jobs:\n")[1].replace("deploy:", "other:", 1).replace("production", "staging")
    runner = playground.runner()
    run = playground.run(two)
    playground.work(runner, {"deploy": "failure"})
    transitions.rerun(run_id=run.pk, actor=playground.bob, mode=mode)
    playground.work(runner)
    found = [(job.name, job.attempt, job.deployment_state, job.deployed_by) for job in deployments(run.repository)]
    again = [("deploy", 2, "success", "bob")]
    if mode == "all":
        again.append(("other", 2, "success", "bob"))
    first = [("deploy", 1, "failure", "alice"), ("other", 1, "inactive" if mode == "all" else "success", "alice")]
    assert sorted(found) == sorted(again + first)


def test_those_of_other_repositories_are_not_among_them(playground: Playground) -> None:
    other = playground.make_repository(name="other")
    playground.run(DEPLOY, repository=other)
    playground.run(DEPLOY)
    assert [job.run.repository for job in deployments(other)] == [other]
    assert len(states(playground)) == 1


def test_deleting_the_environment_ends_the_list_and_keeps_the_jobs(playground: Playground) -> None:
    playground.run(DEPLOY)
    delete_environment(repository=playground.repository, name="production", actor=playground.alice)
    assert states(playground) == []
    assert Job.objects.get().environment_name == "production"
