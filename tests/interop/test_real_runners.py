"""Do the runners of Forgejo and of Gitea, unchanged, run the jobs of this server?"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.people import Person
from tests.e2e.product import ROOT, Product, command_of, eventually
from tests.e2e.projects import Project, Run
from tests.interop import npm_clients
from tests.interop.real_runners import VARIABLES, RealRunner

HERE = Path(__file__).parent
LABEL = "foreign"
LINES = 2000
MOST_LINES = 150_000
SECRET = "5ec2e7" + "0" * 33 + "1"
NewProject = Callable[[], Project]
NewRunner = Callable[..., RealRunner]


@pytest.fixture(scope="module", params=sorted(VARIABLES))
def kind(request: pytest.FixtureRequest) -> str:
    variable = VARIABLES[request.param]
    if not os.environ.get(variable):
        pytest.skip(f"{variable} names no program")
    return str(request.param)


@pytest.fixture(scope="module")
def product(kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    settings = {"ACTIONS_SOURCES": "", "HEARTBEAT_SECONDS": "30", "LOG_LIMIT_LINES": str(MOST_LINES)}
    variables = {f"FORGE_{name}": value for name, value in settings.items()}
    started = Product(tmp_path_factory.mktemp("real") / "data", "--runners", "0", **variables)
    try:
        started.wait_until_printed("Ctrl-C stops it")
        yield started
    finally:
        status = started.stop()
    assert status == 0, started.printed


@pytest.fixture(scope="module")
def owner(product: Product) -> Person:
    return Person(product, *product.first_account)


@pytest.fixture(scope="module")
def new_runner(kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[NewRunner]:
    """A runner that nobody knows yet."""
    made: list[RealRunner] = []

    def make() -> RealRunner:
        folder = tmp_path_factory.mktemp("runner")
        made.append(RealRunner(kind, os.environ[VARIABLES[kind]], folder, label=LABEL))
        return made[-1]

    yield make
    for runner in made:
        runner.kill()


@pytest.fixture(scope="module")
def new_project(owner: Person, tmp_path_factory: pytest.TempPathFactory) -> NewProject:
    """A repository with the workflows of foreign_project, and without a runner."""
    numbers = count(1)

    def make() -> Project:
        name = f"foreign-{next(numbers)}"
        made = Project.create(owner, name, tmp_path_factory.mktemp(name))
        made.start(files_of("foreign_project"))
        return made

    return make


@pytest.fixture(scope="module")
def project(new_project: NewProject, new_runner: NewRunner) -> Project:
    """With a runner that takes its jobs one after the other."""
    made = new_project()
    registered(new_runner(), made).start()
    return made


@pytest.fixture(scope="module")
def poster(owner: Person, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The action that stop.yml uses, in a public repository."""
    made = Project.create(owner, "poster", tmp_path_factory.mktemp("poster"), private=False)
    assert made.name == "operator/poster"
    made.start(files_of("foreign_action"))


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """A job that waits for it goes on once it is there."""
    return tmp_path / "gate"


def files_of(folder: str) -> dict[str, str | bytes]:
    top = HERE / folder
    return {str(path.relative_to(top)): path.read_bytes() for path in sorted(top.rglob("*")) if path.is_file()}


def registered(runner: RealRunner, project: Project, *words: str) -> RealRunner:
    """By a token of the repository."""
    token = project.owner.call("POST", f"{project.api}/registration-tokens", {})["token"]
    runner.register(project.owner.product.url, token, *words)
    return runner


def log_of(run: Run, job: str) -> list[str]:
    """All its lines. A runner may tell the end of a job before it sends the last of them."""

    def whole() -> list[str] | None:
        log = run.log(job)
        return log.splitlines() if re.search(r"Job (succeeded|failed)$", log, re.M) else None

    return eventually(whole, seconds=120, what=f"the last lines of {job}", otherwise=run.story)


def lines_of(run: Run, job: str, step: str) -> list[str]:
    """What our page shows as that step's lines."""
    log = log_of(run, job)
    found = next(each for each in run.job(job)["steps"] if each["name"] == step)
    return log[found["first_line"] : found["first_line"] + found["line_count"]]


def numbers(lines: Iterable[str]) -> list[int]:
    return [int(line.split()[1]) for line in lines if re.fullmatch(r"line \d+", line)]


def conclusions(run: Run) -> dict[str, Any]:
    return {name: job["conclusion"] for name, job in run.jobs().items()}


def test_matrix_outputs_needs_and_conditions(project: Project) -> None:
    run = project.dispatch("matrix.yml").wait("failure")
    legs = [f"build ({system}, {version})" for system in ("linux", "bsd") for version in ("1.10", "2.0")]
    expected = dict.fromkeys([*legs, "gather", "rescue"], "success") | {"flaky": "failure", "broken": "failure"}
    assert conclusions(run) == expected, run.story()
    for index, leg in enumerate(legs):
        assert f"made version {leg[-5:-1].strip()}" in lines_of(run, leg, "Make it"), run.story()
        assert f"leg {index} of 4" in log_of(run, leg)
    assert {"outputs: hello linux, hello bsd", "results: success, success"} <= set(
        lines_of(run, "gather", "Show needs")
    )
    sha = project.tree.git("rev-parse", "HEAD")
    assert f"run {run.id} of {project.name} at {sha}" in lines_of(run, "gather", "Show the run")
    gathered = {"Set up job": "success", "Show needs": "success", "Never": "skipped"}
    assert run.steps("gather") == gathered | {"Show the run": "success", "Complete job": "success"}
    assert [run.steps("broken")[name] for name in ("Break", "Skipped", "Clean up")] == ["failure", "skipped", "success"]
    assert {"##[group]Try", "##[endgroup]", "##[error]a.c:3: it broke"} <= set(lines_of(run, "broken", "Break"))
    assert "cleaned up after failure" in lines_of(run, "broken", "Clean up")
    assert "broken was failure" in log_of(run, "rescue")


def test_secrets_variables_the_token_a_summary_and_a_called_workflow(kind: str, project: Project) -> None:
    project.owner.call("PUT", f"{project.api}/secrets/PASSWORD", {"value": "s3cr3t-of-ours"})
    project.owner.call("PUT", f"{project.api}/variables/PLACE", {"value": "here"})
    run = project.dispatch("values.yml").wait()
    log = log_of(run, "values")
    assert "s3cr3t-of-ours" not in "\n".join(log)
    said = {"the password is ***", "it has 14 characters", "the variable is here", "branch main"}
    assert said <= set(log), run.story()
    assert {"it runs with ***, ***, ***", "it runs with ***, ***, none"} & set(log), "a runner shows a token"
    # Of a step's summary, Forgejo's runners keep what they have to themselves.
    assert kind == "forgejo" or "said in <strong>short</strong>" in project.owner.pages.get(run.path).text
    called = log_of(run, "call / say")
    assert f"hello it's {project.owner.name}! 3 times, a number" in called and "loud" in called, run.story()
    assert "quiet" not in called
    assert "called said 3" in log_of(run, "after")


@pytest.mark.usefixtures("poster")
def test_a_cancelled_job_ends_with_its_post_part(project: Project, gate: Path) -> None:
    run = project.dispatch("stop.yml", gate=str(gate))
    run.wait_for_line("stop", "\nit waits\n")
    run.cancel()
    run.wait("cancelled")
    assert conclusions(run) == {"stop": "cancelled", "after": "success"}, run.story()
    said = log_of(run, "stop")
    assert "it goes on" not in said and "not reached" not in said
    assert gate.with_suffix(".post").read_text() == "the post part ran, with state by main and 1 branch", run.story()
    assert "stop was cancelled" in log_of(run, "after")


def test_a_job_out_of_time_is_ended_with_its_processes(project: Project) -> None:
    run = project.dispatch("slow.yml").wait("cancelled")
    job = run.jobs()["slow"]
    assert (job["conclusion"], job["cancel_reason"]) == ("cancelled", "time_budget")
    sleeper = int(re.findall(r"^sleeper (\d+)$", "\n".join(log_of(run, "slow")), re.M)[0])
    eventually(lambda: "sleep 300" not in command_of(sleeper), seconds=60, what="the end of what the job had started")


def test_a_hundred_thousand_lines_come_whole_and_in_order(project: Project) -> None:
    run = project.dispatch("burst.yml").wait(seconds=600)
    assert numbers(lines_of(run, "burst", "Count")) == list(range(1, 100_001))
    assert "ünd ⏹" in lines_of(run, "burst", "End")
    ranges = [(step["first_line"], step["line_count"]) for step in run.job("burst")["steps"]]
    ends = [first + count for first, count in ranges]
    assert [first for first, _ in ranges] == [0, *ends[:-1]] and ends[-1] == len(log_of(run, "burst"))


def test_a_log_at_its_limit_ends_the_job(project: Project) -> None:
    run = project.dispatch("flood.yml").wait("cancelled")
    job = run.jobs()["flood"]
    assert (job["conclusion"], job["cancel_reason"]) == ("cancelled", "log_limit")
    kept = numbers(run.log("flood").splitlines())
    assert kept == list(range(1, len(kept) + 1)) and MOST_LINES - 100 < len(kept) < MOST_LINES
    project.dispatch("one.yml").wait()


def test_artifacts_and_caches(project: Project) -> None:
    installed = npm_clients.install()
    values = {
        "MODULES": installed / "node_modules",
        "DRIVER": npm_clients.NPM / "drive.mjs",
        "MAKE_READY": HERE / "foreign_project" / "make-ready",
    }
    for name, value in values.items():
        project.owner.call("PUT", f"{project.api}/variables/{name}", {"value": str(value)})
    run = project.dispatch("keep.yml").wait()
    loaded = [line for line in lines_of(run, "load", "Load") if re.fullmatch(r"\S+: of \w+-runner\d+", line)]
    clients = ["artifact-2", "artifact-6", "artifact-1", "cache-v2", "cache-v1"]
    assert [line.partition(":")[0] for line in loaded] == clients, run.story()


@pytest.mark.parametrize("ends", ["afterwards", "meanwhile"])
def test_a_restart_of_the_server_loses_no_line_and_no_end(
    project: Project, product: Product, gate: Path, ends: str
) -> None:
    run = project.dispatch("stream.yml", gate=str(gate))
    run.wait_for_line("stream", "\nline 200\n")
    assert product.stop() == 0
    if ends == "meanwhile":
        gate.touch()
    product.start()
    product.wait_until_printed("Ctrl-C stops it")
    gate.touch()
    run.wait()
    assert numbers(lines_of(run, "stream", "Count")) == list(range(1, LINES + 1)), run.story()
    assert run.jobs()["after"]["conclusion"] == "success"


def test_a_killed_runner_loses_its_job_and_takes_the_next_when_it_is_back(
    new_project: NewProject, new_runner: NewRunner, gate: Path
) -> None:
    project = new_project()
    runner = registered(new_runner(), project).start()
    lost, next_one = (project.dispatch("stream.yml", gate=str(gate)) for _ in range(2))
    lost.wait_for_line("stream", "\nline 200\n")
    runner.kill()
    gate.touch()
    runner.start()
    lost.wait("failure")
    job = lost.jobs()["stream"]
    assert job["conclusion"] == "failure" and runner.name in job["end_note"], job
    kept = numbers(lost.log("stream").splitlines())
    assert kept == list(range(1, len(kept) + 1)) and 200 <= len(kept) < LINES
    next_one.wait()
    assert numbers(lines_of(next_one, "stream", "Count")) == list(range(1, LINES + 1))


def test_a_runner_asked_to_end_finishes_the_job_in_hand(
    new_project: NewProject, new_runner: NewRunner, gate: Path
) -> None:
    project = new_project()
    runner = registered(new_runner(), project).start()
    first, second = (project.dispatch("stream.yml", gate=str(gate)) for _ in range(2))
    first.wait_for_line("stream", "\nline 200\n")
    runner.ask_to_end()
    gate.touch()
    first.wait_for_job("stream", "ended")
    assert runner.wait() == 0, runner.said()
    assert numbers(lines_of(first, "stream", "Count")) == list(range(1, LINES + 1))
    assert second.jobs()["stream"]["state"] == "queued"
    for run in (first, second):
        run.cancel()


def test_two_runners_share_the_jobs_and_say_what_they_are(new_project: NewProject, new_runner: NewRunner) -> None:
    project = new_project()
    runners = [registered(new_runner(), project).start() for _ in range(2)]
    run = project.dispatch("share.yml").wait()
    said = [line for job in run.jobs() for line in log_of(run, job) if line.startswith("by ")]
    assert len(said) == 8 and set(said) == {f"by {runner.name}" for runner in runners}, run.story()
    known = {found["name"]: found for found in project.owner.call("GET", f"{project.api}/runners")["results"]}
    for runner in runners:
        found = known[runner.name]
        assert (found["labels"], found["online"], found["ephemeral"]) == ([LABEL], True, False)
        assert found["agent_version"] and found["agent_version"] in runner.version


def test_a_runner_for_one_job_takes_one(kind: str, new_project: NewProject, new_runner: NewRunner) -> None:
    project, runner = new_project(), new_runner()
    first, second = (project.dispatch("one.yml") for _ in range(2))
    # Older runners of Forgejo can be started for one job, but not registered for one.
    is_single_use = runner.knows("register", "--ephemeral")
    registered(runner, project, *(["--ephemeral"] if is_single_use else []))
    command = "one-job" if kind == "forgejo" else "daemon"
    runner.start(command)
    first.wait()
    assert runner.wait() == 0, runner.said()
    assert f"by {runner.name}" in log_of(first, "one")
    assert second.jobs()["one"]["state"] == "queued"
    if is_single_use:
        runner.start(command)
        runner.wait()
        assert second.jobs()["one"]["state"] == "queued", "a single-use runner takes one job, ever"
    second.cancel()


def test_a_runner_set_up_offline_by_its_secret(kind: str, new_project: NewProject, new_runner: NewRunner) -> None:
    if kind != "forgejo":
        pytest.skip("only a Forgejo runner can be set up offline")
    project, runner = new_project(), new_runner()
    product = project.owner.product
    runner.set_up_offline(product.url, SECRET)
    words = ("--name", runner.name, "--labels", LABEL, "--scope", project.name)
    done = subprocess.run(
        [sys.executable, "manage.py", "create_runner", *words],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "FORGE_DATA": str(product.data)},
        input=f"{SECRET}\n",
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert runner.identity["uuid"] in done.stdout
    runner.start()
    run = project.dispatch("one.yml").wait()
    assert f"by {runner.name}" in log_of(run, "one")
