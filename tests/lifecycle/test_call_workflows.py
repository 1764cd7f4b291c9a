"""Reusable workflows: a job that calls another workflow becomes that workflow's jobs."""

import pytest

from ci.lifecycle import settings_values as values
from ci.lifecycle import sweeps, tokens, transitions
from ci.lifecycle.waiting import why
from ci.models import Job, Run, Runner, Scope
from tests.playground import WORKFLOW, Playground, jobs_of, states_of

CALLED = ".github/workflows/called.yml"
CALLER = """
    name: Caller
    on: push
    jobs:
      first: {runs-on: linux, steps: [{run: echo}]}
      call:
        needs: first
        uses: ./.github/workflows/called.yml
        with: {level: high}
        secrets: inherit
      last: {needs: call, runs-on: linux, steps: [{run: echo}]}
"""
CALLEE = """
    on:
      workflow_call:
        inputs: {level: {type: string, required: true}}
        outputs: {built: {value: "${{ jobs.build.outputs.version }}"}}
    env: {WHERE: called}
    jobs:
      build: {runs-on: linux, outputs: {version: x}, steps: [{run: echo}]}
      check: {needs: build, runs-on: linux, steps: [{run: echo}]}
"""


def push(playground: Playground, caller: str = CALLER, callee: str = CALLEE) -> Run:
    playground.push({WORKFLOW: caller, CALLED: callee})
    return Run.objects.filter(workflow_path=WORKFLOW).latest("id")


def test_the_called_jobs_run_in_place_of_the_call(playground: Playground) -> None:
    run = push(playground)
    runner = playground.runner()
    assert states_of(run) == {"first": "queued", "call": "blocked", "last": "blocked"}
    playground.assigned(runner).begin().complete()
    assert states_of(run) == {
        "first": "success",
        "call": "running",
        "call / build": "queued",
        "call / check": "blocked",
        "last": "blocked",
    }
    assert playground.work(runner) == ["call / build", "call / check", "last"]
    run.refresh_from_db()
    assert run.conclusion == "success"


def test_inputs_secrets_env_and_outputs_pass(playground: Playground) -> None:
    scope = Scope(repository=playground.repository)
    values.set_secret(scope=scope, name="TOKEN", value="s3cr3t", actor=playground.alice)
    push(playground)
    runner = playground.runner()
    playground.assigned(runner).begin().complete()
    build = playground.assigned(runner)
    contexts = build.payload["contexts"]
    assert contexts["inputs"] == {"level": "high"}
    assert contexts["secrets"]["TOKEN"] == "s3cr3t"
    assert build.payload["workflow"]["env"] == {"WHERE": "called"}
    assert contexts["github"]["workflow"] == "Caller"
    build.begin().complete(outputs={"version": "7"})
    playground.assigned(runner).begin().complete()
    last = playground.assigned(runner)
    assert last.payload["contexts"]["needs"] == {"call": {"result": "success", "outputs": {"built": "7"}}}


def test_only_named_secrets_pass_without_inherit(playground: Playground) -> None:
    for name in ("A", "B"):
        values.set_secret(scope=Scope(owner=playground.alice), name=name, value=f"value {name}", actor=playground.alice)
    callee = CALLEE.replace("        inputs:", "        secrets: {mine: {required: true}}\n        inputs:")
    push(playground, CALLER.replace("secrets: inherit", "secrets: {mine: '${{ secrets.A }}'}"), callee)
    runner = playground.runner()
    playground.assigned(runner).begin().complete()
    secrets = playground.assigned(runner).payload["contexts"]["secrets"]
    assert secrets["mine"] == "value A"
    assert set(secrets) == {"mine", "GITHUB_TOKEN"}


def test_a_failure_inside_fails_the_call_and_skips_what_needs_it(playground: Playground) -> None:
    run = push(playground)
    playground.work(playground.runner(), {"call / build": "failure"})
    assert states_of(run) == {
        "first": "success",
        "call": "failure",
        "call / build": "failure",
        "call / check": "skipped",
        "last": "skipped",
    }
    run.refresh_from_db()
    assert run.conclusion == "failure"


def test_cancelling_the_call_stops_its_jobs(playground: Playground) -> None:
    run = push(playground)
    runner = playground.runner()
    playground.assigned(runner).begin().complete()
    build = playground.assigned(runner).begin()
    transitions.cancel_job(job_id=jobs_of(run)["call"].pk, actor=playground.bob)
    assert build.heartbeat().cancel == "owner"
    assert states_of(run)["call / check"] == "cancelled"
    build.complete("cancelled")
    assert states_of(run)["call"] == "cancelled"


def test_forcing_the_call_ends_its_jobs(playground: Playground) -> None:
    run = push(playground)
    runner = playground.runner()
    playground.assigned(runner).begin().complete()
    playground.assigned(runner).begin()
    transitions.cancel_job(job_id=jobs_of(run)["call"].pk, actor=playground.bob, force=True)
    assert {states_of(run)[name] for name in ("call", "call / build", "call / check")} == {"cancelled"}
    run.refresh_from_db()
    assert run.is_ended


def test_cancelling_the_run_ends_everything(playground: Playground) -> None:
    run = push(playground)
    runner = playground.runner()
    playground.assigned(runner).begin().complete()
    transitions.cancel_run(run_id=run.pk, actor=playground.bob)
    run.refresh_from_db()
    assert run.conclusion == "cancelled"
    assert states_of(run)["call"] == "cancelled"


def test_only_what_failed_inside_runs_again(playground: Playground) -> None:
    run = push(playground)
    runner = playground.runner()
    playground.work(runner, {"call / check": "failure"})
    transitions.rerun(run_id=run.pk, actor=playground.bob, mode="failed")
    assert states_of(run) == {
        "first": "success",
        "call": "running",
        "call / build": "success",
        "call / check": "queued",
        "last": "blocked",
    }
    assert playground.work(runner) == ["call / check", "last"]
    run.refresh_from_db()
    assert run.conclusion == "success"


def test_a_matrix_of_calls(playground: Playground) -> None:
    caller = CALLER.replace(
        "        with: {level: high}\n",
        "        strategy: {matrix: {level: [low, high]}}\n        with: {level: '${{ matrix.level }}'}\n",
    )
    run = push(playground, caller)
    names = playground.work(playground.runner())
    assert {"call (low) / build", "call (high) / check"} <= set(names)
    assert Job.objects.filter(run=run, parent__isnull=False).count() == 4


def test_a_workflow_of_another_repository(playground: Playground) -> None:
    library = playground.make_repository(name="library")
    playground.push({CALLED: CALLEE}, repository=library)
    run = push(
        playground, CALLER.replace("./.github", "alice/library/.github").replace("called.yml", "called.yml@main")
    )
    assert playground.work(playground.runner()) == ["first", "call / build", "call / check", "last"]
    run.refresh_from_db()
    assert run.conclusion == "success"


def test_a_private_workflow_of_another_owner_is_not_found(playground: Playground) -> None:
    library = playground.make_repository(name="library")
    library.owner = playground.mallory
    library.save()
    playground.push({CALLED: CALLEE}, repository=library)
    run = push(
        playground, CALLER.replace("./.github", "mallory/library/.github").replace("called.yml", "called.yml@main")
    )
    assert run.conclusion == "startup_failure"


def test_a_private_workflow_is_not_found_from_a_public_repository(playground: Playground) -> None:
    library = playground.make_repository(name="library")
    playground.push({CALLED: CALLEE}, repository=library)
    playground.repository.private = False
    playground.repository.save()
    caller = CALLER.replace("./.github", "alice/library/.github").replace("called.yml", "called.yml@main")
    assert push(playground, caller).conclusion == "startup_failure"
    library.private = False
    library.save()
    assert push(playground, caller + "# once more\n").conclusion is None


@pytest.mark.parametrize(
    ("permissions", "may_write"),
    [("", False), ("permissions: {contents: write}", True), ("permissions: {issues: write}", False)],
)
def test_the_token_in_a_call_has_at_most_what_the_call_has(
    playground: Playground, permissions: str, may_write: bool
) -> None:
    caller = CALLER.replace("        secrets: inherit\n", f"        secrets: inherit\n        {permissions}\n")
    callee = CALLEE.replace("build: {", "build: {permissions: {contents: write}, ") if may_write else CALLEE
    push(playground, caller, callee)
    runner = playground.runner()
    playground.assigned(runner).begin().complete()
    actor = tokens.actor_of_job_token(playground.assigned(runner).token)
    assert actor is not None
    assert actor.may_write is may_write


@pytest.mark.parametrize(("permissions", "expected"), [("contents: write", "write"), ("issues: write", "none")])
def test_a_called_workflow_that_names_no_permissions_has_those_of_its_call(
    playground: Playground, permissions: str, expected: str
) -> None:
    push(playground, CALLER.replace("secrets: inherit", f"permissions: {{{permissions}}}"))
    runner = playground.runner()
    playground.assigned(runner).begin().complete()
    assert tokens.token_permissions(playground.assigned(runner).job)["contents"] == expected


@pytest.mark.parametrize("expression", ["secrets.GITHUB_TOKEN", "github.token"])
def test_a_call_may_hand_on_the_token_under_another_name(playground: Playground, expression: str) -> None:
    callee = CALLEE.replace("        inputs:", "        secrets: {mine: {required: true}}\n        inputs:")
    push(playground, CALLER.replace("secrets: inherit", f"secrets: {{mine: '${{{{ {expression} }}}}'}}"), callee)
    runner = playground.runner()
    playground.assigned(runner).begin().complete()
    build = playground.assigned(runner)
    assert build.payload["contexts"]["secrets"]["mine"] == build.token


def test_a_call_says_what_it_waits_for(playground: Playground) -> None:
    run = push(playground)
    playground.assigned().begin().complete()
    assert why(jobs_of(run)["call"]) == "Waits for the jobs of the workflow that it calls."


def test_the_concurrency_of_a_called_workflow_holds_the_call(playground: Playground) -> None:
    callee = CALLEE + "    concurrency: shared\n"
    first, second = push(playground, callee=callee), push(playground, callee=callee + "    # changed\n")
    runner = playground.runner()
    for _ in range(2):
        playground.assigned(runner).begin().complete()
    sweeps.settle_groups()
    assert states_of(first)["call"] == "running"
    assert states_of(second)["call"] == "blocked"
    assert jobs_of(second)["call"].hold == "called_group"


def test_a_called_job_in_the_group_of_its_call_is_cancelled(playground: Playground) -> None:
    callee = CALLEE.replace("check: {", "check: {concurrency: shared, ")
    run = push(playground, callee=callee + "    concurrency: shared\n")
    runner = playground.runner()
    playground.assigned(runner).begin().complete()
    sweeps.settle_groups()
    playground.assigned(runner).begin().complete()
    assert states_of(run)["call / check"] == "cancelled"
    assert "call holds its concurrency group" in jobs_of(run)["call / check"].end_note
    assert states_of(run)["call"] == "cancelled"


OWN_GROUP = CALLER.replace("        secrets: inherit\n", "        secrets: inherit\n        concurrency: own\n")
IN_SHARED = """
    on: push
    concurrency: shared
    jobs:
      other: {runs-on: linux, steps: [{run: echo}]}
"""


def test_a_call_is_in_its_own_group_and_in_that_of_what_it_calls(playground: Playground) -> None:
    runner = playground.runner()
    other = playground.run(IN_SHARED)
    run = push(playground, OWN_GROUP, CALLEE + "    concurrency: shared\n")
    first = playground.assigned(runner)
    playground.assigned(playground.runner(name="beta")).begin().complete()
    sweeps.settle_groups()
    call = jobs_of(run)["call"]
    assert (call.hold, str(call.concurrency_group), str(call.called_group)) == ("called_group", "own", "shared")
    assert why(call) == "Waits for the concurrency group shared of the workflow that it calls."
    # Meanwhile it keeps its own group, and another one waits for that.
    behind = push(playground, OWN_GROUP + "# again\n", CALLEE)
    playground.work(Runner.objects.get(name="beta"))
    sweeps.settle_groups()
    assert jobs_of(behind)["call"].hold == "concurrency"
    first.begin().complete()
    assert Run.objects.get(pk=other.pk).conclusion == "success"
    sweeps.settle_groups()
    assert jobs_of(run)["call"].hold == "called"
    playground.work(runner)
    sweeps.settle_groups()
    assert states_of(run)["call"] == "success"
    assert jobs_of(behind)["call"].hold == "called"


def test_a_newer_call_supersedes_one_that_waits_for_the_group_of_what_it_calls(playground: Playground) -> None:
    holder = playground.run(IN_SHARED)
    runner, beta = playground.runner(), playground.runner(name="beta")
    playground.assigned(runner).begin()
    calls = [push(playground, CALLER + f"# {turn}\n", CALLEE + "    concurrency: shared\n") for turn in range(2)]
    playground.work(beta)
    sweeps.settle_groups()
    assert [states_of(run)["call"] for run in calls] == ["cancelled", "blocked"]
    assert jobs_of(calls[0])["call"].cancel_reason == "superseded"
    assert Run.objects.get(pk=holder.pk).state == "running"


def test_a_call_whose_own_group_is_that_of_what_it_calls_is_cancelled(playground: Playground) -> None:
    run = push(playground, OWN_GROUP, CALLEE + "    concurrency: own\n")
    playground.assigned().begin().complete()
    sweeps.settle_groups()
    call = jobs_of(run)["call"]
    assert call.conclusion == "cancelled"
    assert call.end_note.startswith("The job that calls it holds its concurrency group and waits for it")


def failed_in_a_group(playground: Playground) -> tuple[Run, Run]:
    """A run in whose call one job failed, and one whose call holds the same concurrency group now."""
    caller = CALLER.replace("        secrets: inherit\n", "        concurrency: shared\n")
    runner = playground.runner()
    first = push(playground, caller)
    playground.assigned(runner).begin().complete()
    sweeps.settle_groups()
    playground.work(runner, {"call / check": "failure"})
    second = push(playground, caller + "# once more\n")
    playground.assigned(runner).begin().complete()
    sweeps.settle_groups()
    assert states_of(second)["call"] == "running"
    transitions.rerun(run_id=first.pk, actor=playground.alice, mode="failed")
    sweeps.settle_groups()
    return first, second


def test_a_call_re_run_in_part_waits_for_its_concurrency_group(playground: Playground) -> None:
    first, second = failed_in_a_group(playground)
    runner = Runner.objects.get()
    assert jobs_of(first)["call"].hold == "concurrency"
    assert (states_of(first)["call / build"], states_of(first)["call / check"]) == ("success", "blocked")
    assert playground.work(runner) == ["call / build", "call / check", "last"]
    sweeps.settle_groups()
    assert states_of(second)["call"] == "success"
    assert playground.work(runner) == ["call / check", "last"]
    first.refresh_from_db()
    assert (first.attempt, first.conclusion) == (2, "success")


def test_a_call_cancelled_while_it_waits_takes_its_jobs_along(playground: Playground) -> None:
    first, _ = failed_in_a_group(playground)
    transitions.cancel_job(job_id=jobs_of(first)["call"].pk, actor=playground.alice)
    assert states_of(first) == {
        "first": "success",
        "call": "cancelled",
        "call / build": "success",
        "call / check": "cancelled",
        "last": "skipped",
    }
    first.refresh_from_db()
    assert first.conclusion == "cancelled"


def test_a_job_knows_the_file_and_the_commit_it_stands_in(playground: Playground) -> None:
    library = playground.make_repository(name="library", private=False)
    callee = "on: workflow_call\njobs: {inner: {runs-on: linux, steps: [{run: echo}]}}"
    pushed = playground.push({CALLED: callee}, repository=library, plan=False)
    caller = f"""
        on: push
        jobs:
          own: {{runs-on: linux, steps: [{{run: echo}}]}}
          call: {{needs: own, uses: Alice/Library/{CALLED}@main}}
    """
    run = push(playground, caller)
    playground.push({CALLED: callee + " # later"}, repository=library, plan=False)
    runner = playground.runner()
    own = playground.assigned(runner).begin()
    own.complete()
    inner = playground.assigned(runner)
    assert own.payload["contexts"]["job"] == {
        "check_run_id": own.job.pk,
        "workflow_ref": f"alice/widgets/{WORKFLOW}@refs/heads/main",
        "workflow_sha": run.sha,
        "workflow_repository": "alice/widgets",
        "workflow_file_path": WORKFLOW,
    }
    assert inner.payload["contexts"]["job"] == {
        "check_run_id": inner.job.pk,
        "workflow_ref": f"alice/library/{CALLED}@refs/heads/main",
        "workflow_sha": pushed.after,
        "workflow_repository": "alice/library",
        "workflow_file_path": CALLED,
    }
