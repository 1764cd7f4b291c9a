"""What must hold of every launcher? One suite; each launcher brings a bench with real or faithfully faked workloads."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar

import pytest

from ci.scaling.launchers.protocol import (
    MAX_HANDLE,
    MAX_REASON,
    TOKEN_VARIABLE,
    URL_VARIABLE,
    Launch,
    Launcher,
    PermanentLaunchError,
    Process,
    TransientLaunchError,
    identity_of,
)

TOKEN = "frr_t0psecretOfThisVeryAttempt"
URL = "http://127.0.0.1:8765"
INSTALLATION = "here"
PATIENCE = 60.0  # s: for what comes at once on an idle machine
SHORT_LIMIT = 1.0  # s: the launcher's own limit where an engine hangs on purpose


class Work(Enum):
    """What a process shall do."""

    LONG = "runs until it is asked to end, and then ends with 0"
    STUBBORN = "runs on when it is asked to end, and has a child in a session of its own that does too"
    SUCCEED = "exits with 0"
    FAIL = "writes the line 'no route to host' and exits with 3"
    OUTDATED = "exits with 7"
    OUT_OF_MEMORY = "is killed because memory ran out"
    IMPOSSIBLE = "can never start: a wrong template or image"


@dataclass(frozen=True)
class Seen:
    """What a process sees of itself."""

    environment: Mapping[str, str]  # with the token, also where a secret brought it
    command_lines: str  # of it and its ancestors and helpers, whatever others on the machine or in the engine can read


class Bench(ABC):
    """One engine with everything a test may do to it, beside and behind the launcher's back."""

    hangs: ClassVar[tuple[str, ...]] = ("start", "poll", "stop", "list")  # calls that an engine without answer holds up

    @abstractmethod
    def launcher(self, *, installation: str = INSTALLATION, limit: float | None = None) -> Launcher:
        """A launcher made anew, as after a restart, on the same engine; `limit`: its longest call in seconds."""

    @abstractmethod
    def template(self, work: Work) -> dict[str, Any]:
        """A template whose process does this."""

    @abstractmethod
    def seen(self, handle: str) -> Seen:
        """What the process of a LONG work sees; waits until it runs."""

    @abstractmethod
    def count(self, identity: str) -> int:
        """How many processes (containers, Pods) with this identity the engine has, ended ones too."""

    @abstractmethod
    def alive(self, handle: str) -> int:
        """How many of the handle's process and its descendants live now.

        Asked first while a LONG or STUBBORN work runs: waits until it is up, with its child."""

    @abstractmethod
    def replace(self, handle: str) -> Callable[[], bool]:
        """End the handle's process behind the launcher's back and let another one take its number or name; the answer
        tells whether that other one still lives."""

    @abstractmethod
    def lose(self, handle: str) -> None:
        """Take the process and all that is known of it away, as a person or a crash of the machine would."""

    @abstractmethod
    def unable(self) -> AbstractContextManager[None]:
        """Meanwhile the engine refuses every start for now: full, over a quota, away."""

    @abstractmethod
    def hanging(self, handle: str | None) -> AbstractContextManager[None]:
        """Meanwhile the engine takes calls and never answers."""

    def start_and_die(self, launch: Launch) -> None:
        """Start, and end before the handle is handed on, as a scaler that is killed between the two."""
        self.launcher().start(launch)

    def close(self) -> None:
        """End all that was started."""
        launcher = self.launcher()
        for process in launcher.list():
            launcher.stop(process.handle, force=True)


def launch(template: Mapping[str, Any], *, set_id: int = 4, runner_id: int = 17, attempt: int = 1) -> Launch:
    return Launch(
        identity=identity_of(set_id=set_id, runner_id=runner_id, attempt=attempt),
        installation=INSTALLATION,
        set_id=set_id,
        runner_id=runner_id,
        attempt=attempt,
        url=URL,
        token=TOKEN,
        name=f"burst-{runner_id}",
        labels=("self-hosted", "linux"),
        template=template,
    )


def until(condition: Callable[[], Any], what: str) -> Any:
    """The first true answer. Fails after PATIENCE."""
    deadline = time.monotonic() + PATIENCE
    while not (answer := condition()):
        assert time.monotonic() < deadline, f"{what} did not come within {PATIENCE:.0f} s"
        time.sleep(0.02)
    return answer


def until_state(launcher: Launcher, handle: str, state: str) -> Process:
    """The process once it is in this state. Fails where it is gone, or exited instead."""

    def found() -> Process | None:
        process = launcher.poll(handle)
        assert process is not None, f"{handle} is gone"
        assert process.state in (state, "starting", "running"), process
        return process if process.state == state else None

    answer: Process = until(found, f"state {state} of {handle}")
    return answer


def until_ended(launcher: Launcher, handle: str) -> Process | None:
    """The exited process, or None where nothing is known of it any more."""

    def ended() -> tuple[Process | None] | None:
        process = launcher.poll(handle)
        return (process,) if process is None or process.state == "exited" else None

    found: tuple[Process | None] = until(ended, f"the end of {handle}")
    return found[0]


class LauncherContract:
    """Row 50. Subclass as Test…, and give it a fixture `bench`."""

    @pytest.fixture
    def bench(self) -> Iterator[Bench]:
        raise NotImplementedError("each launcher's tests bring their own")

    @pytest.fixture
    def launcher(self, bench: Bench) -> Launcher:
        return bench.launcher()

    # --- start -----------------------------------------------------------------------------------------------------

    def test_a_start_gives_a_handle_by_which_the_process_is_found(self, bench: Bench, launcher: Launcher) -> None:
        handle = launcher.start(launch(bench.template(Work.LONG)))
        assert 0 < len(handle) <= MAX_HANDLE and TOKEN not in handle
        process = until_state(launcher, handle, "running")
        assert (process.identity, process.handle) == ("forge-4-17-1", handle)
        assert (process.set_id, process.runner_id, process.attempt) == (4, 17, 1)
        assert process.exit_code is None and process.reason == ""

    def test_the_process_sees_its_token_and_url_and_nobody_reads_the_token_from_a_command_line(
        self, bench: Bench, launcher: Launcher
    ) -> None:
        handle = launcher.start(launch(bench.template(Work.LONG)))
        until_state(launcher, handle, "running")
        seen = bench.seen(handle)
        assert seen.environment[TOKEN_VARIABLE] == TOKEN and seen.environment[URL_VARIABLE] == URL
        assert seen.command_lines and TOKEN not in seen.command_lines

    def test_a_launch_does_not_show_its_token_when_it_is_printed(self, bench: Bench) -> None:
        assert TOKEN not in repr(launch(bench.template(Work.LONG)))

    def test_the_same_identity_again_is_the_same_handle_and_no_second_process(
        self, bench: Bench, launcher: Launcher
    ) -> None:
        wanted = launch(bench.template(Work.LONG))
        first = launcher.start(wanted)
        assert launcher.start(wanted) == first
        assert bench.launcher().start(wanted) == first
        until_state(launcher, first, "running")
        assert bench.count(wanted.identity) == 1 and len(launcher.list()) == 1

    def test_an_identity_whose_process_has_ended_is_not_started_again(self, bench: Bench, launcher: Launcher) -> None:
        wanted = launch(bench.template(Work.SUCCEED))
        first = launcher.start(wanted)
        until_state(launcher, first, "exited")
        assert launcher.start(wanted) == first
        process = launcher.poll(first)
        assert process is not None and process.state == "exited"
        assert bench.count(wanted.identity) == 1

    def test_another_attempt_of_the_same_runner_is_another_process(self, bench: Bench, launcher: Launcher) -> None:
        first = launcher.start(launch(bench.template(Work.LONG), attempt=1))
        second = launcher.start(launch(bench.template(Work.LONG), attempt=2))
        assert first != second
        assert until_state(launcher, first, "running").attempt == 1
        assert until_state(launcher, second, "running").attempt == 2

    def test_many_starts_of_one_identity_at_once_are_one_process(self, bench: Bench) -> None:
        wanted = launch(bench.template(Work.LONG))
        launchers = [bench.launcher() for _ in range(4)]
        together = threading.Barrier(len(launchers))
        handles: list[str | None] = [None] * len(launchers)

        def begin(number: int) -> None:
            together.wait(PATIENCE)

            def attempt() -> str | None:
                try:
                    return launchers[number].start(wanted)
                except TransientLaunchError:  # a loser may be sent away for now, and comes again
                    return None

            handles[number] = until(attempt, "a handle")

        threads = [threading.Thread(target=begin, args=(number,)) for number in range(len(launchers))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE * 2)
        assert len(set(handles)) == 1 and handles[0]
        until_state(launchers[0], handles[0], "running")
        assert bench.count(wanted.identity) == 1 and len(launchers[0].list()) == 1

    def test_what_can_never_start_is_told_at_once_or_by_the_poll(self, bench: Bench, launcher: Launcher) -> None:
        wanted = launch(bench.template(Work.IMPOSSIBLE))
        try:
            handle = launcher.start(wanted)
        except PermanentLaunchError as error:
            reason = error.reason
        else:  # an engine that takes the order and fails later must still end it, with the reason
            process = until_ended(launcher, handle)
            assert process is not None and process.exit_code != 0
            reason = process.reason
        assert 0 < len(reason) <= MAX_REASON and TOKEN not in reason and "Traceback" not in reason

    def test_what_cannot_start_now_is_transient_and_leaves_nothing_that_stops_the_next_try(
        self, bench: Bench, launcher: Launcher
    ) -> None:
        wanted = launch(bench.template(Work.LONG))
        with bench.unable(), pytest.raises(TransientLaunchError) as caught:
            launcher.start(wanted)
        assert caught.value.retry_after > 0
        assert caught.value.reason and TOKEN not in caught.value.reason
        handle = launcher.start(wanted)
        until_state(launcher, handle, "running")
        assert bench.count(wanted.identity) == 1

    # --- poll ------------------------------------------------------------------------------------------------------

    def test_a_clean_end_has_exit_code_0_and_needs_no_reason(self, bench: Bench, launcher: Launcher) -> None:
        process = until_state(launcher, launcher.start(launch(bench.template(Work.SUCCEED))), "exited")
        assert (process.exit_code, process.reason) == (0, "")

    def test_a_failure_has_its_exit_code_and_what_was_written_last(self, bench: Bench, launcher: Launcher) -> None:
        process = until_state(launcher, launcher.start(launch(bench.template(Work.FAIL))), "exited")
        assert process.exit_code == 3
        assert "exit code 3" in process.reason and "no route to host" in process.reason
        assert len(process.reason) <= MAX_REASON

    def test_exit_code_7_says_that_the_runner_is_outdated(self, bench: Bench, launcher: Launcher) -> None:
        process = until_state(launcher, launcher.start(launch(bench.template(Work.OUTDATED))), "exited")
        assert process.exit_code == 7 and "outdated" in process.reason

    def test_an_end_for_want_of_memory_says_so(self, bench: Bench, launcher: Launcher) -> None:
        process = until_state(launcher, launcher.start(launch(bench.template(Work.OUT_OF_MEMORY))), "exited")
        assert process.exit_code == 137 and "out of memory" in process.reason

    def test_a_process_that_somebody_took_away_is_gone(self, bench: Bench, launcher: Launcher) -> None:
        handle = launcher.start(launch(bench.template(Work.LONG)))
        until_state(launcher, handle, "running")
        bench.lose(handle)
        assert until_ended(launcher, handle) is None
        assert launcher.list() == []

    def test_the_exit_code_is_known_to_a_launcher_made_anew(self, bench: Bench) -> None:
        handle = bench.launcher().start(launch(bench.template(Work.FAIL)))
        assert until_state(bench.launcher(), handle, "exited").exit_code == 3

    def test_a_handle_that_never_was_is_gone_and_stopping_it_is_nothing(self, launcher: Launcher) -> None:
        for handle in ("", "forge-4-17-1", "../../etc/passwd", "x" * MAX_HANDLE, "forge-4-17-1:1:1"):
            assert launcher.poll(handle) is None
            launcher.stop(handle, force=False)
            launcher.stop(handle, force=True)

    # --- stop ------------------------------------------------------------------------------------------------------

    def test_a_stop_asks_the_process_to_end(self, bench: Bench, launcher: Launcher) -> None:
        handle = launcher.start(launch(bench.template(Work.LONG)))
        bench.seen(handle)
        launcher.stop(handle, force=False)
        process = until_ended(launcher, handle)
        assert process is None or process.exit_code == 0

    def test_a_stop_by_force_kills_the_process_and_all_its_descendants(self, bench: Bench, launcher: Launcher) -> None:
        handle = launcher.start(launch(bench.template(Work.STUBBORN)))
        until_state(launcher, handle, "running")
        assert bench.alive(handle) >= 2
        launcher.stop(handle, force=True)
        process = until_ended(launcher, handle)
        assert process is None or process.exit_code != 0
        assert bench.alive(handle) == 0

    def test_a_stop_by_force_follows_one_that_was_not_heard(self, bench: Bench, launcher: Launcher) -> None:
        handle = launcher.start(launch(bench.template(Work.STUBBORN)))
        assert bench.alive(handle) >= 2
        launcher.stop(handle, force=False)
        launcher.stop(handle, force=True)
        until_ended(launcher, handle)
        assert bench.alive(handle) == 0

    def test_stopping_twice_or_what_has_ended_is_nothing(self, bench: Bench, launcher: Launcher) -> None:
        handle = launcher.start(launch(bench.template(Work.LONG)))
        bench.seen(handle)
        launcher.stop(handle, force=False)
        launcher.stop(handle, force=False)
        before = until_ended(launcher, handle)
        launcher.stop(handle, force=False)
        launcher.stop(handle, force=True)
        launcher.stop(handle, force=True)
        assert before is None or before.exit_code == 0
        after = launcher.poll(handle)
        assert after is None or after == before

    def test_stopping_one_leaves_the_others(self, bench: Bench, launcher: Launcher) -> None:
        first = launcher.start(launch(bench.template(Work.LONG), runner_id=1))
        other = launcher.start(launch(bench.template(Work.LONG), runner_id=11))
        bench.seen(first)
        bench.seen(other)
        launcher.stop(first, force=True)
        until_ended(launcher, first)
        assert until_state(launcher, other, "running").exit_code is None

    def test_a_stop_never_touches_another_process_under_the_same_number_or_name(
        self, bench: Bench, launcher: Launcher
    ) -> None:
        """Row 36."""
        handle = launcher.start(launch(bench.template(Work.LONG)))
        until_state(launcher, handle, "running")
        other_lives = bench.replace(handle)
        launcher.stop(handle, force=False)
        launcher.stop(handle, force=True)
        assert other_lives()
        process = launcher.poll(handle)
        assert process is None or process.state == "exited"

    # --- list ------------------------------------------------------------------------------------------------------

    def test_a_list_finds_the_processes_of_a_set_or_of_all(self, bench: Bench, launcher: Launcher) -> None:
        template = bench.template(Work.LONG)
        handles = {
            runner: launcher.start(launch(template, set_id=set_id, runner_id=runner))
            for set_id, runner in ((4, 1), (4, 2), (44, 3))
        }
        assert [process.handle for process in launcher.list(4)] == [handles[1], handles[2]]
        assert [process.identity for process in launcher.list(44)] == ["forge-44-3-1"]
        assert [process.runner_id for process in launcher.list()] == [1, 2, 3]
        assert launcher.list(5) == []

    def test_a_launcher_made_anew_finds_them_too(self, bench: Bench) -> None:
        handle = bench.launcher().start(launch(bench.template(Work.LONG)))
        until_state(bench.launcher(), handle, "running")
        (found,) = bench.launcher().list(4)
        assert found == bench.launcher().poll(handle)

    def test_another_installation_on_the_same_engine_sees_none_of_ours(self, bench: Bench, launcher: Launcher) -> None:
        handle = launcher.start(launch(bench.template(Work.LONG)))
        until_state(launcher, handle, "running")
        assert bench.launcher(installation="elsewhere").list() == []
        assert len(launcher.list()) == 1

    def test_a_scaler_killed_before_it_saved_the_handle_finds_the_process_by_its_identity(self, bench: Bench) -> None:
        wanted = launch(bench.template(Work.LONG))
        bench.start_and_die(wanted)
        again = bench.launcher()

        def listed() -> Process | None:
            return next(iter(again.list(wanted.set_id)), None)

        orphan: Process = until(listed, "the orphan")
        assert (orphan.identity, orphan.runner_id, orphan.attempt) == (wanted.identity, 17, 1)
        assert until_state(again, orphan.handle, "running").identity == wanted.identity
        assert bench.alive(orphan.handle) >= 1
        assert again.start(wanted) == orphan.handle  # adopted
        again.stop(orphan.handle, force=True)  # or ended
        until_ended(again, orphan.handle)
        assert bench.alive(orphan.handle) == 0

    # --- an engine that does not answer ----------------------------------------------------------------------------

    @pytest.mark.parametrize("call", ["start", "poll", "stop", "list"])
    def test_a_call_without_an_answer_ends_at_the_limit(self, bench: Bench, call: str) -> None:
        handle = bench.launcher().start(launch(bench.template(Work.LONG), runner_id=1))
        until_state(bench.launcher(), handle, "running")
        hurried = bench.launcher(limit=SHORT_LIMIT)
        calls: dict[str, Callable[[], object]] = {
            "start": lambda: hurried.start(launch(bench.template(Work.LONG), runner_id=2)),
            "poll": lambda: hurried.poll(handle),
            "stop": lambda: hurried.stop(handle, force=True),
            "list": lambda: hurried.list(),
        }
        with bench.hanging(handle):
            began = time.monotonic()
            if call in bench.hangs:
                with pytest.raises(TransientLaunchError) as caught:
                    calls[call]()
                assert caught.value.retry_after > 0 and TOKEN not in caught.value.reason
            else:
                calls[call]()
            assert time.monotonic() - began < PATIENCE / 2
