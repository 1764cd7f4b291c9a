"""How is a call to an engine kept from lasting longer than it may?"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from ci.scaling.launchers.protocol import TransientLaunchError

Answer = TypeVar("Answer")
SOON = 5.0  # s: an engine that was too slow once is asked again before long


class Deadline:
    """The moment at which a call must have ended."""

    def __init__(self, seconds: float, *, engine: str) -> None:
        self._seconds = seconds
        self._until = time.monotonic() + seconds
        self._engine = engine

    def left(self) -> float:
        """Seconds left. Raises TransientLaunchError where there are none."""
        seconds = self._until - time.monotonic()
        if seconds <= 0:
            raise self.missed()
        return seconds

    def missed(self) -> TransientLaunchError:
        return TransientLaunchError(f"{self._engine} did not answer within {self._seconds:.0f} s", SOON)


def within(seconds: float, call: Callable[[Deadline], Answer], *, engine: str) -> Answer:
    """
    What `call` answers or raises. Raises TransientLaunchError after `seconds`, whatever it still waits for.

    The time-outs of the engines' clients are a limit for each piece of an answer, and a slow engine sends many: so the
    call has a thread, which ends at its next request.
    """
    deadline = Deadline(seconds, engine=engine)
    work = _Work(call, deadline)
    thread = threading.Thread(target=work.run, name=f"asks {engine}", daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        raise deadline.missed()
    return work.answer()


class _Work(Generic[Answer]):
    def __init__(self, call: Callable[[Deadline], Answer], deadline: Deadline) -> None:
        self._call = call
        self._deadline = deadline
        self._answers: list[Answer] = []
        self._error: BaseException | None = None

    def run(self) -> None:
        try:
            self._answers.append(self._call(self._deadline))
        except BaseException as error:  # it belongs to whoever waits
            self._error = error

    def answer(self) -> Answer:
        if self._error is not None:
            raise self._error
        return self._answers[0]
