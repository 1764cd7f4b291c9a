"""What happens at the start of a container: its token, and what engines refuse?"""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable

import pytest
from pytest_django.fixtures import Settings

from ci.scaling.launchers import docker as docker_launcher
from ci.scaling.launchers import marks
from ci.scaling.launchers.docker import DockerLauncher
from ci.scaling.launchers.docker_template import TOKEN_FILE, container
from ci.scaling.launchers.protocol import PermanentLaunchError, TransientLaunchError
from tests.scaling.fakes.containers import Refused
from tests.scaling.fakes.engine import Engine
from tests.scaling.launchers.containers import ContainerBench
from tests.scaling.launchers.contract import INSTALLATION, TOKEN, Work, launch, until_state


def _work(bench: ContainerBench, **more: object) -> dict[str, object]:
    return {**bench.template(Work.LONG), "pull": "missing", **more}


def _refuse(engine: Engine, method: str, ending: str, refused: Refused) -> None:
    def before(asked: str, path: str) -> None:
        if asked == method and path.endswith(ending):
            raise refused

    engine.before = before


# --- the token -----------------------------------------------------------------------------------------------------


def test_the_token_is_in_a_file_of_the_container_and_nothing_that_is_told_of_it_shows_it(
    engine: Engine, containers: ContainerBench
) -> None:
    handle = containers.launcher().start(launch(containers.template(Work.LONG)))
    found = engine.containers.get(handle)
    file = found.box.folder / TOKEN_FILE.lstrip("/")
    assert file.read_text() == TOKEN
    # Any user of the container may read it, and take it away.
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o444, 0o777)
    told = containers.client.inspect_container(handle), containers.client.containers(all=True)
    assert TOKEN not in json.dumps(told)
    assert not any(TOKEN in path for _, path in engine.calls)


def test_the_tokens_archive_has_no_padding_over_which_podman_stumbles() -> None:
    archive = docker_launcher._token_archive(TOKEN)
    assert archive.endswith(b"\0" * 1024) and len(archive) == 5 * 512
    with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
        assert opened.getnames() == ["forge-runner", "forge-runner/token"]


def test_an_engine_that_repeats_the_token_does_not_get_it_into_a_reason(
    engine: Engine, containers: ContainerBench
) -> None:
    _refuse(engine, "PUT", "/archive", Refused(500, f"cannot write {TOKEN} here"))
    with pytest.raises(TransientLaunchError, match=r"cannot write \*\*\* here"):
        containers.launcher().start(launch(containers.template(Work.LONG)))


# --- what is refused, and what is left of it -----------------------------------------------------------------------


def test_a_program_that_does_not_exist_is_permanent_and_leaves_no_container(
    engine: Engine, containers: ContainerBench
) -> None:
    with pytest.raises(PermanentLaunchError, match="executable file not found"):
        containers.launcher().start(launch(_work(containers, command=["/no/such/program"])))
    assert engine.containers.all() == []


def test_a_network_that_does_not_exist_is_permanent_and_leaves_no_container(
    engine: Engine, containers: ContainerBench, settings: Settings
) -> None:
    settings.SCALE_TRUSTED_TEMPLATES = True
    with pytest.raises(PermanentLaunchError, match=r"network.*not found"):
        containers.launcher().start(launch(_work(containers, network="no-such-network")))
    assert engine.containers.all() == []


@pytest.mark.parametrize("ending", ["/archive", "/start"])
def test_a_connection_lost_between_creation_and_start_leaves_no_container(
    engine: Engine, containers: ContainerBench, ending: str
) -> None:
    def before(method: str, path: str) -> None:
        if path.endswith(ending):
            raise ConnectionAbortedError

    engine.before = before
    with pytest.raises(TransientLaunchError, match="cannot be reached"):
        containers.launcher().start(launch(containers.template(Work.LONG)))
    assert engine.containers.all() == []


@pytest.mark.parametrize("call", [("POST", "/create"), ("PUT", "/archive"), ("POST", "/start")])
def test_an_engine_without_room_is_transient_and_the_name_stays_free(
    engine: Engine, containers: ContainerBench, call: tuple[str, str]
) -> None:
    _refuse(engine, *call, Refused(500, "write /var/lib/docker: no space left on device"))
    launcher = containers.launcher()
    wanted = launch(containers.template(Work.LONG))
    with pytest.raises(TransientLaunchError, match="no space left") as caught:
        launcher.start(wanted)
    assert caught.value.retry_after == 30
    assert engine.containers.all() == []
    engine.before = lambda method, path: None
    until_state(launcher, launcher.start(wanted), "running")


def test_a_wrong_template_is_permanent_and_asks_no_engine(engine: Engine, containers: ContainerBench) -> None:
    before = len(engine.calls)
    with pytest.raises(PermanentLaunchError, match="memory: a size"):
        containers.launcher().start(launch(_work(containers, memory="lots")))
    assert len(engine.calls) == before


def test_a_name_that_another_installation_took_is_left_alone(engine: Engine, containers: ContainerBench) -> None:
    wanted = launch(containers.template(Work.LONG))
    body = container(wanted)
    body["Labels"][marks.INSTALLATION] = "elsewhere"
    other = containers.client.create_container_from_config(body, marks.name(wanted.identity, installation=INSTALLATION))
    with pytest.raises(TransientLaunchError, match="none of this forge's"):
        containers.launcher().start(wanted)
    assert [each.id for each in engine.containers.all()] == [other["Id"]]


def test_whoever_comes_second_between_look_and_creation_gets_the_firsts_container(
    engine: Engine, containers: ContainerBench
) -> None:
    wanted = launch(containers.template(Work.LONG))
    first: list[str] = []

    def before(method: str, path: str) -> None:
        if path == "/containers/create":
            engine.before = lambda method, path: None
            name = marks.name(wanted.identity, installation=INSTALLATION)
            first.append(engine.containers.create(name, container(wanted)).id)
            engine.containers.start(first[0])

    engine.before = before
    assert containers.launcher().start(wanted) == first[0]
    assert containers.count(wanted.identity) == 1


def test_two_installations_on_one_engine_may_have_the_same_runner(engine: Engine, containers: ContainerBench) -> None:
    wanted = launch(containers.template(Work.LONG))
    ours = containers.launcher().start(wanted)
    theirs = containers.launcher(installation="elsewhere").start(
        type(wanted)(**{**vars(wanted), "installation": "elsewhere"})
    )
    assert ours != theirs
    assert len(containers.launcher().list()) == len(containers.launcher(installation="elsewhere").list()) == 1


def test_a_container_left_by_a_scaler_killed_before_it_started_it_is_found_and_set_off(
    engine: Engine, containers: ContainerBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = launch(containers.template(Work.LONG))
    made = containers.client.create_container_from_config(
        container(wanted), marks.name(wanted.identity, installation=INSTALLATION)
    )["Id"]
    launcher = containers.launcher()
    assert [(each.handle, each.state) for each in launcher.list()] == [(made, "starting")]
    monkeypatch.setattr(docker_launcher, "STARTED_ELSEWHERE_SECONDS", 0.1)
    assert launcher.start(wanted) == made
    until_state(launcher, made, "running")
    assert containers.count(wanted.identity) == 1


def test_a_container_that_was_never_started_is_ended_by_any_stop(engine: Engine, containers: ContainerBench) -> None:
    wanted = launch(containers.template(Work.LONG))
    made = containers.client.create_container_from_config(container(wanted), "some-name")["Id"]
    containers.launcher().stop(made, force=False)
    assert engine.containers.all() == []


def test_a_container_that_vanishes_while_it_is_started_is_transient(engine: Engine, containers: ContainerBench) -> None:
    def before(method: str, path: str) -> None:
        if method == "PUT":
            for each in engine.containers.all():
                engine.containers.remove(each.id, force=True)

    engine.before = before
    with pytest.raises(TransientLaunchError, match="taken away"):
        containers.launcher().start(launch(containers.template(Work.LONG)))


def test_an_engine_that_is_none_is_transient(tmp_path_factory: pytest.TempPathFactory) -> None:
    nowhere = tmp_path_factory.mktemp("nowhere") / "engine.sock"
    launcher = DockerLauncher(f"unix://{nowhere}", installation=INSTALLATION)
    calls: list[Callable[[], object]] = [launcher.list, lambda: launcher.poll("0" * 64)]
    for call in calls:
        with pytest.raises(TransientLaunchError, match="cannot be reached: No such file or directory"):
            call()
