"""What does a job that calls another workflow hold, give and get?"""

import json
import textwrap
from typing import Any

import pytest

from ci.workflow import Options, PlanError, Problem, Workflow, WorkflowErrors, calls, legs, load, plan, references
from ci.workflow.expressions import ExpressionError
from ci.workflow.uses import resolve
from ci.workflow.workflow import Event

from .support import PATH

CALLEE = """
name: Deploy
on:
  workflow_call:
    inputs:
      where: {type: string, required: true}
      count: {type: number, default: 3}
      dry: {type: boolean}
      ref: {type: string, default: '${{ github.ref }}'}
    secrets:
      key: {required: true}
      spare:
    outputs:
      url: {value: '${{ jobs.ship.outputs.url }}'}
env: {A: b}
jobs:
  build: {runs-on: x}
  ship:
    needs: build
    runs-on: x
    name: Ship to ${{ inputs.where }}
    outputs: {url: u}
"""
LOCAL = ".github/workflows/deploy.yml"
REMOTE = "octo/tools/.github/workflows/deploy.yml@v1"


def caller(job: str) -> str:
    return "on: push\njobs:\n  deploy:\n" + textwrap.indent(textwrap.dedent(job).strip(), "    ") + "\n"


def opened(job: str, **files: str) -> Workflow:
    return load(PATH, {PATH: caller(job), LOCAL: CALLEE, REMOTE: CALLEE, **files})


def refused(
    job: str, files: dict[str, str | bytes | None] | None = None, options: Options | None = None
) -> tuple[Problem, ...]:
    with pytest.raises(WorkflowErrors) as error:
        load(PATH, {PATH: caller(job), LOCAL: CALLEE, **(files or {})}, options=options or Options())
    return error.value.problems


def only(job: str, files: dict[str, str | bytes | None] | None = None, options: Options | None = None) -> str:
    (problem,) = refused(job, files, options)
    return str(problem)


GOOD = """
uses: ./.github/workflows/deploy.yml
with: {where: here}
secrets: {key: '${{ secrets.K }}'}
"""


@pytest.mark.parametrize("uses", ["./.github/workflows/deploy.yml", "$/.github/workflows/deploy.yml", REMOTE])
def test_a_call_holds_what_it_calls_as_plain_json(uses: str) -> None:
    job = opened(GOOD.replace("./.github/workflows/deploy.yml", uses)).jobs["deploy"]
    assert json.loads(json.dumps(job)) == job
    called = job["called"]
    assert called["name"] == "Deploy"
    assert called["env"] == {"A": "b"}
    assert list(called["jobs"]) == ["build", "ship"]
    assert called["jobs"]["ship"]["needs"] == ["build"]
    remote = uses == REMOTE
    assert (called["repository"], called["ref"]) == (("octo/tools", "v1") if remote else (None, None))
    assert called["path"] == LOCAL


def test_a_local_call_of_a_called_remote_file_is_of_that_repository_and_version() -> None:
    outer = "on: workflow_call\njobs:\n  a:\n    uses: ./.github/workflows/inner.yml\n"
    inner = "on: workflow_call\njobs: {b: {runs-on: x}}\n"
    files = {
        PATH: caller("uses: octo/tools/.github/workflows/outer.yml@v2"),
        "octo/tools/.github/workflows/outer.yml@v2": outer,
        "octo/tools/.github/workflows/inner.yml@v2": inner,
        ".github/workflows/inner.yml": "no workflow",
    }
    called = load(PATH, files).jobs["deploy"]["called"]["jobs"]["a"]["called"]
    assert called["key"] == "octo/tools/.github/workflows/inner.yml@v2"
    assert called["repository"] == "octo/tools"


def test_the_files_that_a_file_calls_are_listed_even_when_it_is_broken() -> None:
    text = f"jobs:\n  a: {{uses: ./x.yml}}\n  b: {{uses: '{REMOTE}', wrong: 1}}\n  c: {{uses: ./x.yml}}\n  d: 5\n"
    assert references(text) == ("./x.yml", REMOTE)
    assert references("a: [") == references(b"\xff") == references("- x") == ()


def test_a_reference_tells_where_its_file_is() -> None:
    remote = resolve(REMOTE)
    assert (remote.repository, remote.path, remote.ref) == ("octo/tools", LOCAL, "v1")
    assert resolve("./a.yml", remote).key == "octo/tools/a.yml@v1"
    assert resolve("./a.yml").key == "a.yml"


@pytest.mark.parametrize(
    "uses", ["./a.yml@v1", "a/b.yml", "a/b@v1", "a//c.yml@v1", "./../x.yml", "a/b/../c.yml@v1", "x.yml", "./"]
)
def test_it_refuses_a_reference_to_no_file(uses: str) -> None:
    assert "Invalid workflow reference" in only(f"uses: {uses}")


def test_it_refuses_a_file_that_is_not_there() -> None:
    assert only("uses: ./nowhere.yml").startswith(f"{PATH} (Line: 4, Col: 11): The workflow './nowhere.yml' was not")
    assert "was not found" in only("uses: a/b/c.yml@v1", {"a/b/c.yml@v1": None})
    with pytest.raises(WorkflowErrors):
        load(PATH, {PATH: caller("uses: ./nowhere.yml")}, options=Options(require_called=True))


def test_a_file_alone_is_judged_by_itself_and_its_calls_stay_open() -> None:
    workflow = load(PATH, {PATH: caller("uses: ./nowhere.yml")})
    assert "called" not in workflow.jobs["deploy"]
    (job,) = plan(workflow, Event("push", {})).jobs
    with pytest.raises(PlanError, match="was not found"):
        expand(job.definition)


def test_it_refuses_a_file_that_may_not_be_called() -> None:
    found = only("uses: ./b.yml", {"b.yml": "name: b\non: push\njobs: {a: {runs-on: x}}\n"})
    assert found == (
        f"{PATH} (Line: 4, Col: 11): Error from called workflow b.yml (Line: 2, Col: 5): "
        "workflow_call key is not defined in the referenced workflow. Add it to 'on:'"
    )


@pytest.mark.parametrize("on", ["workflow_call", "[push, workflow_call]", "{push: , workflow_call: }"])
def test_it_takes_every_form_of_the_trigger(on: str) -> None:
    files = {PATH: caller("uses: ./b.yml"), "b.yml": f"on: {on}\njobs: {{a: {{runs-on: x}}}}\n"}
    assert "called" in load(PATH, files).jobs["deploy"]


def test_a_problem_of_a_called_file_is_reported_where_it_is_called() -> None:
    found = only("uses: ./b.yml", {"b.yml": "on: workflow_call\njobs: {a: {runs-on: x, wrong: 1}}\n"})
    assert found.startswith(
        f"{PATH} (Line: 4, Col: 11): Error from called workflow b.yml (Line: 2, Col: 24): Unexpected value 'wrong'"
    )


@pytest.mark.parametrize(
    ("job", "place", "text"),
    [
        ("uses: $X\nsecrets: {key: k}", (4, 11), "Input where is required, but not provided while calling."),
        ("uses: $X\nwith: {where: w}", (4, 11), "Secret key is required, but not provided while calling."),
        (
            "uses: $X\nwith: {where: w, other: 1}\nsecrets: inherit",
            (5, 29),
            "Invalid input, other is not defined in the referenced workflow.",
        ),
        (
            "uses: $X\nwith: {where: w}\nsecrets: {key: k, other: 1}",
            (6, 30),
            "Invalid secret, other is not defined in the referenced workflow.",
        ),
        ("uses: $X\nwith: {where: w, dry: 'true'}\nsecrets: inherit", (5, 27), "Unexpected value 'true'"),
        ("uses: $X\nwith: {where: w, count: many}\nsecrets: inherit", (5, 29), "Unexpected value 'many'"),
    ],
)
def test_it_refuses_a_call_that_does_not_fit(job: str, place: tuple[int, int], text: str) -> None:
    (problem,) = refused(job.replace("$X", f"./{LOCAL}"))
    assert (problem.line, problem.column) == place
    assert problem.message.startswith(text)


def test_it_refuses_a_default_of_another_type_in_a_called_file() -> None:
    text = "on: {workflow_call: {inputs: {n: {type: number, default: x}}}}\njobs: {a: {runs-on: x}}\n"
    assert "b.yml (Line: 1, Col: 58): Unexpected value 'x'" in only("uses: ./b.yml", {"b.yml": text})


def chain(length: int) -> dict[str, str | bytes | None]:
    files: dict[str, str | bytes | None] = {
        f"f{n}.yml": f"on: workflow_call\njobs: {{a: {{uses: ./f{n + 1}.yml}}}}\n" for n in range(1, length)
    }
    return {**files, f"f{length}.yml": "on: workflow_call\njobs: {a: {runs-on: x}}\n"}


def test_calls_nest_ten_levels_deep() -> None:
    assert opened("uses: ./f1.yml", **chain(10))  # type: ignore[arg-type]
    assert "Nested reusable workflow depth exceeded 10." in only("uses: ./f1.yml", chain(11))


def test_it_refuses_a_circle_of_calls() -> None:
    files: dict[str, str | bytes | None] = {
        "a.yml": "on: workflow_call\njobs: {x: {uses: ./b.yml}}\n",
        "b.yml": "on: workflow_call\njobs: {x: {uses: ./a.yml}}\n",
    }
    assert "may not call themselves: '.github/workflows/ci.yml' calls 'a.yml' calls 'b.yml' calls 'a.yml'" in only(
        "uses: ./a.yml", files
    )


def test_at_most_fifty_files_are_called() -> None:
    def wide(count: int) -> dict[str, str]:
        jobs = "".join(f"  j{n}: {{uses: ./w{n}.yml}}\n" for n in range(count))
        leaf = "on: workflow_call\njobs: {a: {runs-on: x}}\n"
        return {PATH: f"on: push\njobs:\n{jobs}", **{f"w{n}.yml": leaf for n in range(count)}}

    assert len(load(PATH, wide(50)).jobs) == 50
    with pytest.raises(WorkflowErrors, match="More than 50 workflows are called"):
        load(PATH, wide(51))


def test_a_tree_of_calls_that_grows_beyond_a_thousand_jobs_is_refused_soon() -> None:
    jobs = "".join(f"  j{n}: {{uses: ./NEXT}}\n" for n in range(9))
    files: dict[str, str | bytes | None] = {
        f"t{n}.yml": f"on: workflow_call\njobs:\n{jobs}".replace("NEXT", f"t{n + 1}.yml") for n in range(1, 9)
    }
    files["t9.yml"] = "on: workflow_call\njobs: {a: {runs-on: x}}\n"
    assert any("more than 1000 jobs" in problem.message for problem in refused("uses: ./t1.yml", files))


def test_a_called_workflow_may_not_ask_for_more_than_its_caller_has() -> None:
    text = "on: workflow_call\njobs: {a: {name: Job A, permissions: {contents: write, issues: read}, runs-on: x}}\n"
    found = only("permissions: {contents: read}\nuses: ./b.yml", {"b.yml": text})
    assert found == (
        f"{PATH} (Line: 3, Col: 3): Error calling workflow './b.yml'. The nested job 'Job A' is requesting "
        "'contents: write, issues: read', but is only allowed 'contents: read, issues: none'."
    )
    assert opened("uses: ./b.yml", **{"b.yml": text})
    assert "only allowed" in only("uses: ./b.yml", {"b.yml": text}, Options(permissions_policy="LimitedRead"))


def expand(definition: dict[str, Any], *, github: dict[str, Any] | None = None) -> tuple[legs.Leg, ...]:
    contexts = {"github": github or {}, "inputs": {}, "vars": {"V": "v"}, "needs": {}}
    return legs.expand(definition, contexts=contexts, ancestors={}, cancelled=False, key="deploy").legs


def test_a_leg_gives_typed_inputs_with_defaults_and_raw_secrets() -> None:
    job = """
    strategy: {matrix: {p: [a, b]}}
    uses: ./.github/workflows/deploy.yml
    with: {WHERE: '${{ matrix.p }}-${{ vars.V }}', dry: '${{ matrix.p == ''a'' }}'}
    secrets: {key: '${{ secrets.K }}'}
    """
    first, second = expand(opened(job).jobs["deploy"], github={"ref": "refs/heads/main"})
    assert first.call is not None and second.call is not None
    assert first.call.inputs == {"where": "a-v", "count": 3, "dry": True, "ref": "refs/heads/main"}
    assert second.call.inputs["dry"] is False
    assert first.call.secrets == {"key": "${{ secrets.K }}"}
    assert (first.labels, first.name) == ((), "deploy (a)")
    assert expand(opened(GOOD.replace("{key: '${{ secrets.K }}'}", "inherit")).jobs["deploy"])[0].call == calls.Call(
        {"where": "here", "count": 3, "dry": False, "ref": ""}, "inherit"
    )


def test_an_input_that_turns_out_to_be_of_another_type_stops_the_job() -> None:
    job = GOOD.replace("{where: here}", "{where: here, dry: '${{ vars.V }}'}")
    with pytest.raises(PlanError, match="input dry of the called workflow is a boolean, but it is given 'v'"):
        expand(opened(job).jobs["deploy"])


def test_secrets_are_evaluated_where_they_are_known_and_empty_ones_left_out() -> None:
    raw = {"key": "${{ secrets.K }}-x", "spare": "${{ secrets.none }}"}
    assert calls.call_secrets(raw, {"secrets": {"K": "k"}}) == {"key": "k-x"}
    with pytest.raises(ExpressionError):
        calls.call_secrets({"key": "${{ nothing.K }}"}, {"secrets": {}})


def test_the_called_jobs_are_planned_with_the_callers_event_and_the_given_inputs() -> None:
    called = opened(GOOD).jobs["deploy"]["called"]
    build, ship = calls.plan_call(called, github={"event": {"x": 1}}, inputs={"where": "here"}, vars={})
    assert (build.key, build.level, ship.level, ship.needs) == ("build", 0, 1, ("build",))
    assert calls.shown_name("deploy", ship.name) == "deploy / Ship to here"
    assert len(calls.shown_name("x" * 490, "y" * 90)) == calls.MAX_SHOWN


def test_outputs_come_from_the_called_jobs() -> None:
    called = opened(GOOD).jobs["deploy"]["called"]
    jobs = {"ship": {"result": "success", "outputs": {"url": "http://u"}}}
    assert calls.outputs(called, contexts={"github": {}, "inputs": {}, "vars": {}, "jobs": jobs}) == {"url": "http://u"}
    assert calls.outputs(called, contexts={"github": {}, "inputs": {}, "vars": {}, "jobs": {}}) == {"url": ""}


def test_a_called_workflow_has_a_concurrency_of_its_own() -> None:
    text = "on: workflow_call\nconcurrency: g-${{ inputs.x }}\njobs: {a: {runs-on: x}}\n"
    called = opened("uses: ./b.yml", **{"b.yml": text}).jobs["deploy"]["called"]
    group = calls.concurrency(called, contexts={"github": {}, "inputs": {"x": 1}, "vars": {}})
    assert group is not None and group.group == "g-1"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[",
        "- a",
        b"\xff\xfe",
        "on: workflow_call",
        "a: &a [*a]",
        "x" * 2_000_000,
        "on: {workflow_call: 5}\njobs: 3",
    ],
)
def test_a_hostile_called_file_is_one_problem_of_the_call(text: str | bytes) -> None:
    problems = refused("uses: ./b.yml", {"b.yml": text})
    assert all(problem.message.startswith("Error from called workflow b.yml") for problem in problems)
    assert {problem.line for problem in problems} == {4}
