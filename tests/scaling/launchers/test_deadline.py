"""Does a call to an engine end in time, and are this installation's things told from others?"""

from __future__ import annotations

import threading
import time

import pytest

from ci.scaling.launchers import marks
from ci.scaling.launchers.deadline import Deadline, within
from ci.scaling.launchers.protocol import PermanentLaunchError, TransientLaunchError
from tests.scaling.launchers.contract import PATIENCE, launch


def test_an_answer_in_time_is_given_on() -> None:
    assert within(PATIENCE, lambda deadline: deadline.left() > 0, engine="it") is True


def test_what_a_call_raises_is_raised() -> None:
    def call(deadline: Deadline) -> None:
        raise PermanentLaunchError("no such image")

    with pytest.raises(PermanentLaunchError, match="no such image"):
        within(PATIENCE, call, engine="it")


def test_an_engine_that_sends_a_little_now_and_then_is_given_up_and_asked_nothing_more() -> None:
    ended = threading.Event()

    def call(deadline: Deadline) -> None:
        try:
            while True:
                deadline.left()
                time.sleep(0.01)
        finally:
            ended.set()

    began = time.monotonic()
    with pytest.raises(TransientLaunchError, match="it did not answer within 0 s"):
        within(0.3, call, engine="it")
    assert time.monotonic() - began < PATIENCE
    assert ended.wait(PATIENCE)


def test_a_call_that_never_comes_back_is_given_up_too() -> None:
    go = threading.Event()
    with pytest.raises(TransientLaunchError) as caught:
        within(0.2, lambda deadline: go.wait(PATIENCE), engine="it")
    assert caught.value.retry_after > 0
    go.set()


def test_names_differ_between_installations_and_fit_the_engines() -> None:
    ours = marks.name("forge-4-17-1", installation="here")
    theirs = marks.name("forge-4-17-1", installation="elsewhere")
    assert ours != theirs and ours.startswith("forge-4-17-1-") and len(ours) <= 63
    longest = marks.name(f"forge-{10**17}-{10**17}-{10**8}", installation="x" * 500)
    assert len(longest) <= 63  # a Pod's host name


@pytest.mark.parametrize("installation", ["here", "Größe", "x" * 64, "a/b", "-", "ends-with-"])
def test_an_installations_mark_is_always_a_label(installation: str) -> None:
    value = marks.owner(installation)
    assert 0 < len(value) <= 63 and value.isascii() and value[0].isalnum() and value[-1].isalnum()
    assert value not in {marks.owner(other) for other in ("other", "y" * 64)}


def test_marks_are_read_back_and_those_of_others_are_none() -> None:
    labels = marks.labels(launch({}))
    assert marks.read(labels, installation="here") == (4, 17, 1)
    assert marks.read(labels, installation="elsewhere") is None
    assert marks.read({**labels, marks.SET: "x"}, installation="here") is None
    assert marks.read({**labels, marks.ATTEMPT: "0"}, installation="here") is None
    assert marks.read(None, installation="here") is None
    assert marks.identity((4, 17, 1)) == "forge-4-17-1"
