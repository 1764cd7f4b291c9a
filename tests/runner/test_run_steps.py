"""What can a step do, and what does it see?"""

from __future__ import annotations

import json
import shutil

import pytest

from tests.runner.conftest import Runners
from tests.runner.fake_server import FakeServer


def test_steps_hand_on_outputs_environment_path_and_summary(server: FakeServer, runners: Runners) -> None:
    job = server.add(
        [
            {
                "id": "one",
                "run": 'echo "value=4 2" >> "$GITHUB_OUTPUT"\n'
                'printf "text<<EOF\\nfirst\\nsecond\\nEOF\\n" >> "$GITHUB_ENV"\n'
                'mkdir tools; printf "#!/bin/sh\\necho from-tool\\n" > tools/mytool; chmod +x tools/mytool\n'
                'echo "$PWD/tools" >> "$GITHUB_PATH"\n'
                'echo "# Done" >> "$GITHUB_STEP_SUMMARY"',
            },
            {
                "name": "Use ${{ steps.one.outputs.value }}",
                "run": 'mytool; echo "[$text]"; echo "${{ env.text }}" | wc -l',
            },
        ],
        outputs={
            "answer": "${{ steps.one.outputs.value }}",
            "leak": "x${{ secrets.PASSWORD }}",
            "empty": "${{ steps.none.outputs.value }}",
        },
        secrets={"PASSWORD": "hunter2hunter2"},
    )
    runners.run(job)
    assert job.conclusion == "success", job.text
    lines = job.lines_of("Use 4 2")
    assert "from-tool" in lines and "[first" in lines and "second]" in lines and "2" in lines
    assert job.outputs == {"answer": "4 2"}
    assert "Skip output 'leak' since it may contain secret." in job.text
    assert "Set output 'answer'" in job.text and "output 'empty'" not in job.text
    assert next(step["summary"] for step in job.steps.values() if "summary" in step) == "# Done\n"


def test_if_continue_on_error_and_status_functions_follow_github(server: FakeServer, runners: Runners) -> None:
    job = server.add(
        [
            {"id": "soft", "name": "soft", "run": "exit 3", "continue-on-error": True},
            {"name": "after soft", "run": "echo ${{ steps.soft.outcome }}/${{ steps.soft.conclusion }}"},
            {"name": "own env", "if": "env.GO == 'yes'", "env": {"GO": "yes"}, "run": "true"},
            {"name": "false", "if": "${{ false }}", "run": "true"},
            {"name": "hard", "run": "exit 4"},
            {"name": "skipped", "run": "true"},
            {"name": "failure", "if": "failure()", "run": "echo ${{ job.status }}"},
            {"name": "always", "if": "${{ always() }}", "run": "true"},
            {"name": "cancelled", "if": "cancelled()", "run": "true"},
        ]
    )
    runners.run(job)
    assert job.conclusion == "failure"
    found = job.conclusions()
    assert [found[name] for name in ("soft", "after soft", "own env", "false", "hard", "skipped")] == [
        "success", "success", "success", "skipped", "failure", "skipped",
    ]  # fmt: skip
    assert [found[name] for name in ("failure", "always", "cancelled")] == ["success", "success", "skipped"]
    assert "failure/success" in job.lines_of("after soft")
    assert "failure" in job.lines_of("failure")
    assert "##[error]Process completed with exit code 4." in job.lines_of("hard")
    assert {"level": "error", "message": "Process completed with exit code 4."} in job.step("hard")["annotations"]


def test_shells_defaults_and_working_directories_apply(server: FakeServer, runners: Runners) -> None:
    job = server.add(
        [
            {"name": "default", "run": "pwd; echo $0; false | true; echo survived", "working-directory": "."},
            {"name": "make", "run": "mkdir -p sub/deep", "working-directory": "."},
            {"name": "bash", "shell": "bash", "run": "false | true\necho not-reached"},
            {"name": "sh", "if": "always()", "shell": "sh", "run": "pwd"},
            {"name": "python", "if": "always()", "shell": "python", "run": "import os\nprint('py', os.getcwd())"},
            {"name": "custom", "if": "always()", "shell": "bash -x {0}", "run": "echo traced"},
            {"name": "wrong", "if": "always()", "shell": "fishy", "run": "echo"},
            {"name": "missing", "if": "always()", "shell": "nosuchshell {0}", "run": "echo"},
            {"name": "nowhere", "if": "always()", "working-directory": "absent", "run": "echo"},
        ],
        workflow={"defaults": {"run": {"working-directory": "other"}}},
        defaults={"run": {"working-directory": "${{ 'sub' }}"}},
    )
    runners.run(job)
    workspace = runners.work / "octo" / "hello" / "hello"
    assert str(workspace) in job.lines_of("default") and "survived" in job.lines_of("default")
    assert "not-reached" not in job.lines_of("bash") and job.conclusions()["bash"] == "failure"
    assert f"{workspace}/sub" in job.lines_of("sh")
    assert f"py {workspace}/sub" in job.lines_of("python")
    assert "+ echo traced" in job.lines_of("custom")
    assert any("Invalid shell option 'fishy'" in line for line in job.lines_of("wrong"))
    assert any("nosuchshell: command not found" in line for line in job.lines_of("missing"))
    assert any("No such file or directory" in line for line in job.lines_of("nowhere"))


def test_contexts_and_default_variables_are_githubs(server: FakeServer, runners: Runners) -> None:
    job = server.add(
        [
            {
                "id": "look",
                "env": {"STEP": "${{ env.JOB }}-step", "COUNT": 3},
                "run": "echo '${{ toJSON(runner) }}' > runner.json; env | sort; cat $GITHUB_EVENT_PATH\n"
                "echo '${{ github.workspace }}|${{ github.event.ref }}|${{ matrix.v }}|${{ needs.a.outputs.x }}|"
                "${{ vars.V }}|${{ inputs.flag }}|${{ strategy.job-index }}|"
                "${{ secrets.GITHUB_TOKEN == github.token }}|${{ job.status }}'",
            }
        ],
        workflow={"env": {"WF": "wf-${{ github.ref_name }}", "BOTH": "workflow"}},
        env={"JOB": "${{ matrix.v }}!", "BOTH": "job"},
        contexts={
            "matrix": {"v": 3.11},
            "needs": {"a": {"result": "success", "outputs": {"x": "X"}}},
            "vars": {"V": "var"},
            "inputs": {"flag": True},
        },
    )
    runners.run(job)
    assert job.conclusion == "success", job.text
    workspace = str(runners.work / "octo/hello/hello")
    assert f"{workspace}|refs/heads/main|3.11|X|var|true|0|true|success" in job.text
    for expected in (
        "CI=true", "GITHUB_ACTIONS=true", "WF=wf-main", "JOB=3.11!", "BOTH=job", "STEP=3.11!-step", "COUNT=3",
        f"GITHUB_WORKSPACE={workspace}", "GITHUB_ACTION=look", "GITHUB_RUN_NUMBER=12", "GITHUB_JOB=build",
        "GITHUB_REF_PROTECTED=false", "RUNNER_NAME=alpha", "RUNNER_OS=Linux", f"RUNNER_TEMP={runners.work}/_temp",
    ):  # fmt: skip
        assert expected in [line for _, line in job.log], expected
    assert '  "ref": "refs/heads/main"' in job.text
    assert "not-for-jobs" not in job.text and "RUNNER_OWN_SECRET" not in job.text


def test_a_step_that_takes_too_long_fails_and_its_children_die(server: FakeServer, runners: Runners) -> None:
    job = server.add(
        [
            {"name": "slow", "run": "sleep 300 & echo $! > child; wait", "timeout-minutes": "${{ 0.01 }}"},
            {
                "name": "look",
                "if": "failure()",
                "run": "grep -qs 'State:.[^Z]' /proc/$(cat child)/status && echo alive || echo gone",
            },
        ]
    )
    runners.run(job)
    assert job.conclusions()["slow"] == "failure"
    assert "gone" in job.lines_of("look")
    assert any("has timed out after" in line for line in job.lines_of("slow"))


def test_broken_environment_files_fail_the_step_and_keep_what_is_well_formed(
    server: FakeServer, runners: Runners
) -> None:
    job = server.add(
        [
            {"name": "node", "run": "echo 'NODE_OPTIONS=--require x' >> $GITHUB_ENV; echo OK=1 >> $GITHUB_ENV"},
            {"name": "open", "if": "always()", "run": "echo 'a<<EOF' >> $GITHUB_OUTPUT"},
            {"name": "junk", "if": "always()", "run": "echo 'no equals' >> $GITHUB_ENV"},
            {"name": "pipe", "if": "always()", "run": "rm $GITHUB_ENV; mkfifo $GITHUB_ENV"},
            {"name": "big", "if": "always()", "run": "head -c 1100000 /dev/zero | tr '\\0' x >> $GITHUB_STEP_SUMMARY"},
            {"name": "see", "if": "always()", "run": 'echo "[$OK][$NODE_OPTIONS]"'},
        ]
    )
    runners.run(job)
    found = job.conclusions()
    assert [found[name] for name in ("node", "open", "junk", "pipe", "big")] == [
        "success", "failure", "failure", "failure", "success",
    ]  # fmt: skip
    assert "##[error]Can't store NODE_OPTIONS output parameter using '$GITHUB_ENV' command." in job.lines_of("node")
    assert "Matching delimiter not found 'EOF'" in job.text
    assert "Invalid format 'no equals'" in job.text
    assert "$GITHUB_STEP_SUMMARY upload aborted" in job.text
    assert "[1][]" in job.lines_of("see")


def test_expression_errors_fail_the_step_with_a_reason(server: FakeServer, runners: Runners) -> None:
    job = server.add(
        [{"name": "bad", "run": "echo ${{ fromJSON('{') }}"}, {"name": "if", "if": "fromJSON('{')", "run": "true"}]
    )
    runners.run(job)
    assert job.conclusions()["bad"] == "failure"
    assert any("cannot be evaluated" in line for line in job.lines_of("bad"))


@pytest.mark.parametrize(
    ("installed", "said"),
    [
        ([], "has neither Docker nor Podman"),
        (["podman"], "not supported by this runner yet (although podman is installed)"),
    ],
)
def test_container_jobs_end_with_a_clear_error_and_run_nothing(
    server: FakeServer, runners: Runners, installed: list[str], said: str
) -> None:
    programs = runners.folder / "programs"
    programs.mkdir()
    for name in ("bash", "git", "sh", *installed):
        (programs / name).symlink_to(shutil.which("true" if name in installed else name) or "")
    job = server.add([{"name": "x", "if": "always()", "run": "echo ran-outside"}], container={"image": "node:22"})
    runners.run(job, env={"PATH": str(programs)})
    assert said in job.text
    assert job.conclusion == "failure"
    assert job.conclusions() == {"Set up job": "failure", "x": "skipped", "Complete job": "success"}
    assert "a container ('node:22')" in job.text and "ran-outside" not in job.text


def test_the_workspace_is_clean_for_the_next_job_even_after_read_only_files(
    server: FakeServer, runners: Runners
) -> None:
    first = server.add([{"run": "mkdir -p a/b; echo x > a/b/c; chmod 0555 a/b a; touch $RUNNER_TEMP/left"}])
    runners.run(first)
    second = server.add([{"name": "look", "run": "ls -A | wc -l; ls -A $RUNNER_TEMP | grep left || echo none"}])
    runners.run(second)
    assert second.conclusion == "success", second.text
    assert {"0", "none"} <= set(second.lines_of("look"))


def test_hash_files_and_debug_are_available_in_steps(server: FakeServer, runners: Runners) -> None:
    job = server.add(
        [
            {"run": "mkdir -p a/b; echo 1 > a/x.lock; echo 2 > a/b/y.lock"},
            {
                "name": "hash",
                "if": "hashFiles('**/*.lock') != hashFiles('a/*.lock')",
                "run": "echo 'h=${{ hashFiles('*.none') }}.'",
            },
            {"name": "debug", "run": "echo '::debug::deep'; echo \"d=$RUNNER_DEBUG ${{ runner.debug }}\""},
        ],
        contexts={"vars": {"ACTIONS_STEP_DEBUG": "true"}},
    )
    runners.run(job)
    assert "h=." in job.lines_of("hash")
    assert "##[debug]deep" in job.lines_of("debug") and "d=1 1" in job.lines_of("debug")


@pytest.mark.skipif(shutil.which("pwsh") is None, reason="PowerShell is not installed here")
def test_pwsh_runs_where_it_is_installed(server: FakeServer, runners: Runners) -> None:
    job = runners.run(server.add([{"name": "ps", "shell": "pwsh", "run": "Write-Output ('a' + 'b')"}]))
    assert "ab" in job.lines_of("ps")


def test_outputs_that_cannot_be_stored_or_are_too_many_do_not_harm_the_job(
    server: FakeServer, runners: Runners
) -> None:
    job = server.add(
        [{"id": "o", "run": "printf 'nul=a\\0b\\n' >> $GITHUB_OUTPUT; printf 'big=%0600000d\\n' 1 >> $GITHUB_OUTPUT"}],
        outputs={
            "nul": "${{ steps.o.outputs.nul }}",
            "a": "${{ steps.o.outputs.big }}",
            "b": "${{ steps.o.outputs.big }}",
        },
    )
    runners.run(job)
    assert job.conclusion == "success", job.text
    assert job.outputs["nul"] == "a\ufffdb" and set(job.outputs) == {"nul", "a"}
    assert "Skip output 'b'" in job.text


def test_a_job_with_runner_payload_nonsense_is_not_run(server: FakeServer, runners: Runners) -> None:
    job = server.add([{"run": "true"}])
    job.payload = json.loads(json.dumps({**job.payload, "job": {}}))
    process = runners.start("run")
    server.wait(lambda: len(server.polls) >= 2)
    process.terminate()
    assert process.wait(60) == 0
    assert job.heartbeats == 0
    assert "lacks or misspells" in runners.log
