"""How does one job run from its acknowledgement to its end on the forge?"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ci.runner.client import ApiError, Client, GaveUp
from ci.runner.control import Control
from ci.runner.heartbeat import Heartbeat
from ci.runner.leftovers import SPOOL, TRACKING_FILE, new_tracking_id
from ci.runner.logstream import LogStream
from ci.runner.masks import Masks
from ci.runner.payload import Payload
from ci.runner.process import end_orphans
from ci.runner.session import Session
from ci.runner.stages import Stages
from ci.runner.workspace import Folders, WorkError

STOP_PATIENCE = 10.0
LONGEST_REPORT = 24 * 3600.0


@dataclass(frozen=True)
class Host:
    """The runner that the job runs on."""

    name: str
    labels: tuple[str, ...]
    pass_env: frozenset[str] = frozenset()


class Job:
    """One job. `run` returns when everything about it is on the forge, or it is no longer ours."""

    def __init__(
        self,
        payload: Payload,
        *,
        client: Client,
        folders: Folders,
        host: Host,
        report: Callable[[str], None],
    ) -> None:
        self.payload = payload
        self.control = Control(grace=payload.cancel_grace_seconds)
        self._client = client
        self._folders = folders
        self._host = host
        self._report = report
        tokens = (payload.token, payload.id_token_request_token, payload.runtime.token)
        self._masks = Masks([*tokens, *payload.masks, *payload.secrets.values()])
        self._tracking = new_tracking_id()
        self._heartbeat = Heartbeat(client, job_id=payload.id, token=payload.token, control=self.control)

    def run(self) -> str:
        """The job's conclusion, or why it was dropped."""
        try:
            self._heartbeat.acknowledge()
        except (ApiError, GaveUp) as error:
            return f"dropped before its start: {error}"
        spool = self._folders.root / f"{SPOOL}{self.payload.id}"
        self._heartbeat.start()
        try:
            self._folders.root.mkdir(parents=True, exist_ok=True)
            (self._folders.root / TRACKING_FILE).write_text(self._tracking)
            log = self._open_log(spool)
        except OSError as error:
            return self._refuse(f"The work folder {self._folders.root} cannot be used: {error.strerror}")
        log.start()
        try:
            stages = Stages(
                log=log, masks=self._masks, control=self.control, tracking=self._tracking, report=self._report
            )
            conclusion = stages.run(self._session, labels=self._host.labels)
            return self._finish(conclusion, log, stages)
        finally:
            self._heartbeat.stop()
            end_orphans(self._tracking)
            spool.unlink(missing_ok=True)
            self._tidy()

    def _session(self) -> Session:
        return Session(
            self.payload,
            folders=self._folders,
            masks=self._masks,
            control=self.control,
            runner_name=self._host.name,
            tracking=self._tracking,
            pass_env=self._host.pass_env,
        )

    def _open_log(self, spool: Path) -> LogStream:
        return LogStream(
            self._client,
            job_id=self.payload.id,
            token=self.payload.token,
            control=self.control,
            spool=spool,
            first=self.payload.log_offset,
            report=self._report,
        )

    def _refuse(self, why: str) -> str:
        """End a job that cannot even have a log."""
        self._report(why)
        self._heartbeat.stop()
        step = {
            "number": 1,
            "name": "Set up job",
            "state": "ended",
            "conclusion": "failure",
            "first_line": self.payload.log_offset,
            "line_count": 0,
            "annotations": [{"level": "error", "message": why}],
        }
        try:
            return self._send_end({"conclusion": "failure", "outputs": {}, "steps": [step]})
        except ApiError as error:
            return f"dropped: {error}"

    def _tidy(self) -> None:
        try:
            self._folders.clean()
            (self._folders.root / TRACKING_FILE).unlink(missing_ok=True)
        except (OSError, WorkError) as error:
            # The next job's set-up tries again and says so in its log.
            self._report(str(error))

    def _finish(self, conclusion: str, log: LogStream, stages: Stages) -> str:
        """Send the last lines, then the end; both as often as it takes."""
        log.close(patience=STOP_PATIENCE if self.control.stopped else LONGEST_REPORT)
        if self.control.abandoned:
            return f"dropped: {self.control.abandoned}"
        # From here on "the job has ended" is our own doing, and must not stop the repeats of a lost answer.
        self._heartbeat.stop()
        try:
            end = {"conclusion": conclusion, "outputs": stages.outputs, "steps": stages.reports()}
            return self._send_end({**end, "environment_url": stages.environment_url})
        except ApiError as error:
            if error.job_is_gone or error.status not in (400, 413):
                return f"dropped: {error}"
            self._report(f"job {self.payload.id}: its end is sent without steps and outputs: {error}")
        bare_end = {"conclusion": "failure" if conclusion == "success" else conclusion, "outputs": {}, "steps": []}
        try:
            return self._send_end(bare_end)
        except ApiError as error:
            return f"dropped: {error}"

    def _send_end(self, body: dict[str, Any]) -> str:
        began = time.monotonic()

        def stop() -> bool:
            limit = STOP_PATIENCE if self.control.stopped else LONGEST_REPORT
            return self.control.abandoned is not None or time.monotonic() > began + limit

        try:
            _, answer = self._client.call(
                "POST", f"jobs/{self.payload.id}/complete", token=self.payload.token, body=body, stop=stop
            )
        except GaveUp:
            return "dropped: the forge did not answer"
        return str(answer.get("conclusion") or body["conclusion"])
