"""Does a runner that a launcher starts find what it needs in its environment, and tell by its exit how it ended?"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ci.runner import config as runner_config
from ci.runner.config import Config, ConfigError
from ci.scaling.launchers import protocol
from tests.runner.conftest import Runners
from tests.runner.fake_server import FakeServer

TOKEN = "frr_forThisAttemptAlone"


class Launched:
    """Runner processes as a launcher starts them: without any file of configuration."""

    def __init__(self, server: FakeServer, runners: Runners) -> None:
        self.server, self.runners = server, runners
        self.record = {"id": 9, "name": "burst-9", "labels": ["gpu"], "ephemeral": True, "phase": "pending"}
        server.runners[TOKEN] = self.record

    def start(self, **environment: str) -> subprocess.Popen[bytes]:
        given = {"FORGE_URL": self.server.url, "FORGE_RUNNER_TOKEN": TOKEN, **environment}
        process = subprocess.Popen(
            [sys.executable, "-m", "ci.runner", "once", "--work", str(self.runners.work)],
            env={**self.runners.env, **{name: value for name, value in given.items() if value}},
            cwd=self.runners.folder,
            stdout=subprocess.DEVNULL,
            stderr=(self.runners.folder / "runner.log").open("ab"),
        )
        self.runners.processes.append(process)
        return process


@pytest.fixture
def launched(server: FakeServer, runners: Runners) -> Iterator[Launched]:
    yield Launched(server, runners)


def test_it_runs_one_job_by_the_token_of_its_environment_and_exits_with_0(launched: Launched) -> None:
    server, runners = launched.server, launched.runners
    job = server.add([{"run": "env; cat /proc/$PPID/cmdline"}, {"run": "exit 1"}])
    later = server.add([{"run": "echo never"}])
    assert launched.start().wait(60) == 0, runners.log
    assert (job.state, job.conclusion, later.state) == ("ended", "failure", "queued")
    assert "RUNNER_NAME=burst-9" in job.text and TOKEN not in job.text
    assert "burst-9 (gpu)" in runners.log and TOKEN not in runners.log
    assert not runners.config.exists() and not (runners.folder / ".runner").exists()


def test_a_token_in_a_file_is_taken_away_with_its_file(launched: Launched, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    job = launched.server.add([{"run": f"test ! -e {file}; env"}])
    assert launched.start(FORGE_RUNNER_TOKEN="", FORGE_RUNNER_TOKEN_FILE=str(file)).wait(60) == 0
    assert job.conclusion == "success" and not file.exists()
    assert TOKEN not in job.text and "TOKEN_FILE" not in job.text


def test_it_ends_with_0_when_it_is_told_to_end_while_idle(launched: Launched) -> None:
    process = launched.start()
    launched.server.wait(lambda: launched.server.polls)
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0, launched.runners.log


@pytest.mark.parametrize(("phase", "code"), [("succeeded", 0), ("failed", 0), ("outdated", 7)])
def test_a_runner_that_ended_for_the_forge_while_it_waited_ends_by_itself(
    launched: Launched, phase: str, code: int
) -> None:
    process = launched.start()
    launched.server.wait(lambda: launched.server.polls)
    launched.record["phase"] = phase
    launched.server.stop()  # answers the poll that waits
    launched.server.start()
    assert process.wait(60) == code, launched.runners.log


def test_one_that_is_outdated_before_it_begins_takes_no_job(launched: Launched) -> None:
    job = launched.server.add([{"run": "echo never"}])
    launched.record["phase"] = "outdated"
    assert launched.start().wait(60) == 7
    assert "does not take version" in launched.runners.log and job.state == "queued"


def test_one_that_is_retired_before_it_begins_takes_no_job(launched: Launched) -> None:
    job = launched.server.add([{"run": "echo never"}])
    launched.record["phase"] = "succeeded"
    assert launched.start().wait(60) == 0
    assert job.state == "queued"


def test_a_token_that_the_forge_does_not_know_is_a_refusal(launched: Launched) -> None:
    assert launched.start(FORGE_RUNNER_TOKEN="frr_ofAnEarlierAttempt").wait(60) == 1
    assert "does not know this runner" in launched.runners.log and "EarlierAttempt" not in launched.runners.log


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"FORGE_URL": ""}, "FORGE_URL must be too"),
        ({"FORGE_URL": "ftp://x"}, "is no address of a forge"),
        ({"FORGE_RUNNER_TOKEN": "two words"}, "FORGE_RUNNER_TOKEN gives no runner token"),
        ({"FORGE_RUNNER_TOKEN": "", "FORGE_RUNNER_TOKEN_FILE": "/nowhere/token"}, "cannot be read: No such file"),
        ({"FORGE_RUNNER_TOKEN": ""}, "Run `python -m ci.runner register` first"),
    ],
)
def test_mistakes_are_a_configuration_error(launched: Launched, environment: dict[str, str], message: str) -> None:
    assert launched.start(**environment).wait(60) == 2
    log = launched.runners.log
    assert message in log and "Traceback" not in log and "two words" not in log


def test_a_file_that_is_asked_for_wins_over_the_environment(launched: Launched) -> None:
    launched.runners.env |= {"FORGE_URL": "http://127.0.0.1:9", "FORGE_RUNNER_TOKEN": TOKEN}
    job = launched.server.add([{"run": "echo hello"}])
    launched.runners.run(job)
    assert "runner alpha" in launched.runners.log


def test_what_launchers_give_is_what_runners_read() -> None:
    wanted = protocol.Launch(
        identity=protocol.identity_of(set_id=1, runner_id=2, attempt=3),
        installation="here",
        set_id=1,
        runner_id=2,
        attempt=3,
        url="https://forge.example/",
        token=TOKEN,
        name="burst-2",
        labels=("gpu", "linux"),
        template={},
    )
    environment = wanted.environment()
    found = Config.take(environment)
    assert found == Config("https://forge.example", 0, "burst-2", TOKEN, ("gpu", "linux"), ephemeral=True)
    assert runner_config.TOKEN_FILE_VARIABLE == protocol.TOKEN_FILE_VARIABLE
    assert runner_config.TOKEN_VARIABLE not in environment and Config.take(environment) is None


def test_a_file_without_a_token_is_named_and_left(tmp_path: Path) -> None:
    file = tmp_path / "notes"
    file.write_text("something else")
    with pytest.raises(ConfigError, match="FORGE_RUNNER_TOKEN_FILE gives no runner token"):
        Config.take({"FORGE_RUNNER_TOKEN_FILE": str(file), "FORGE_URL": "http://x"})
    assert file.read_text() == "something else"


def test_what_is_no_plain_file_is_read_and_never_removed(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=(f"{TOKEN}\n",))
    writer.start()
    found = Config.take({"FORGE_RUNNER_TOKEN_FILE": str(pipe), "FORGE_URL": "http://x"})
    writer.join()
    assert found is not None and found.token == TOKEN
    assert pipe.is_fifo()


def test_a_token_is_not_shown_when_it_is_none() -> None:
    with pytest.raises(ConfigError) as caught:
        Config.take({"FORGE_RUNNER_TOKEN": "frr_x y", "FORGE_URL": "http://x"})
    assert "frr_x" not in str(caught.value)


def test_help_names_the_exit_statuses(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-m", "ci.runner", "once", "--help"], capture_output=True, text=True)
    assert "7 the forge does not take this version" in " ".join(done.stdout.split())
