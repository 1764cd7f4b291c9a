"""Environments: secrets and variables of their own for the jobs that name them."""

import pytest

from ci.lifecycle import settings_values as values
from ci.lifecycle.environments import create_environment, delete_environment
from ci.lifecycle.errors import InvalidInput, NotFound
from ci.models import Environment, Scope, Secret
from tests.playground import Playground, jobs_of

DEPLOY = """
    on: push
    jobs:
      deploy: {runs-on: linux, environment: Production, steps: [{run: echo}]}
      other: {runs-on: linux, steps: [{run: echo}]}
"""


def test_only_its_jobs_see_its_secrets_and_variables(playground: Playground) -> None:
    environment = create_environment(repository=playground.repository, name="production", actor=playground.alice)
    scope = Scope(repository=playground.repository, environment=environment)
    values.set_secret(scope=scope, name="KEY", value="of production", actor=playground.alice)
    values.set_variable(scope=Scope(repository=playground.repository), name="URL", value="dev", actor=playground.alice)
    values.set_variable(scope=scope, name="URL", value="live", actor=playground.alice)
    playground.run(DEPLOY)
    runner = playground.runner()
    seen = {}
    while (assigned := playground.fetch(runner)) is not None:
        seen[assigned.job.key] = assigned.payload["contexts"]
        assigned.begin().complete()
    assert seen["deploy"]["secrets"]["KEY"] == "of production"
    assert seen["deploy"]["vars"] == {"URL": "live"}
    assert "KEY" not in seen["other"]["secrets"]
    assert seen["other"]["vars"] == {"URL": "dev"}


def test_a_job_makes_the_environment_it_names(playground: Playground) -> None:
    run = playground.run(DEPLOY)
    assert jobs_of(run)["deploy"].environment == Environment.objects.get(name="Production")


def test_a_name_is_taken_without_regard_to_case(playground: Playground) -> None:
    create_environment(repository=playground.repository, name="live", actor=playground.alice)
    with pytest.raises(InvalidInput):
        create_environment(repository=playground.repository, name="LIVE", actor=playground.alice)


def test_deleting_it_deletes_its_secrets(playground: Playground) -> None:
    environment = create_environment(repository=playground.repository, name="live", actor=playground.alice)
    scope = Scope(repository=playground.repository, environment=environment)
    values.set_secret(scope=scope, name="KEY", value="x", actor=playground.alice)
    delete_environment(repository=playground.repository, name="live", actor=playground.alice)
    assert not Secret.objects.exists()
    with pytest.raises(NotFound):
        delete_environment(repository=playground.repository, name="live", actor=playground.alice)


def test_where_a_deployment_can_be_seen_is_kept(playground: Playground) -> None:
    run = playground.run(DEPLOY)
    playground.assigned().begin().complete(environment_url="https://live.example/v7")
    assert jobs_of(run)["deploy"].environment_url == "https://live.example/v7"


@pytest.mark.parametrize("url", ["javascript:alert(1)", "live.example", "https://" + "x" * 1000])
def test_what_is_no_address_is_refused_and_the_job_runs_on(playground: Playground, url: str) -> None:
    run = playground.run(DEPLOY)
    assigned = playground.assigned().begin()
    with pytest.raises(InvalidInput):
        assigned.complete(environment_url=url)
    assert jobs_of(run)["deploy"].state == "running"
