"""Do the values of a job mean on the runner what they mean on GitHub?"""

from __future__ import annotations

import json

import pytest

from tests.runner.conftest import Runners
from tests.runner.fake_server import FakeServer
from tests.runner.repositories import Repository


def test_env_with_and_outputs_may_be_one_expression_each(server: FakeServer, runners: Runners) -> None:
    insert = "${{ insert }}"
    assert server.repositories is not None
    Repository(server.repositories, "octo/actions").commit(
        {
            "action.yml": "inputs: {who: {default: nobody}, n: {default: 7}, empty: {}}\nruns:\n  using: composite\n"
            "  steps:\n    - {shell: bash, run: \"echo '${{ toJSON(inputs) }}' | tr -d ' \\\\n'\"}\n"
        }
    )
    job = server.add(
        [
            {
                "id": "o",
                "env": {insert: '${{ fromJSON(\'{"C": 3, "A": true}\') }}', "D": "${{ env.A }}-${{ env.WF }}"},
                "run": 'echo "[$WF|$A|$B|$C|$D]"; echo x=1 >> $GITHUB_OUTPUT',
            },
            {"name": "action", "uses": "octo/actions@main", "with": {insert: '${{ fromJSON(\'{"WHO": "mona"}\') }}'}},
        ],
        workflow={"env": {insert: '${{ fromJSON(\'{"WF": "w"}\') }}'}},
        env={insert: '${{ fromJSON(\'{"A": "job", "B": 1.50}\') }}'},
        outputs={insert: "${{ fromJSON(format('{{\"y\": {0}}}', steps.o.outputs.x)) }}", "z": "${{ steps.o.outcome }}"},
    )
    runners.run(job)
    assert job.conclusion == "success", job.text
    # A step's env is evaluated before any of it counts.
    assert "[w|true|1.5|3|job-w]" in job.text
    assert '{"who":"mona","n":"7","empty":""}' in "".join(job.lines_of("action"))
    assert job.outputs == {"y": "1", "z": "success"}


@pytest.mark.parametrize("what", ["env", "with"])
def test_a_list_where_a_text_belongs_fails_the_step_with_a_reason(
    server: FakeServer, runners: Runners, what: str
) -> None:
    step = {"name": "x", "uses": "actions/checkout@v4", what: {"ref": "${{ fromJSON('[1]') }}"}}
    job = runners.run(server.add([{"name": "never", "if": "false", "run": "true"}, step]))
    assert job.conclusions()["x"] == "failure"
    assert any("A sequence was not expected as the value of 'ref'" in line for line in job.lines_of("x"))


def test_names_of_variables_have_a_case_and_other_names_have_none(server: FakeServer, runners: Runners) -> None:
    job = server.add(
        [
            {"id": "Out", "run": "echo Key=value >> $GITHUB_OUTPUT"},
            {
                "name": "look",
                "env": {"low": "step", "LOW": "other"},
                "run": "echo '${{ env.low }}|${{ env.LOW }}|${{ env.Low }}|${{ ENV.mine }}|${{ env.MINE }}|"
                "${{ steps.OUT.outputs.KEY }}|${{ secrets.github_TOKEN == GitHub.Token }}|${{ matrix.OS }}|"
                '${{ vars.v }}|${{ inputs.FLAG }}\'; echo "$low$LOW"',
            },
        ],
        env={"mine": "job"},
        contexts={"matrix": {"os": "l"}, "vars": {"V": "v"}, "inputs": {"flag": False}},
    )
    runners.run(job)
    assert "step|other||job||value|true|l|v|false" in job.lines_of("look")
    assert "stepother" in job.lines_of("look")


def test_a_jobs_run_defaults_replace_the_workflows_and_are_evaluated_once(server: FakeServer, runners: Runners) -> None:
    job = server.add(
        [
            {"name": "default", "run": '[ -n "$BASH" ] && pwd'},
            {
                "name": "own",
                "shell": "python",
                "working-directory": "${{ env.UP }}",
                "run": "import os; print(os.getcwd())",
            },
        ],
        env={"UP": "..", "SHELL_TO_USE": "bash"},
        workflow={"defaults": {"run": {"shell": "python", "working-directory": "absent"}}},
        defaults={"run": {"shell": "${{ env.SHELL_TO_USE }}"}},
        contexts={"inputs": {"folder": "${{ github.token }}"}},
    )
    nested = server.add(
        [{"name": "x", "run": "true"}],
        defaults={"run": {"working-directory": "${{ inputs.folder }}"}},
        contexts={"inputs": {"folder": "$" + "{{ format('ran-{0}', 'twice') }}"}},
    )
    runners.run(job)
    runners.run(nested)
    workspace = str(runners.work / "octo/hello/hello")
    assert workspace in job.lines_of("default")
    assert str(runners.work / "octo/hello") in job.lines_of("own")
    assert nested.conclusions()["x"] == "failure" and "ran-twice" not in nested.text


def test_continue_on_error_and_timeouts_are_expressions(server: FakeServer, runners: Runners) -> None:
    job = server.add(
        [
            {"name": "text false", "if": "always()", "continue-on-error": "${{ inputs.no }}", "run": "false"},
            {"name": "text true", "if": "always()", "continue-on-error": "${{ inputs.yes }}", "run": "false"},
            {"name": "null", "if": "always()", "continue-on-error": "${{ inputs.absent }}", "run": "false"},
            {"name": "nonsense", "if": "always()", "continue-on-error": "${{ 'maybe' }}", "run": "false"},
            {"name": "broken if", "continue-on-error": True, "if": "always() && fromJSON('{')", "run": "true"},
            {"name": "no limit", "if": "always()", "timeout-minutes": "${{ inputs.absent }}", "run": "true"},
            {"name": "bad limit", "if": "always()", "timeout-minutes": "${{ inputs.yes }}", "run": "true"},
        ],
        contexts={"inputs": {"no": "false", "yes": "true"}},
    )
    runners.run(job)
    found = job.conclusions()
    assert [found[name] for name in ("text false", "text true", "null", "nonsense", "broken if")] == [
        "failure", "success", "failure", "failure", "failure",
    ]  # fmt: skip
    assert (found["no limit"], found["bad limit"]) == ("success", "success")
    assert any("continue-on-error must be true or false, not 'maybe'" in line for line in job.lines_of("nonsense"))
    assert any("timeout-minutes must be a number" in line for line in job.lines_of("bad limit"))


def test_names_are_shown_as_far_as_they_can_be_evaluated(server: FakeServer, runners: Runners) -> None:
    job = server.add(
        [
            {"id": "v", "name": "Build ${{ matrix.os }}", "run": "echo v=1.2 >> $GITHUB_OUTPUT"},
            {"name": "Release ${{ steps.v.outputs.v }} ${{ env.TO }}", "env": {"TO": "here"}, "run": "true"},
            {"run": "echo ${{ github.ref_name }}\ntrue"},
            {"name": "Odd ${{ fromJSON('{') }}", "run": "true"},
            {"name": "Secret ${{ secrets.S }}", "if": "false", "run": "true"},
        ],
        contexts={"matrix": {"os": "linux"}},
        secrets={"S": "hush-hush"},
    )
    runners.run(job)
    assert list(job.conclusions()) == [
        "Set up job", "Build linux", "Release 1.2 here", "Run echo main", "Odd ${{ fromJSON('{') }}", "Secret ***",
        "Complete job",
    ]  # fmt: skip


def test_the_environment_files_are_in_the_github_context(server: FakeServer, runners: Runners) -> None:
    job = server.add(
        [
            {
                "id": "w",
                "name": "write",
                "run": "echo a=1 >> ${{ github.env }}; echo o=2 >> '${{ github.output }}'\n"
                "echo /x/y >> ${{ github.path }}\n"
                "echo '# sum' >> ${{ github.step_summary }}; test '${{ github.state }}' = $GITHUB_STATE",
            },
            {"name": "read", "run": 'echo "$a|${{ steps.w.outputs.o }}|${PATH%%:*}"'},
        ]
    )
    runners.run(job)
    assert "1|2|/x/y" in job.lines_of("read")
    assert job.step("write")["summary"] == "# sum\n"


def test_the_runners_own_variables_stay_and_ci_may_change(server: FakeServer, runners: Runners) -> None:
    job = server.add(
        [
            {"name": "set", "run": "echo GITHUB_SHA=forged >> $GITHUB_ENV; echo RUNNER_OS=Amiga >> $GITHUB_ENV"},
            {
                "name": "see",
                "env": {"CI": "false", "GITHUB_REF": "forged"},
                "run": 'echo "$GITHUB_SHA|$RUNNER_OS|$CI|$GITHUB_REF|$GITHUB_ACTIONS"',
            },
            {"name": "ci", "run": "echo CI=$CI"},
        ]
    )
    runners.run(job)
    assert f"{'a' * 40}|Linux|false|refs/heads/main|true" in job.lines_of("see")
    assert "CI=true" in job.lines_of("ci")
    assert any(
        "cannot change what the runner sets itself: GITHUB_SHA, RUNNER_OS" in line for line in job.lines_of("set")
    )


def test_contexts_are_complete(server: FakeServer, runners: Runners) -> None:
    names = ("github", "env", "job", "steps", "runner", "strategy", "matrix", "needs", "vars", "inputs")
    text = "\n".join(f"{name}: ${{{{ toJSON({name}) }}}}," for name in names)
    job = server.add(
        [
            {"id": "soft", "continue-on-error": True, "run": "echo k=v >> $GITHUB_OUTPUT; exit 1"},
            {"id": "skipped", "if": "false", "run": "true"},
            {"id": "look", "run": "cat > c.py <<'E'\nnull, true, false = None, True, False\nimport json\n"
             f"print('DUMP' + json.dumps(dict({text.replace(': ', '=')})))\nE\npython3 c.py"},
        ]
    )  # fmt: skip
    runners.run(job)
    found = json.loads(next(line for _, line in job.log if line.startswith("DUMP{")).removeprefix("DUMP"))
    assert found["job"] == {"status": "success"} and found["matrix"] is None and found["needs"] == {}
    assert found["strategy"] == {"fail-fast": True, "job-index": 0, "job-total": 1, "max-parallel": 1}
    assert found["steps"] == {
        "soft": {"outputs": {"k": "v"}, "outcome": "failure", "conclusion": "success"},
        "skipped": {"outputs": {}, "outcome": "skipped", "conclusion": "skipped"},
    }
    assert set(found["runner"]) == {"name", "os", "arch", "temp", "tool_cache", "workspace", "environment"}
    work = runners.work
    github = found["github"]
    assert (github["job"], github["action"], github["workspace"]) == ("build", "look", str(work / "octo/hello/hello"))
    assert github["event_path"] == str(work / "_temp/_github_workflow/event.json")
    assert {"workflow_ref", "workflow_sha", "action_path", "action_ref", "action_repository", "path", "env"} <= set(
        github
    )


# GitHub docs, "Variables reference", default environment variables.
DOCUMENTED = """
CI GITHUB_ACTION GITHUB_ACTIONS GITHUB_ACTION_REPOSITORY GITHUB_ACTOR GITHUB_ACTOR_ID GITHUB_API_URL GITHUB_BASE_REF
GITHUB_ENV GITHUB_EVENT_NAME GITHUB_EVENT_PATH GITHUB_GRAPHQL_URL GITHUB_HEAD_REF GITHUB_JOB GITHUB_OUTPUT GITHUB_PATH
GITHUB_REF GITHUB_REF_NAME GITHUB_REF_PROTECTED GITHUB_REF_TYPE GITHUB_REPOSITORY GITHUB_REPOSITORY_ID
GITHUB_REPOSITORY_OWNER GITHUB_REPOSITORY_OWNER_ID GITHUB_RETENTION_DAYS GITHUB_RUN_ATTEMPT GITHUB_RUN_ID
GITHUB_RUN_NUMBER GITHUB_SERVER_URL GITHUB_SHA GITHUB_STEP_SUMMARY GITHUB_TRIGGERING_ACTOR GITHUB_WORKFLOW
GITHUB_WORKFLOW_REF GITHUB_WORKFLOW_SHA GITHUB_WORKSPACE RUNNER_ARCH RUNNER_DEBUG RUNNER_ENVIRONMENT RUNNER_NAME
RUNNER_OS RUNNER_TEMP RUNNER_TOOL_CACHE
"""


def test_every_documented_variable_is_set(server: FakeServer, runners: Runners) -> None:
    names = " ".join(DOCUMENTED.split())
    script = f'for name in {names}; do test -n "${{!name+set}}" || echo "missing $name"; done'
    job = runners.run(server.add([{"name": "look", "run": script}], contexts={"vars": {"ACTIONS_STEP_DEBUG": "true"}}))
    assert job.conclusion == "success"
    assert not [line for line in job.lines_of("look") if line.startswith("missing ")]


@pytest.mark.parametrize(
    ("url", "reported"),
    [
        ("https://live.example/${{ steps.o.outputs.x }}", "https://live.example/1"),
        ("javascript:alert(1)", ""),
        ("https://live.example/${{ secrets.PASSWORD }}", ""),
    ],
)
def test_the_url_of_an_environment_is_reported_at_the_end(
    server: FakeServer, runners: Runners, url: str, reported: str
) -> None:
    job = server.add(
        [{"id": "o", "run": "echo x=1 >> $GITHUB_OUTPUT"}],
        environment={"name": "live", "url": url},
        contexts={"secrets": {"PASSWORD": "hunter2hunter2"}},
    )
    runners.run(job)
    assert job.conclusion == "success", job.text
    assert job.environment_url == reported
