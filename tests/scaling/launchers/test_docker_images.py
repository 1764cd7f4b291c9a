"""How do images come to an engine, and what if they do not?"""

from __future__ import annotations

import threading

import pytest

from ci.scaling.launchers import docker as docker_launcher
from ci.scaling.launchers import docker_pull
from ci.scaling.launchers.protocol import LaunchError, PermanentLaunchError, TransientLaunchError
from tests.scaling.fakes.containers import Refused
from tests.scaling.fakes.engine import Engine
from tests.scaling.launchers.containers import IMAGE, ContainerBench
from tests.scaling.launchers.contract import Work, launch, until_state

OTHER = "registry.example.org/runner:2"


def _work(bench: ContainerBench, **more: object) -> dict[str, object]:
    return {**bench.template(Work.LONG), "pull": "missing", **more}


def _refuse(engine: Engine, method: str, ending: str, refused: Refused) -> None:
    def before(asked: str, path: str) -> None:
        if asked == method and path.endswith(ending):
            raise refused

    engine.before = before


def test_an_image_that_is_missing_is_pulled_once_for_all_who_want_it(
    engine: Engine, containers: ContainerBench
) -> None:
    asked = threading.Semaphore(0)
    go = threading.Event()

    def fetch() -> None:
        asked.release()
        assert go.wait(60)

    engine.containers.registry[OTHER] = fetch
    launcher = containers.launcher()
    handles: dict[int, str] = {}

    def start(runner_id: int) -> None:
        handles[runner_id] = launcher.start(launch(_work(containers, image=OTHER), runner_id=runner_id))

    threads = [threading.Thread(target=start, args=(number,)) for number in (1, 2, 3)]
    for thread in threads:
        thread.start()
    assert asked.acquire(timeout=60)
    go.set()
    for thread in threads:
        thread.join(60)
    assert sorted(handles) == [1, 2, 3]
    until_state(launcher, handles[2], "running")


def test_an_image_that_takes_long_goes_on_being_pulled_and_is_there_for_a_later_try(
    engine: Engine, containers: ContainerBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = threading.Event()
    count: list[int] = []

    def fetch() -> None:
        count.append(1)
        assert go.wait(60)

    engine.containers.registry[OTHER] = fetch
    wanted = launch(_work(containers, image=OTHER))
    monkeypatch.setattr(docker_launcher, "PULL_SHARE", 0.005)
    for _ in range(2):
        with pytest.raises(TransientLaunchError, match="still being pulled") as caught:
            containers.launcher().start(wanted)
        assert caught.value.retry_after == docker_pull.COME_AGAIN_SECONDS
    monkeypatch.undo()
    go.set()
    handle = containers.launcher().start(wanted)
    until_state(containers.launcher(), handle, "running")
    assert count == [1]


def test_an_image_that_does_not_exist_is_permanent_and_named(engine: Engine, containers: ContainerBench) -> None:
    with pytest.raises(PermanentLaunchError, match=f"image {OTHER} could not be pulled: .*manifest unknown"):
        containers.launcher().start(launch(_work(containers, image=OTHER)))
    assert engine.containers.all() == []


@pytest.mark.parametrize(
    ("refused", "kind", "retry_after"),
    [
        (Refused(404, "pull access denied for x, repository does not exist"), PermanentLaunchError, None),
        (Refused(500, "unauthorized: authentication required"), PermanentLaunchError, None),
        (Refused(500, 'Get "https://registry.example.org/v2/": dial tcp: i/o timeout'), TransientLaunchError, 30),
        (Refused(503, "the registry is down"), TransientLaunchError, 30),
        (Refused(500, "toomanyrequests: You have reached your pull rate limit."), TransientLaunchError, 60),
    ],
    ids=["denied", "unauthorized", "timeout", "unavailable", "rate_limit"],
)
def test_a_registry_that_refuses_is_told_apart(
    engine: Engine, containers: ContainerBench, refused: Refused, kind: type[LaunchError], retry_after: float | None
) -> None:
    def fetch() -> None:
        raise refused

    engine.containers.registry[OTHER] = fetch
    with pytest.raises(LaunchError, match=f"image {OTHER} could not be pulled") as caught:
        containers.launcher().start(launch(_work(containers, image=OTHER)))
    assert type(caught.value) is kind
    assert getattr(caught.value, "retry_after", None) == retry_after


def test_a_rate_limit_that_says_when_to_come_again_is_heeded(engine: Engine, containers: ContainerBench) -> None:
    _refuse(engine, "POST", "/images/create", Refused(429, "too many requests", {"Retry-After": "77"}))
    with pytest.raises(TransientLaunchError) as caught:
        containers.launcher().start(launch(_work(containers, image=OTHER)))
    assert caught.value.retry_after == 77


def test_pull_always_pulls_what_is_there_and_never_pulls_nothing(engine: Engine, containers: ContainerBench) -> None:
    pulled: list[str] = []
    engine.containers.registry[IMAGE] = lambda: pulled.append(IMAGE)
    launcher = containers.launcher()
    launcher.start(launch(_work(containers, pull="always")))
    assert pulled == [IMAGE]
    engine.containers.registry[OTHER] = lambda: pulled.append(OTHER)
    with pytest.raises(PermanentLaunchError, match=OTHER):
        launcher.start(launch(_work(containers, image=OTHER, pull="never"), runner_id=2))
    assert pulled == [IMAGE]


@pytest.mark.parametrize(
    ("image", "parts"),
    [
        ("debian", ("debian", "latest")),
        ("debian:12", ("debian", "12")),
        ("host:5000/debian", ("host:5000/debian", "latest")),
        ("host:5000/debian:12", ("host:5000/debian", "12")),
        ("debian@sha256:ab", ("debian", "sha256:ab")),
    ],
)
def test_an_image_is_split_into_name_and_tag(image: str, parts: tuple[str, str]) -> None:
    assert docker_pull.split(image) == parts


def test_an_image_for_another_machine_is_permanent_and_not_pulled_again(
    engine: Engine, containers: ContainerBench
) -> None:
    engine.containers.registry[IMAGE] = lambda: None
    refused = Refused(404, f"No such image: image {IMAGE} was found but does not match the specified platform")
    _refuse(engine, "POST", "/containers/create", refused)
    with pytest.raises(PermanentLaunchError, match=IMAGE):
        containers.launcher().start(launch(_work(containers)))
    assert [path for _, path in engine.calls].count("/images/create") == 1
