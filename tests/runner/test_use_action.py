"""How do composite and JavaScript actions run, local and from a repository?"""

from __future__ import annotations

import shutil

import pytest

from tests.runner.conftest import Runners
from tests.runner.fake_server import FakeServer
from tests.runner.repositories import Repository

needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed here")

GREET = """
name: Greet
inputs:
  who: {description: whom, default: world}
  flag: {default: yes}
outputs:
  said: {value: "${{ steps.say.outputs.said }}"}
runs:
  using: composite
  steps:
    - id: say
      shell: bash
      env: {INNER: "${{ inputs.flag }}"}
      run: |
        echo "hello ${{ inputs.who }} $INNER $OUTER from $(basename "$GITHUB_ACTION_PATH") [${{ secrets }}]"
        echo "said=hi ${{ inputs.who }}" >> "$GITHUB_OUTPUT"
        echo "FROM_INNER=1" >> "$GITHUB_ENV"
""".replace(" [${{ secrets }}]", "")

SCRIPT = """
const fs = require('fs');
console.log('%(stage)s', process.env.INPUT_WORD, process.env['INPUT_TWO_WORDS'], process.env.STATE_seen || '-');
fs.appendFileSync(process.env.GITHUB_STATE, 'seen=' + (process.env.STATE_seen || '') + '%(stage)s\\n');
fs.appendFileSync(process.env.GITHUB_OUTPUT, 'out=%(stage)s\\n');
if ('%(stage)s' === process.env.INPUT_FAIL) process.exit(3);
"""


def node_action(name: str, *, extra: str = "") -> dict[str, str]:
    files = {f"{name}/{stage}.js": SCRIPT % {"stage": stage} for stage in ("pre", "main", "post")}
    files[f"{name}/action.yml"] = (
        f"name: {name}\ninputs:\n  word: {{default: '${{{{ github.actor }}}}'}}\n"
        "  two words: {default: '2'}\n  fail: {}\n"
        f"runs: {{using: node20, main: main.js, pre: pre.js, post: post.js{extra}}}\n"
    )
    return files


def local(files: dict[str, str]) -> dict[str, str]:
    """A first step that writes the files of local actions."""
    lines = []
    for name, text in files.items():
        lines.append(f"mkdir -p $(dirname {name}); cat > {name} <<'END_OF_FILE'\n{text}\nEND_OF_FILE")
    return {"name": "write", "run": "\n".join(lines).replace("${{", "$\x00{{").replace("\x00", "${{ '' }}")}


@pytest.fixture
def repository(server: FakeServer) -> Repository:
    assert server.repositories is not None
    return Repository(server.repositories, "octo/actions")


def test_a_composite_action_has_inputs_outputs_and_contexts_of_its_own(
    server: FakeServer, runners: Runners, repository: Repository
) -> None:
    repository.commit({"greet/action.yml": GREET}, tag="v1")
    job = server.add(
        [
            {
                "id": "say",
                "name": "greet",
                "uses": "octo/actions/greet@v1",
                "with": {"WHO": "mona"},
                "env": {"OUTER": "o"},
            },
            {"name": "after", "run": "echo '${{ steps.say.outputs.said }}' $FROM_INNER ${{ steps.say.conclusion }}"},
        ]
    )
    runners.run(job)
    assert job.conclusion == "success", job.text
    assert "hello mona yes o from greet" in job.lines_of("greet")
    assert "hi mona 1 success" in job.lines_of("after")
    assert any("Download action repository 'octo/actions@v1'" in line for line in job.lines_of("Set up job"))
    assert f"x-access-token:{job.token}" in server.git_tokens


def test_a_composite_action_fails_skips_and_always_runs_as_a_job_does(
    server: FakeServer, runners: Runners, repository: Repository
) -> None:
    repository.commit(
        {
            "outer/action.yml": "runs:\n  using: composite\n  steps:\n    - uses: octo/actions/inner@main\n"
            "    - {run: echo not-this, shell: bash}\n"
            "    - {if: always(), run: 'echo but-this ${{ github.action_status }}', shell: bash}\n",
            "inner/action.yml": "runs:\n  using: composite\n  steps:\n    - {run: exit 5, shell: sh}\n",
        }
    )
    job = runners.run(
        server.add([{"name": "outer", "uses": "octo/actions/outer@main"}, {"name": "next", "run": "true"}])
    )
    assert job.conclusions()["outer"] == "failure" and job.conclusions()["next"] == "skipped"
    lines = job.lines_of("outer")
    assert "but-this failure" in lines and "not-this" not in lines
    assert "##[error]Process completed with exit code 5." in lines


def test_actions_nested_too_deeply_are_refused(server: FakeServer, runners: Runners, repository: Repository) -> None:
    repository.commit({"action.yml": "runs:\n  using: composite\n  steps:\n    - uses: octo/actions@main\n"})
    job = runners.run(server.add([{"name": "x", "uses": "octo/actions@main"}]))
    assert job.conclusion == "failure" and "nested more than 10 deep" in job.text


@needs_node
def test_a_javascript_action_runs_pre_main_and_post_with_state(
    server: FakeServer, runners: Runners, repository: Repository
) -> None:
    repository.commit({**node_action("one"), **node_action("two")})
    job = server.add(
        [
            {"id": "a", "name": "first", "uses": "octo/actions/one@main", "with": {"word": "w"}},
            {"id": "b", "name": "second", "uses": "octo/actions/two@main"},
            {"name": "see", "run": "echo ${{ steps.a.outputs.out }}"},
        ]
    )
    runners.run(job)
    assert job.conclusion == "success", job.text
    assert list(job.conclusions()) == [
        "Set up job", "Pre first", "Pre second", "first", "second", "see", "Post second", "Post first", "Complete job",
    ]  # fmt: skip
    assert "pre w 2 -" in job.lines_of("Pre first")
    assert "main w 2 pre" in job.lines_of("first")
    assert "post w 2 premain" in job.lines_of("Post first")
    assert "main mona 2 pre" in job.lines_of("second")
    assert "main" in job.lines_of("see")


@needs_node
def test_post_runs_after_a_failed_main_and_post_if_decides(
    server: FakeServer, runners: Runners, repository: Repository
) -> None:
    repository.commit(
        {**node_action("one", extra=", post-if: failure()"), **node_action("two", extra=", post-if: success()")}
    )
    job = server.add(
        [
            {"name": "ok", "uses": "octo/actions/two@main"},
            {"name": "bad", "uses": "octo/actions/one@main", "with": {"fail": "main"}},
        ]
    )
    runners.run(job)
    found = job.conclusions()
    assert (found["bad"], found["Post bad"], found["Post ok"]) == ("failure", "success", "skipped")


@needs_node
def test_post_steps_of_actions_inside_a_composite_run_as_its_post_step(
    server: FakeServer, runners: Runners, repository: Repository
) -> None:
    repository.commit(
        {
            **node_action("one"),
            "wrap/action.yml": "inputs: {w: {}}\nruns:\n  using: composite\n  steps:\n"
            "    - uses: octo/actions/one@main\n      with: {word: '${{ inputs.w }}'}\n",
        }
    )
    job = runners.run(server.add([{"name": "wrap", "uses": "octo/actions/wrap@main", "with": {"w": "deep"}}]))
    assert job.conclusion == "success", job.text
    assert "pre deep 2 -" in job.lines_of("Pre wrap")
    assert "main deep 2 pre" in job.lines_of("wrap")
    assert "post deep 2 premain" in job.lines_of("Post wrap")


@needs_node
def test_local_actions_are_found_in_the_workspace(server: FakeServer, runners: Runners) -> None:
    job = server.add(
        [local({**node_action("act")}), {"name": "js", "uses": "./act"}, {"name": "none", "uses": "./nothing"}]
    )
    runners.run(job)
    assert "main mona 2 -" in job.lines_of("js")
    assert job.conclusions()["Post js"] == "success"
    assert "Can't find 'action.yml'" in "\n".join(job.lines_of("none"))


def test_an_action_comes_from_the_first_source_that_has_it(server: FakeServer, runners: Runners) -> None:
    assert server.repositories is not None
    other = FakeServer(server.repositories / "elsewhere")
    other.start()
    try:
        repository = Repository(server.repositories / "elsewhere", "vendor/tool")
        repository.commit(
            {"action.yml": "runs:\n  using: composite\n  steps:\n    - {run: echo vendored, shell: bash}\n"}
        )
        other.public.add("vendor/tool")
        job = server.add([{"name": "x", "uses": "vendor/tool@main"}], sources=["http://127.0.0.1:9", other.url])
        runners.run(job)
        assert "vendored" in job.lines_of("x")
        assert set(other.git_tokens) == {""}, "the job's token was sent to another server"
    finally:
        other.stop()


@pytest.mark.parametrize(
    ("uses", "message"),
    [
        ("octo/absent@v1", "Unable to resolve action `octo/absent@v1`"),
        ("docker://alpine:3", "container action"),
        ("octo/actions@--upload-pack=x", "Expected format"),
        ("octo/actions/../../x@main", "Expected format"),
        ("nonsense", "Expected format"),
    ],
)
def test_an_action_that_cannot_be_had_ends_the_job_in_its_set_up(
    server: FakeServer, runners: Runners, uses: str, message: str
) -> None:
    job = runners.run(server.add([{"name": "first", "run": "echo ran"}, {"name": "x", "uses": uses}]))
    assert job.conclusion == "failure" and job.conclusions()["Set up job"] == "failure"
    assert message in "\n".join(job.lines_of("Set up job"))
    assert job.conclusions()["first"] == "skipped"


WRAP = """
inputs:
  who: {default: '${{ github.actor }} on ${{ runner.os }}'}
  shell: {default: bash}
outputs:
  both: {value: '${{ inputs.who }}/${{ env.LEVEL }}/${{ steps.set.outputs.x }}'}
  none: {}
runs:
  using: composite
  steps:
    - {id: set, shell: '${{ inputs.shell }}', run: 'echo x=$LEVEL >> $GITHUB_OUTPUT; echo LEVEL=file >> $GITHUB_ENV'}
    - {if: "env.LEVEL == 'step'", shell: bash, run: 'echo "kept ${{ env.LEVEL }} $LEVEL $JOB"'}
    - {env: {LEVEL: inner}, shell: bash, run: 'echo "own ${{ env.LEVEL }} $LEVEL ${{ steps.outer.outcome }}."'}
"""


def test_a_composite_sees_the_env_around_it_and_its_own_on_top(
    server: FakeServer, runners: Runners, repository: Repository
) -> None:
    repository.commit({"action.yml": WRAP})
    job = server.add(
        [
            {"id": "outer", "run": "true"},
            {"id": "wrap", "name": "wrap", "uses": "octo/actions@main", "env": {"LEVEL": "step"}},
            {"name": "after", "run": 'echo "${{ steps.wrap.outputs.both }}|${{ steps.wrap.outputs.none }}|$LEVEL"'},
        ],
        env={"LEVEL": "job", "JOB": "j"},
    )
    runners.run(job)
    assert job.conclusion == "success", job.text
    assert "kept step step j" in job.lines_of("wrap") and "own inner inner ." in job.lines_of("wrap")
    assert "mona on Linux/step/step||file" in job.lines_of("after")


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        ("using: composite", "must have a list 'runs.steps'"),
        ("using: composite\n  steps:\n    - {name: Foo}\n    - {uses: a/b@c}", "Step 1 of"),
        ("using: composite\n  steps:\n    - {uses: Foo/Bar}", "Actual 'Foo/Bar'"),
        ("using: composite\n  steps:\n    - {run: 'true'}", "Required property is missing: shell"),
    ],
)
def test_a_local_action_that_makes_no_sense_fails_its_step_with_a_reason(
    server: FakeServer, runners: Runners, runs: str, message: str
) -> None:
    job = server.add([local({"action.yml": f"runs:\n  {runs}\n"}), {"name": "x", "uses": "./"}])
    runners.run(job)
    assert job.conclusions()["x"] == "failure" and message in "\n".join(job.lines_of("x"))


COMPOSITE = "runs:\n  using: composite\n  steps:\n"


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (
            COMPOSITE + "    - {shell: bash, run: 'echo ${{ secrets.KEY }}'}",
            "Step 1, run: Unrecognized named-value: 'secr",
        ),
        (
            COMPOSITE + "    - {shell: bash, run: a, env: {A: '${{ vars.A }}'}}",
            "Step 1, env.A: Unrecognized named-value",
        ),
        (
            COMPOSITE + "    - {uses: ./b, with: {a: '${{ needs.x.result }}'}}",
            "Step 1, with.a: Unrecognized named-value: '",
        ),
        (
            COMPOSITE + "    - {shell: bash, run: a, if: 'secrets.KEY'}",
            "Step 1, if: Unrecognized named-value: 'secrets'",
        ),
        (COMPOSITE + "    - {shell: bash, run: a, if: '1 =='}", "Step 1, if: Unexpected end of expression"),
        (
            COMPOSITE + "    - {shell: bash, run: a}\noutputs: {o: {value: '${{ hashFiles(1) }}'}}",
            "Its output o: Unrecog",
        ),
        (
            "inputs: {i: {default: '${{ secrets.KEY }}'}}\nruns: {using: node20, main: m.js}",
            "The default of its input i",
        ),
    ],
)
def test_an_action_may_not_read_what_only_a_job_has(
    server: FakeServer, runners: Runners, action: str, message: str
) -> None:
    steps = [local({"action.yml": action}), {"name": "x", "uses": "./"}]
    job = runners.run(server.add(steps, contexts={"vars": {"A": "b"}}, secrets={"KEY": "hidden"}))
    assert job.conclusions()["x"] == "failure" and message in "\n".join(job.lines_of("x"))


def test_a_condition_that_breaks_ends_a_composite_action_before_its_always_steps(
    server: FakeServer, runners: Runners
) -> None:
    action = COMPOSITE + (
        "    - {if: \"fromJSON('{')\", shell: bash, run: echo not-this}\n"
        "    - {if: always(), shell: bash, run: echo nor-that}\n"
    )
    steps = [
        local({"action.yml": action}),
        {"id": "x", "name": "x", "uses": "./"},
        {"name": "y", "if": "always()", "run": "echo '${{ steps.x.outcome }}'"},
    ]
    job = runners.run(server.add(steps))
    lines = "\n".join(job.lines_of("x"))
    assert "The `if` condition 'fromJSON('{')' cannot be evaluated" in lines
    assert "not-this" not in lines and "nor-that" not in lines
    assert job.conclusions()["x"] == "failure" and "failure" in job.lines_of("y")


def test_a_step_env_that_breaks_does_not_keep_always_steps_of_a_composite_action_from_running(
    server: FakeServer, runners: Runners
) -> None:
    action = COMPOSITE + (
        "    - {env: {A: \"${{ fromJSON('{') }}\"}, shell: bash, run: echo not-this}\n"
        "    - {if: always(), shell: bash, run: echo but-that}\n"
    )
    job = runners.run(server.add([local({"action.yml": action}), {"name": "x", "uses": "./"}]))
    assert "but-that" in job.lines_of("x") and "not-this" not in job.lines_of("x")
    assert job.conclusions()["x"] == "failure"


def test_a_dollar_names_the_repository_of_the_file_with_the_step(
    server: FakeServer, runners: Runners, repository: Repository
) -> None:
    assert server.repositories is not None
    say = (
        COMPOSITE
        + "    - {shell: bash, run: 'echo said by %s ${{ job.workflow_repository }} ${{ job.check_run_id }}'}\n"
    )
    other = Repository(server.repositories, "octo/other")
    other.commit({"say/action.yml": say % "other", "ask/action.yml": COMPOSITE + "    - uses: $/say\n"}, tag="v1")
    commit = repository.commit({"say/action.yml": say % "actions"})
    identity = {"workflow_repository": "octo/actions", "workflow_sha": commit, "check_run_id": 7}
    steps = [{"name": "mine", "uses": "$/say"}, {"name": "theirs", "uses": "octo/other/ask@v1"}]
    job = runners.run(server.add(steps, contexts={"job": identity}))
    assert "said by actions octo/actions 7" in job.lines_of("mine"), job.text
    assert "said by other octo/actions 7" in job.lines_of("theirs")
