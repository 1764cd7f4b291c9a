"""Does registering write a configuration, and do mistakes get a clear answer?"""

from __future__ import annotations

import json

import pytest

from tests.runner.conftest import Runners
from tests.runner.fake_server import REGISTRATION, FakeServer


def test_registering_writes_a_file_only_its_owner_reads(server: FakeServer, runners: Runners) -> None:
    runners.register("--labels", "gpu, linux,gpu")
    assert runners.config.stat().st_mode & 0o777 == 0o600
    body = json.loads(runners.config.read_text())
    assert body["labels"] == ["gpu", "linux"] and body["token"] in server.runners and body["name"] == "alpha"


def test_the_token_may_come_from_the_environment(server: FakeServer, runners: Runners) -> None:
    runners.env["FORGE_REGISTRATION_TOKEN"] = REGISTRATION
    done = runners.command("register", "--url", server.url + "/")
    assert done.returncode == 0, done.stderr
    assert "self-hosted" in json.loads((runners.folder / ".runner").read_text())["labels"]


@pytest.mark.parametrize(
    ("args", "status", "message"),
    [
        (["register", "--url", "ftp://x", "--token", "t"], 2, "is no address of a forge"),
        (["register", "--url", "SERVER"], 2, "registration token is needed"),
        (["register", "--url", "SERVER", "--token", "frg_wrong"], 1, "does not accept this registration token"),
        (["register", "--url", "SERVER", "--token", REGISTRATION, "--labels", "a b"], 2, "is no label"),
        (["register", "--url", "SERVER", "--token", REGISTRATION, "--labels", ","], 2, "At least one label"),
        (["run"], 2, "Run `python -m ci.runner register` first"),
        (["dance"], 2, "invalid choice"),
    ],
)
def test_mistakes_get_one_clear_sentence(
    server: FakeServer, runners: Runners, args: list[str], status: int, message: str
) -> None:
    done = runners.command(*[server.url if arg == "SERVER" else arg for arg in args])
    assert (done.returncode, message in done.stderr) == (status, True), done.stderr
    assert "Traceback" not in done.stderr and "frg_wrong" not in done.stderr


def test_a_broken_configuration_is_named(server: FakeServer, runners: Runners) -> None:
    runners.config.write_text("{")
    done = runners.command("once", "--config", str(runners.config))
    assert done.returncode == 2 and "cannot be read" in done.stderr and "Traceback" not in done.stderr


def test_two_runners_cannot_share_a_work_folder(server: FakeServer, runners: Runners) -> None:
    runners.start("run")
    server.wait(lambda: server.polls)
    done = runners.command("once", "--config", str(runners.config), "--work", str(runners.work))
    assert done.returncode == 2 and "Another runner is using the work folder" in done.stderr


def test_a_server_that_is_no_forge_is_told_apart(server: FakeServer, runners: Runners) -> None:
    done = runners.command("register", "--url", f"{server.url}/elsewhere", "--token", REGISTRATION)
    assert done.returncode == 1 and "Traceback" not in done.stderr
