"""ask for an id token: who gets one, what it says, and who is refused."""

from __future__ import annotations

from typing import Any

import jwt
import pytest
from django.utils import timezone
from pytest_django.fixtures import Settings

from ci.lifecycle import id_tokens, signing_keys, transitions
from ci.lifecycle.environments import delete_environment
from ci.lifecycle.errors import Conflict, InvalidInput, JobEnded, NotAllowed, Unauthenticated
from ci.models import Job, Run
from tests.playground import WORKFLOW, Assigned, Playground

SERVER = "https://forge.test"
MAY = """
    name: CI
    on: [push, workflow_dispatch]
    permissions: {id-token: write, contents: read}
    jobs:
      build:
        runs-on: linux
        steps:
          - run: echo hello
"""
DEPLOY = """
    on: push
    permissions: {id-token: write}
    jobs:
      deploy:
        runs-on: linux
        environment: NAME
        steps:
          - run: echo hello
"""


@pytest.fixture(autouse=True)
def _address(settings: Settings) -> None:
    settings.SERVER_URL = SERVER


def begun(playground: Playground, workflow: str = MAY, **options: Any) -> Assigned:
    playground.run(workflow, **options)
    return playground.assigned().begin()


def asked(assigned: Assigned, *audiences: str, run_id: int | None = None, token: str | None = None) -> str:
    given = assigned.payload["id_token"]
    return id_tokens.issue(
        run_id=run_id or assigned.job.run_id, token=token or given["request_token"], audiences=audiences
    )


def verified(token: str, audience: str = f"{SERVER}/alice") -> dict[str, Any]:
    """What a verifier that trusts this server reads."""
    keys = jwt.PyJWKSet.from_dict(signing_keys.key_set())
    key = keys[jwt.get_unverified_header(token)["kid"]]
    return jwt.decode(token, key, algorithms=["RS256"], audience=audience, issuer=f"{SERVER}/api/actions")


def test_the_token_says_which_job_it_is(playground: Playground) -> None:
    assigned = begun(playground)
    run = Run.objects.get()
    before = int(timezone.now().timestamp())
    said = verified(asked(assigned))
    issued = said.pop("iat")
    assert before <= issued <= timezone.now().timestamp()
    assert (said.pop("exp") - issued, issued - said.pop("nbf")) == (600, 300)
    assert said.pop("jti")
    repository, alice = playground.repository, playground.alice
    assert said == {
        "iss": "https://forge.test/api/actions",
        "aud": "https://forge.test/alice",
        "sub": "repo:alice/widgets:ref:refs/heads/main",
        "actor": "alice",
        "actor_id": str(alice.pk),
        "base_ref": "",
        "head_ref": "",
        "event_name": "push",
        "job_workflow_ref": f"alice/widgets/{WORKFLOW}@refs/heads/main",
        "job_workflow_sha": run.sha,
        "ref": "refs/heads/main",
        "ref_protected": "false",
        "ref_type": "branch",
        "repository": "alice/widgets",
        "repository_id": str(repository.pk),
        "repository_owner": "alice",
        "repository_owner_id": str(alice.pk),
        "repository_visibility": "private",
        "run_attempt": "1",
        "run_id": str(run.pk),
        "run_number": "1",
        "runner_environment": "self-hosted",
        "sha": run.sha,
        "workflow": "CI",
        "workflow_ref": f"alice/widgets/{WORKFLOW}@refs/heads/main",
        "workflow_sha": run.sha,
    }


def test_two_tokens_of_one_job_have_ids_of_their_own(playground: Playground) -> None:
    assigned = begun(playground)
    assert verified(asked(assigned))["jti"] != verified(asked(assigned))["jti"]


def test_every_claim_is_one_that_the_discovery_document_lists(playground: Playground) -> None:
    said = verified(asked(begun(playground, DEPLOY)))
    assert set(said) <= set(id_tokens.configuration()["claims_supported"])


def test_the_audience_is_the_one_asked_for(playground: Playground) -> None:
    assigned = begun(playground)
    assert verified(asked(assigned, "sts.example"), "sts.example")["aud"] == "sts.example"
    assert verified(asked(assigned, ""))["aud"] == f"{SERVER}/alice"
    longest = "a" * 1000
    assert verified(asked(assigned, longest), longest)["aud"] == longest


@pytest.mark.parametrize("audiences", [("a", "b"), ("a" * 1001,), ("a\nb",), ("a\0",)])
def test_a_bad_audience_is_refused(playground: Playground, audiences: tuple[str, ...]) -> None:
    with pytest.raises(InvalidInput) as refused:
        asked(begun(playground), *audiences)
    assert list(refused.value.errors) == ["audience"]


@pytest.mark.parametrize(
    ("name", "subject"),
    [
        ("production", "repo:alice/widgets:environment:production"),
        ("blue/green", "repo:alice/widgets:environment:blue/green"),
        ("'a:ref:b'", "repo:alice/widgets:environment:a%3Aref%3Ab"),
        ("{name: staging, deployment: false}", "repo:alice/widgets:environment:staging"),
    ],
)
def test_the_environment_takes_the_place_of_the_ref(playground: Playground, name: str, subject: str) -> None:
    said = verified(asked(begun(playground, DEPLOY.replace("NAME", name))))
    assert said["sub"] == subject
    assert said["environment"] == subject.removeprefix("repo:alice/widgets:environment:").replace("%3A", ":")


def test_deleting_the_environment_of_a_running_job_does_not_make_it_another_subject(playground: Playground) -> None:
    assigned = begun(playground, DEPLOY)
    before = verified(asked(assigned))["sub"]
    delete_environment(repository=playground.repository, name="NAME", actor=playground.alice)
    assert verified(asked(assigned))["sub"] == before == "repo:alice/widgets:environment:NAME"


def test_a_rerun_says_its_attempt_and_keeps_its_environment(playground: Playground) -> None:
    runner = playground.runner()
    run = playground.run(DEPLOY)
    playground.work(runner, {"deploy": "failure"})
    transitions.rerun(run_id=run.pk, actor=playground.bob, mode="failed")
    said = verified(asked(playground.assigned(runner).begin()))
    assert (said["run_attempt"], said["sub"]) == ("2", "repo:alice/widgets:environment:NAME")


def test_a_job_of_a_called_workflow_names_the_file_it_stands_in(playground: Playground) -> None:
    library = playground.make_repository(name="library", private=False)
    called = """
        on: workflow_call
        jobs:
          inner:
            runs-on: linux
            steps: [{run: echo}]
    """
    pushed = playground.push({".github/workflows/inner.yml": called}, repository=library, plan=False)
    playground.push({".github/workflows/local.yml": called})
    calling = """
        on: push
        permissions: {id-token: write}
        jobs:
          a: {uses: ./.github/workflows/local.yml}
          b: {uses: Alice/Library/.github/workflows/inner.yml@main, needs: a}
    """
    runner = playground.runner()
    run = playground.run(calling)
    said = []
    for _ in range(2):
        assigned = playground.assigned(runner).begin()
        said.append(verified(asked(assigned)))
        assigned.complete()
    assert [one["job_workflow_ref"] for one in said] == [
        "alice/widgets/.github/workflows/local.yml@refs/heads/main",
        "alice/library/.github/workflows/inner.yml@refs/heads/main",
    ]
    assert [one["job_workflow_sha"] for one in said] == [run.sha, pushed.after]
    assert {one["workflow_ref"] for one in said} == {f"alice/widgets/{WORKFLOW}@refs/heads/main"}


@pytest.mark.parametrize(
    ("line", "may"),
    [
        ("", False),
        ("permissions: read-all", False),
        ("permissions: write-all", True),
        ("permissions: {contents: write}", False),
        ("permissions: {id-token: none}", False),
        ("permissions: {id-token: write}", True),
    ],
)
def test_who_may_ask(playground: Playground, line: str, may: bool) -> None:
    playground.run(MAY.replace("permissions: {id-token: write, contents: read}", line))
    payload = playground.assigned().payload
    assert (payload["id_token"] is not None) is may
    assert ("fri_" in str(payload)) is may


def test_the_request_token_is_masked_and_not_in_the_address(playground: Playground) -> None:
    payload = begun(playground).payload
    token = payload["id_token"]["request_token"]
    assert token in payload["masks"]
    assert payload["id_token"]["request_url"] == (
        f"{SERVER}/api/actions/_apis/pipelines/workflows/{payload['job']['run_id']}/idtoken?placeholder=true"
    )
    assert payload["job"]["token"] not in token


def test_a_run_that_nobody_with_write_access_caused_gets_none(playground: Playground) -> None:
    run = playground.run(MAY)
    Run.objects.filter(pk=run.pk).update(trusted=False)
    assert playground.assigned().payload["id_token"] is None


def test_a_called_workflow_gets_no_more_than_its_call(playground: Playground) -> None:
    called = """
        on: workflow_call
        jobs:
          inner:
            runs-on: linux
            steps: [{run: echo}]
    """
    playground.push({".github/workflows/local.yml": called}, plan=False)
    playground.run("on: push\njobs: {a: {uses: ./.github/workflows/local.yml, permissions: {contents: read}}}\n")
    assert playground.assigned().payload["id_token"] is None


def test_the_jobs_own_token_gets_none(playground: Playground) -> None:
    assigned = begun(playground)
    with pytest.raises(NotAllowed, match="ACTIONS_ID_TOKEN_REQUEST_TOKEN"):
        asked(assigned, token=assigned.token)


def test_a_job_without_the_permission_is_told_so(playground: Playground) -> None:
    assigned = begun(playground, MAY.replace("id-token: write, ", ""))
    with pytest.raises(NotAllowed, match="id-token: write"):
        id_tokens.issue(run_id=assigned.job.run_id, token=assigned.token)


def test_the_run_must_be_the_jobs_own(playground: Playground) -> None:
    assigned = begun(playground)
    with pytest.raises(NotAllowed, match="another run"):
        asked(assigned, run_id=playground.run().pk)


@pytest.mark.parametrize(
    "token",
    ["", "fri_", "fri_1_x", "frr_abc", "frj_unknown", "fri_{id}_" + "A" * 43, "fri_" + "9" * 18 + "_" + "A" * 43],
)
def test_a_wrong_token_proves_nothing(playground: Playground, token: str) -> None:
    assigned = begun(playground)
    with pytest.raises(Unauthenticated):
        id_tokens.issue(run_id=assigned.job.run_id, token=token.replace("{id}", str(assigned.id)))


def test_the_proof_of_one_job_does_not_fit_another(playground: Playground) -> None:
    first = begun(playground)
    playground.run(MAY)
    second = playground.assigned(playground.runner(name="beta")).begin()
    proof = first.payload["id_token"]["request_token"].split("_", 2)[2]
    with pytest.raises(Unauthenticated):
        asked(second, token=f"fri_{second.id}_{proof}")


def test_a_job_that_has_not_begun_gets_none(playground: Playground) -> None:
    playground.run(MAY)
    with pytest.raises(Conflict, match="not acknowledged"):
        asked(playground.assigned())


def test_an_ended_job_is_told_its_end(playground: Playground) -> None:
    assigned = begun(playground)
    assigned.complete("failure")
    with pytest.raises(JobEnded) as refused:
        asked(assigned)
    assert refused.value.conclusion == "failure"


def test_a_cancelled_job_gets_one_for_its_post_steps(playground: Playground) -> None:
    assigned = begun(playground)
    transitions.cancel_job(job_id=assigned.id, actor=playground.alice)
    assert verified(asked(assigned))


def test_a_replaced_assignment_proves_nothing(playground: Playground) -> None:
    playground.run(MAY)
    runner = playground.runner()
    first = playground.assigned(runner, poll_id="poll")
    second = playground.assigned(runner, poll_id="poll")
    assert first.id == second.id
    second.heartbeat()
    assert verified(asked(second))
    with pytest.raises(Unauthenticated):
        asked(first)


def test_a_job_that_went_back_to_the_queue_takes_its_token_along(playground: Playground) -> None:
    playground.run(MAY)
    assigned = playground.assigned()
    transitions.release_from_runner(job_id=assigned.id, runner_id=assigned.runner.pk, why="It was removed.")
    assert Job.objects.get().token_hash is None
    with pytest.raises(Unauthenticated):
        asked(assigned)
