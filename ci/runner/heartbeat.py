"""Is the job still wanted?"""

from __future__ import annotations

import threading
import time
from typing import Any

from ci.runner.client import ApiError, Client, GaveUp
from ci.runner.clock import seconds_until
from ci.runner.control import Control

INTERVAL = 10.0
# A server that answers at once (it restarts, or cannot wait) is not asked more often than this.
SHORTEST = 2.0


class Heartbeat:
    """Keeps the job alive and brings cancels to its Control."""

    def __init__(self, client: Client, *, job_id: int, token: str, control: Control) -> None:
        self._client = client
        self._path = f"jobs/{job_id}/heartbeat"
        self._token = token
        self._control = control
        self._done = threading.Event()

    def acknowledge(self) -> None:
        """The first heartbeat, before any work. Raises ApiError when the job is not ours any more, GaveUp."""
        self._beat(wait=0)

    def start(self) -> None:
        threading.Thread(target=self._run, name="heartbeat", daemon=True).start()

    def stop(self) -> None:
        """No further heartbeat begins; one that waits on the server is left to run out."""
        self._done.set()

    def _gone(self) -> bool:
        return self._done.is_set() or self._control.abandoned is not None

    def _beat(self, *, wait: float) -> None:
        _, answer = self._client.call(
            "POST", self._path, token=self._token, body={"wait": wait}, wait=wait, stop=self._gone
        )
        self._note(answer)

    def _note(self, answer: dict[str, Any]) -> None:
        reason = answer.get("cancel")
        if reason and not self._done.is_set():
            left = seconds_until(answer.get("force_at"), now=answer.get("now"), ahead=self._client.ahead)
            self._control.cancel(str(reason), grace=left)

    def _run(self) -> None:
        while not self._gone():
            began = time.monotonic()
            cancelled = self._control.cancel_reason is not None
            try:
                self._beat(wait=0 if cancelled else INTERVAL)
            except GaveUp:
                return
            except ApiError as error:
                if self._done.is_set():
                    return
                if error.job_is_gone:
                    self._control.abandon(str(error))
                    return
            took = time.monotonic() - began
            # Once cancelled the server has nothing to wait for: keep the rhythm ourselves.
            self._done.wait((INTERVAL / 2 if cancelled else SHORTEST) - took)
