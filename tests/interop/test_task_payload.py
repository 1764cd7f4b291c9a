"""What does a task hold? One job, decided as far as the server decides, and the contexts that its runner reads."""

import pytest
import yaml

from ci.interop import task_payload, workflow_payload
from ci.interop.protocol import runner_pb2 as pb
from ci.lifecycle import settings_values, transitions
from ci.models import Job, Run, Scope
from tests.playground import WORKFLOW

pytestmark = pytest.mark.django_db

MATRIX = """
    name: CI
    run-name: By ${{ github.actor }}
    on: push
    env: {TOP: one}
    defaults: {run: {shell: bash}}
    permissions: {contents: read}
    concurrency: group
    jobs:
      build:
        strategy:
          fail-fast: false
          matrix:
            os: [ubuntu]
            version: ["1.20"]
            plain: [1.5]
            deep: [{a: ["x"]}]
        name: Build ${{ matrix.os }}
        runs-on: "${{ matrix.os == 'ubuntu' && 'linux' }}"
        if: github.ref == 'refs/heads/main'
        timeout-minutes: 7
        continue-on-error: true
        environment: {name: staging, url: "https://example.org"}
        env: {JOB: "${{ strategy.job-total }}"}
        outputs: {digest: "${{ steps.one.outputs.digest }}"}
        container: {image: "node:22"}
        services: {db: {image: "postgres:17"}}
        defaults: {run: {working-directory: src}}
        permissions: {contents: write}
        steps:
          - id: one
            name: "no: 0o14"
            if: ${{ !cancelled() }}
            run: |
              echo yes
              echo "é ${{ matrix.version }}"
            env: {N: 1e3, B: true}
            continue-on-error: true
            timeout-minutes: 3
          - uses: actions/checkout@v4
            with: {depth: 0, path: "0123e5"}
"""
JOB_KEYS = {
    "needs", "if", "strategy", "name", "runs-on", "timeout-minutes", "cancel-timeout-minutes", "continue-on-error",
    "container", "services", "env", "environment", "permissions", "concurrency", "outputs", "defaults", "steps",
}  # fmt: skip
CALLING = """
    on: push
    jobs:
      call:
        uses: ./.github/workflows/called.yml
        with: {greeting: "it's me", loud: false, times: 3}
        secrets: {PASS: "${{ secrets.KEY }}"}
"""
CALLED = """
    on:
      workflow_call:
        inputs:
          greeting: {type: string}
          loud: {type: boolean, default: true}
          times: {type: number}
        secrets: {PASS: {required: true}}
    env: {WHAT: "${{ inputs.greeting }}"}
    jobs:
      inner:
        runs-on: linux
        steps:
          - if: inputs.loud || inputs.times > 2
            run: echo ${{ inputs.greeting }} ${{ toJSON(inputs) }}
"""


def task_of(playground, *labels):
    """The next task, as it goes over the wire."""
    assigned = transitions.claim(runner_id=playground.runner(*labels).pk, poll_id="poll")
    assert assigned is not None
    built = task_payload.build(assigned.job, assigned.token)
    return pb.Task.FromString(built.SerializeToString()), assigned


def workflow_of(task):
    return yaml.safe_load(task.workflow_payload)


@pytest.fixture
def leg(playground):
    playground.run(MATRIX)
    return task_of(playground)


def test_the_workflow_has_exactly_one_job_and_no_unknown_key(leg):
    document = workflow_of(leg[0])
    assert set(document) == {"name", "run-name", "on", "env", "defaults", "permissions", "jobs"}
    assert (document["name"], document["on"]) == ("CI", "push")
    [(key, job)] = document["jobs"].items()
    assert key == "build"
    assert set(job) <= JOB_KEYS
    assert "environment" not in job  # it is the server's to decide


@pytest.mark.parametrize(
    ("written", "sent"),
    [
        ("read-all", "read-all"),
        ("{}", {}),
        ("{contents: write, id-token: write}", {"contents": "write", "id-token": "write"}),
        ("{contents: read, models: read}", {"contents": "read"}),  # which a Forgejo runner would refuse to know
    ],
)
def test_the_name_of_the_run_and_its_permissions_stay(playground, written, sent):
    text = "on: push\nrun-name: By ${{ github.actor }}\npermissions: " + written
    playground.run(text + "\njobs: {one: {runs-on: linux, steps: [{run: echo}]}}\n")
    document = workflow_of(task_of(playground)[0])
    assert document["permissions"] == sent
    assert document["run-name"].startswith("By ")


def test_the_matrix_is_one_leg_of_lists_with_one_element(leg):
    job = workflow_of(leg[0])["jobs"]["build"]
    assert job["strategy"] == {
        "matrix": {"os": ["ubuntu"], "version": ["1.20"], "plain": [1.5], "deep": [{"a": ["x"]}]}
    }
    assert job["runs-on"] == ["linux"]
    assert job["name"] == "Build ubuntu"


def test_what_the_server_has_decided_is_not_asked_again(leg):
    job = workflow_of(leg[0])["jobs"]["build"]
    assert job["if"] == "always()"
    assert job["timeout-minutes"] == 8  # one more: the server ends the job in time, and says why
    assert "continue-on-error" not in job


def test_what_the_runner_evaluates_comes_as_it_is_written(leg):
    job = workflow_of(leg[0])["jobs"]["build"]
    assert job["env"] == {"JOB": "${{ 1 }}"}
    assert job["outputs"] == {"digest": "${{ steps.one.outputs.digest }}"}
    assert job["container"] == {"image": "node:22"}
    assert job["services"] == {"db": {"image": "postgres:17"}}
    assert job["defaults"] == {"run": {"working-directory": "src"}}
    first, second = job["steps"]
    assert first["name"] == "no: 0o14"
    assert first["if"] == "${{ !cancelled() }}"
    assert first["run"] == 'echo yes\necho "é ${{ matrix.version }}"\n'
    assert (first["continue-on-error"], first["timeout-minutes"]) == (True, 3)
    assert second == {"uses": "actions/checkout@v4", "with": {"depth": "0", "path": "0123e5"}}


def test_every_text_is_quoted_so_that_no_reader_takes_it_for_something_else(leg):
    text = leg[0].workflow_payload.decode()
    assert '"path": "0123e5"' in text
    assert '"name": "no: 0o14"' in text
    assert '"version":\n' in text
    assert '- "1.20"' in text


def test_the_context_has_texts_for_all_but_the_event_and_one_truth_value(leg):
    task, assigned = leg
    context = task.context
    run = Run.objects.get()
    values = {name: value.WhichOneof("kind") for name, value in context.fields.items()}
    assert {name for name, kind in values.items() if kind != "string_value"} == {"event", "ref_protected"}
    assert context["run_id"] == str(run.pk)
    assert (context["job"], context["token"]) == ("build", assigned.token)
    assert (context["sha"], context["ref"], context["repository"]) == (run.sha, run.ref, str(run.repository))
    assert context["event"]["ref"] == "refs/heads/main"
    assert context["gitea_default_actions_url"] == "https://github.com"
    assert context["forgejo_server_version"] == "15.0.0+forge-ci"
    assert context["gitea_runtime_token"].count(".") == 2
    assert "actions_id_token_request_url" not in context.fields


def test_a_job_that_may_have_id_tokens_is_told_how_to_ask(playground):
    playground.run(
        "on: push\npermissions: {id-token: write}\njobs:\n  a:\n    runs-on: linux\n    steps: [{run: echo}]\n"
    )
    task, _ = task_of(playground)
    context = task.context
    assert task.secrets["ACTIONS_ID_TOKEN_REQUEST_TOKEN"] == context["actions_id_token_request_token"]
    for prefix in ("forgejo_", ""):
        assert context[f"{prefix}actions_id_token_request_url"].endswith("/idtoken?placeholder=true")
        assert context[f"{prefix}actions_id_token_request_token"].startswith("fri_")


def test_secrets_come_with_the_token_under_its_three_names_and_variables_flat(playground):
    settings_values.set_secret(
        scope=Scope(repository=playground.repository), name="KEY", value="hidden", actor=playground.alice
    )
    settings_values.set_variable(scope=Scope(), name="LEVEL", value="high", actor=playground.operator)
    playground.run()
    task, assigned = task_of(playground)
    names = ("GITHUB_TOKEN", "GITEA_TOKEN", "FORGEJO_TOKEN")
    shown = {"ACTIONS_RUNTIME_TOKEN": task.context["gitea_runtime_token"]}
    assert dict(task.secrets) == {"KEY": "hidden", **dict.fromkeys(names, assigned.token), **shown}
    assert dict(task.vars) == {"LEVEL": "high"}


def test_an_untrusted_run_has_the_tokens_alone(playground):
    settings_values.set_secret(
        scope=Scope(repository=playground.repository), name="KEY", value="hidden", actor=playground.alice
    )
    playground.run()
    Run.objects.update(trusted=False)
    names = {"GITHUB_TOKEN", "GITEA_TOKEN", "FORGEJO_TOKEN", "ACTIONS_RUNTIME_TOKEN"}
    assert set(task_of(playground)[0].secrets) == names


def test_needs_come_with_results_and_outputs_a_tolerated_failure_as_success(playground):
    playground.run(
        """
        on: push
        jobs:
          good: {runs-on: linux, steps: [{run: echo}]}
          bad: {runs-on: linux, continue-on-error: true, steps: [{run: "false"}]}
          worse: {runs-on: linux, steps: [{run: "false"}]}
          never: {runs-on: linux, if: false, steps: [{run: echo}]}
          last: {runs-on: end, needs: [good, bad, worse, never], if: always(), steps: [{run: echo}]}
        """
    )
    runner = playground.runner(name="first")
    for _ in range(3):
        assigned = playground.assigned(runner).begin()
        good = assigned.job.key == "good"
        assigned.complete("success" if good else "failure", outputs={"found": "x"} if good else {})
    task, _ = task_of(playground, "end")
    assert {key: need.result for key, need in task.needs.items()} == {
        "good": pb.RESULT_SUCCESS,
        "bad": pb.RESULT_SUCCESS,
        "worse": pb.RESULT_FAILURE,
        "never": pb.RESULT_SKIPPED,
    }
    assert dict(task.needs["good"].outputs) == {"found": "x"}
    assert workflow_of(task)["jobs"]["last"]["needs"] == ["good", "bad", "worse", "never"]


def test_inputs_of_a_called_workflow_stand_in_its_expressions_with_their_types(playground):
    settings_values.set_secret(
        scope=Scope(repository=playground.repository), name="KEY", value="hidden", actor=playground.alice
    )
    playground.push({WORKFLOW: CALLING, ".github/workflows/called.yml": CALLED})
    task, _ = task_of(playground)
    document = workflow_of(task)
    assert document["env"] == {"WHAT": "${{ 'it''s me' }}"}
    [step] = document["jobs"]["inner"]["steps"]
    assert step["if"] == "false || 3 > 2"
    assert step["run"].startswith("echo ${{ 'it''s me' }} ${{ toJSON(fromJSON('{")
    assert task.secrets["PASS"] == "hidden"
    assert "KEY" not in task.secrets


def test_text_that_an_event_brought_in_is_not_evaluated_by_the_runner(playground):
    playground.run(
        """
        on: push
        jobs:
          a:
            strategy: {matrix: {title: ["${{ github.event.head_commit.message }}"]}}
            name: "${{ matrix.title }}"
            runs-on: linux
            steps: [{run: echo}]
        """,
        message="${{ secrets.KEY }}",
    )
    job = workflow_of(task_of(playground)[0])["jobs"]["a"]
    assert job["strategy"] == {"matrix": {"title": ["${{ '${{' }} secrets.KEY }}"]}}
    assert job["name"] == "${{ '${{' }} secrets.KEY }}"


def test_a_step_that_these_runners_do_not_know_makes_the_job_unfit(playground):
    playground.run()
    job = Job.objects.get()
    job.definition["steps"] = [{"run": "echo"}, {"name": "both", "parallel": []}]
    with pytest.raises(workflow_payload.UnfitJob, match="Step 2 has neither run nor uses but parallel"):
        workflow_payload.workflow_of(job)
