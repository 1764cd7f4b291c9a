"""How do containers end, and are those that ended forgotten? Also: which container does a template describe?"""

from __future__ import annotations

from typing import Any

import pytest
from pytest_django.fixtures import Settings

from ci.scaling import launchers
from ci.scaling.launchers import docker as docker_launcher
from ci.scaling.launchers.docker_template import TOKEN_FILE, check_template, container
from ci.scaling.launchers.protocol import PermanentLaunchError
from tests.scaling.fakes.containers import Refused
from tests.scaling.fakes.engine import Engine
from tests.scaling.launchers.containers import IMAGE, ContainerBench
from tests.scaling.launchers.contract import TOKEN, URL, Work, launch, until_state


def test_containers_are_removed_by_their_id_and_never_by_a_name(engine: Engine, containers: ContainerBench) -> None:
    launcher = containers.launcher()
    handle = launcher.start(launch(containers.template(Work.LONG)))
    engine.calls.clear()
    launcher.stop(handle, force=True)
    changing = [path for method, path in engine.calls if method in ("DELETE", "POST")]
    assert changing == [f"/containers/{handle}"]


def test_a_container_of_another_installation_is_neither_told_of_nor_touched(containers: ContainerBench) -> None:
    handle = containers.launcher().start(launch(containers.template(Work.LONG)))
    until_state(containers.launcher(), handle, "running")
    other = containers.launcher(installation="elsewhere")
    assert other.poll(handle) is None
    other.stop(handle, force=False)
    other.stop(handle, force=True)
    until_state(containers.launcher(), handle, "running")


def test_a_gentle_stop_only_sends_a_signal(engine: Engine, containers: ContainerBench) -> None:
    launcher = containers.launcher()
    handle = launcher.start(launch(containers.template(Work.STUBBORN)))
    assert containers.alive(handle) >= 2
    engine.calls.clear()
    launcher.stop(handle, force=False)
    assert [path for method, path in engine.calls if method == "POST"] == [f"/containers/{handle}/kill"]
    assert containers.alive(handle) >= 2


def test_what_ended_long_ago_is_told_once_more_and_then_forgotten(
    engine: Engine, containers: ContainerBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    launcher = containers.launcher()
    ended = launcher.start(launch(containers.template(Work.FAIL), runner_id=1))
    runs = launcher.start(launch(containers.template(Work.LONG), runner_id=2))
    until_state(launcher, ended, "exited")
    until_state(launcher, runs, "running")
    assert [each.runner_id for each in launcher.list()] == [1, 2]
    assert [each.runner_id for each in launcher.list()] == [1, 2]
    monkeypatch.setattr(docker_launcher, "FORGET_SECONDS", -60)
    assert [(each.runner_id, each.exit_code) for each in launcher.list()] == [(1, 3), (2, None)]
    assert [each.runner_id for each in launcher.list()] == [2]
    assert launcher.poll(ended) is None


def test_however_many_ended_a_list_asks_for_few_of_them(
    engine: Engine, containers: ContainerBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And forgets the oldest: else it might never come to its end in time, and so never to forgetting."""
    launcher = containers.launcher()
    handles = []
    for number in range(1, 7):
        handles.append(launcher.start(launch(containers.template(Work.FAIL), runner_id=number)))
        until_state(launcher, handles[-1], "exited")
    runs = launcher.start(launch(containers.template(Work.LONG), runner_id=7))
    monkeypatch.setattr(docker_launcher, "MAX_TOLD", 2)
    monkeypatch.setattr(docker_launcher, "MAX_FORGOTTEN", 1)
    monkeypatch.setattr(docker_launcher, "FORGET_SECONDS", -60)
    engine.calls.clear()
    assert [each.runner_id for each in launcher.list()] == [5, 6, 7]
    asked = {path for method, path in engine.calls if method == "GET" and path.endswith("/json")}
    assert asked == {"/containers/json", *(f"/containers/{handles[number]}/json" for number in (0, 4, 5))}
    assert launcher.poll(handles[0]) is None
    left = launcher.poll(handles[1])
    assert left is not None
    assert left.exit_code == 3
    until_state(launcher, runs, "running")


def test_an_engine_that_forgets_nothing_still_tells_what_there_is(
    engine: Engine, containers: ContainerBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    launcher = containers.launcher()
    until_state(launcher, launcher.start(launch(containers.template(Work.FAIL))), "exited")
    monkeypatch.setattr(docker_launcher, "FORGET_SECONDS", -60)

    def before(method: str, path: str) -> None:
        if method == "DELETE":
            raise Refused(500, "the driver failed to remove the root file system")

    engine.before = before
    assert [each.exit_code for each in launcher.list()] == [3]
    engine.before = lambda method, path: None


def test_a_log_that_cannot_be_read_leaves_the_exit_code(engine: Engine, containers: ContainerBench) -> None:
    launcher = containers.launcher()
    handle = launcher.start(launch(containers.template(Work.FAIL)))

    def before(method: str, path: str) -> None:
        if path.endswith("/logs"):
            raise Refused(501, "configured logging driver does not support reading")

    engine.before = before
    assert until_state(launcher, handle, "exited").reason == "exit code 3"


# --- templates -----------------------------------------------------------------------------------------------------


def test_a_template_becomes_the_body_of_the_engines_call(settings: Settings) -> None:
    settings.SCALE_TRUSTED_TEMPLATES = True
    template: dict[str, Any] = {
        "image": IMAGE,
        "command": ["python", "-m", "ci.runner", "once"],
        "environment": {"TZ": "UTC"},
        "url": "http://forge:8000",
        "user": "1000:1000",
        "network": "ci",
        "extra_hosts": {"forge": "host-gateway", "cache": "10.0.0.5"},
        "memory": "2g",
        "cpus": 1.5,
        "mounts": [
            {"type": "bind", "source": "/var/cache", "target": "/cache", "read_only": True},
            {"type": "tmpfs", "target": "/scratch", "size": "64m"},
        ],
        "init": True,
        "privileged": True,
    }
    assert check_template(template) == []
    body = container(launch(template))
    assert body["HostConfig"] == {
        "RestartPolicy": {"Name": "no"},
        "AutoRemove": False,
        "Memory": 2 * 1024**3,
        "MemorySwap": 2 * 1024**3,
        "NanoCpus": 1_500_000_000,
        "NetworkMode": "ci",
        "ExtraHosts": ["forge:host-gateway", "cache:10.0.0.5"],
        "Privileged": True,
        "Init": True,
        "Mounts": [
            {"Type": "bind", "Target": "/cache", "Source": "/var/cache", "ReadOnly": True},
            {"Type": "tmpfs", "Target": "/scratch", "TmpfsOptions": {"SizeBytes": 64 * 1024**2}},
        ],
    }
    assert {"TZ=UTC", "FORGE_URL=http://forge:8000", f"FORGE_RUNNER_TOKEN_FILE={TOKEN_FILE}"} <= set(body["Env"])
    assert (body["User"], body["Image"]) == ("1000:1000", IMAGE)
    assert TOKEN not in str(body)


def test_a_template_may_be_an_image_alone() -> None:
    assert check_template({"image": "debian:12"}) == []
    body = container(launch({"image": "debian:12"}))
    assert body["Cmd"] == ["python", "-m", "ci.runner", "once"] and f"FORGE_URL={URL}" in body["Env"]
    assert "Entrypoint" not in body


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ([], "is a JSON object"),
        ({}, "'image' is missing"),
        ({"image": "two words"}, "image's name"),
        ({"image": "x", "imag": "y"}, "'imag' is no field"),
        ({"image": "x", "pull": "sometimes"}, "one of missing, always, never"),
        ({"image": "x", "command": "sh -c true"}, "a list"),
        ({"image": "x", "environment": {"FORGE_URL": "http://evil"}}, "set by the forge"),
        ({"image": "x", "environment": {"A B": "1"}}, "no name of a variable"),
        ({"image": "x", "environment": {"A": 1}}, "a text"),
        ({"image": "x", "memory": "4k"}, "at least 6m"),
        ({"image": "x", "memory": True}, "at least 6m"),
        ({"image": "x", "cpus": 0}, "number of processors"),
        ({"image": "x", "extra_hosts": {"forge": "somewhere"}}, "an IP address"),
        ({"image": "x", "extra_hosts": {"a b": "10.0.0.1"}}, "no host's name"),
        ({"image": "x", "url": "forge:8000"}, "forge's address"),
        ({"image": "x", "user": "a b"}, "a user"),
        ({"image": "x", "mounts": [{"type": "nfs", "target": "/x"}]}, "bind, volume or tmpfs"),
        ({"image": "x", "mounts": [{"type": "tmpfs", "target": "/forge-runner"}]}, "the forge's own"),
        ({"image": "x", "mounts": [{"type": "tmpfs", "target": "x"}]}, "absolute path"),
        ({"image": "x", "mounts": [{"type": "bind", "source": "/", "target": "/host"}]}, "operator trusts"),
        ({"image": "x", "mounts": [{"type": "volume", "source": "db", "target": "/db"}]}, "operator trusts"),
        ({"image": "x", "network": "host"}, "operator trusts"),
        ({"image": "x", "network": "container:db"}, "operator trusts"),
        ({"image": "x", "privileged": True}, "operator trusts"),
    ],
)
def test_a_wrong_template_is_refused_with_a_sentence(template: Any, words: str) -> None:
    problems = launchers.check_template("docker", template)
    assert len(problems) == 1 and words in problems[0], problems


def test_a_client_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(launchers.MODULES, "docker", "no_such_client.of_an_engine")
    with pytest.raises(PermanentLaunchError, match="needs the Python package 'no_such_client'"):
        launchers.launcher("docker", installation="here")
    assert launchers.check_template("docker", {"image": "x"}) == []
