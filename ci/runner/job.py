"""How does one job run from its acknowledgement to its end?"""

from __future__ import annotations

import re
import time
import traceback
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ci.runner.client import ApiError, Client, GaveUp
from ci.runner.console import Console
from ci.runner.control import Control, Guard
from ci.runner.heartbeat import Heartbeat
from ci.runner.logstream import MOST_STEPS, LogStream, bare
from ci.runner.masks import Masks, storable
from ci.runner.metadata import with_ids
from ci.runner.payload import Payload
from ci.runner.process import end_orphans
from ci.runner.session import Scope, Session, StepFailure
from ci.runner.setup import SetUp
from ci.runner.steps import Steps
from ci.runner.uses import Pre, title
from ci.runner.workspace import Folders, WorkError

STOP_PATIENCE = 10.0
LONGEST_REPORT = 24 * 3600.0
OUTPUT_LIMIT = 1024 * 1024  # characters, all outputs of a job together
MOST_OUTPUTS = 100

# Files in the work folder, from which a later runner learns what one that was killed left behind.
TRACKING_FILE = ".job"
SPOOL = ".spool-"


def clear_leftovers(work: Path) -> list[int]:
    """End the processes and delete the log lines of a job whose runner was killed; the ended processes' ids."""
    for spool in work.glob(f"{SPOOL}*"):
        spool.unlink(missing_ok=True)
    try:
        tracking = (work / TRACKING_FILE).read_text()
    except OSError:
        return []
    ended = end_orphans(tracking) if re.fullmatch(r"forge_[0-9a-f]{32}\.", tracking) else []
    (work / TRACKING_FILE).unlink(missing_ok=True)
    return ended


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
        self._masks = Masks([payload.token, *payload.masks, *payload.secrets.values()])
        self._consoles: list[Console] = []
        self._outputs: dict[str, str] = {}
        self._debug = False
        # Unlike the job's number this is unique on the machine, where runners of other forges may work too.
        self._tracking = f"forge_{uuid.uuid4().hex}."
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
            self._log = self._open_log(spool)
        except OSError as error:
            return self._refuse(f"The work folder {self._folders.root} cannot be used: {error.strerror}")
        self._log.start()
        try:
            return self._finish(self._work())
        finally:
            self._heartbeat.stop()
            end_orphans(self._tracking)
            spool.unlink(missing_ok=True)
            self._tidy()

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
        }
        step["annotations"] = [{"level": "error", "message": why}]
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

    def _work(self) -> str:
        """Set up, run, clean up. A fault of the runner itself ends the job as a failure that says so."""
        setup = self._console("Set up job")
        setup.begin()
        try:
            session = Session(
                self.payload,
                folders=self._folders,
                masks=self._masks,
                control=self.control,
                runner_name=self._host.name,
                tracking=self._tracking,
                pass_env=self._host.pass_env,
            )
            return self._stages(session, setup)
        except Exception as error:
            # Whatever happened, the job must end, and with a reason.
            self._report(self._masks.hide("".join(traceback.format_exception(error))))
            self._consoles[-1].error(f"The runner failed: {type(error).__name__}: {error}")
            for console in self._consoles:
                if console.conclusion is None:
                    console.end("failure")
            return "cancelled" if self.control.cancelled else "failure"

    def _stages(self, session: Session, setup: Console) -> str:
        steps = Steps(session)
        scope = Scope()
        guard = Guard(self.control, survives=lambda: True)
        definitions = with_ids(self.payload.steps)
        self._debug = setup.debug = session.debug
        pres = SetUp(session, scope, labels=self._host.labels, console=setup).run(steps, definitions)
        if pres is None:
            session.failed = True
            for definition in definitions:
                self._console(title(session, scope, definition, session.early_contexts())).end("skipped")
        else:
            self._run_steps(session, steps, scope, definitions, pres, guard)
        self._complete(session, scope)
        return session.status

    def _console(self, name: str) -> Console:
        console = Console(
            number=len(self._consoles) + 1,
            name=name,
            log=self._log,
            masks=self._masks,
            debug=self._debug,
        )
        self._consoles.append(console)
        return console

    def _run_steps(
        self,
        session: Session,
        steps: Steps,
        scope: Scope,
        definitions: list[dict[str, Any]],
        pres: list[Pre],
        guard: Guard,
    ) -> None:
        pre_consoles = [self._console(pre.name) for pre in pres]
        early = session.early_contexts()
        consoles = [self._console(title(session, scope, definition, early)) for definition in definitions]
        for console in (*pre_consoles, *consoles):
            console.announce()
        for pre, console in zip(pres, pre_consoles, strict=True):
            self._stage(session, console, pre.run, pre.holds, guard)
        for definition, console in zip(definitions, consoles, strict=True):
            if self.control.over:
                console.end("cancelled" if session.control.cancelled else "skipped")
                continue
            console.begin()
            console.end(steps.perform(scope, definition, console=console, parent=guard))
        for post in reversed(scope.posts):
            if self.control.over:
                break
            self._stage(session, self._console(post.name), post.run, post.holds, guard)

    def _stage(
        self,
        session: Session,
        console: Console,
        run: Callable[[Console, Guard], None],
        holds: Callable[[], bool],
        guard: Guard,
    ) -> None:
        """A pre or post step. It goes on through a cancel: cleaning up is what it is there for."""
        console.begin()
        try:
            if not holds():
                console.end("skipped")
                return
            run(console, guard)
            console.end("success")
        except StepFailure as error:
            if self.control.over:
                console.error("The operation was canceled.")
                console.end("cancelled")
                return
            if str(error):
                console.error(str(error))
            session.failed = True
            console.end("failure")

    def _complete(self, session: Session, scope: Scope) -> None:
        console = self._console("Complete job")
        console.begin()
        if self.control.stopped:
            console.error(f"The job was stopped: {self.control.stopped}")
        elif self.control.cancel_reason and self.control.over:
            console.error("The job did not end within the time a cancelled job has, and was stopped.")
        try:
            self._evaluate_outputs(session, scope, console)
        except StepFailure as error:
            console.error(str(error))
            session.failed = True
        console.print("Cleaning up orphan processes")
        for pid in end_orphans(self._tracking):
            console.print(f"Terminate orphan process: pid ({pid})")
        console.end("success" if session.status == "success" or not console.has_errors else "failure")

    def _evaluate_outputs(self, session: Session, scope: Scope, console: Console) -> None:
        """A value with a secret in it is left out, as on GitHub: outputs are shown and stored in clear."""
        outputs = self.payload.definition.get("outputs")
        found = session.texts(outputs, session.contexts(scope), session.functions(scope), what="outputs")
        size = 0
        for name, value in found.items():
            if self._masks.found_in(value):
                console.warning(f"Skip output '{name}' since it may contain secret.")
            elif size + len(name) + len(value) > OUTPUT_LIMIT or len(self._outputs) >= MOST_OUTPUTS or len(name) > 255:
                console.warning(
                    f"Skip output '{name[:255]}': a job has at most {MOST_OUTPUTS} outputs "
                    f"of {OUTPUT_LIMIT // 1024} KiB together. Pass files as artifacts."
                )
            else:
                size += len(name) + len(value)
                self._outputs[storable(name)] = storable(value)
                console.print(f"Set output '{name}'")

    def _finish(self, conclusion: str) -> str:
        """Send the last lines, then the end; both as often as it takes."""
        self._log.close(patience=STOP_PATIENCE if self.control.stopped else LONGEST_REPORT)
        if self.control.abandoned:
            return f"dropped: {self.control.abandoned}"
        # From here on "the job has ended" is our own doing, and must not stop the repeats of a lost answer.
        self._heartbeat.stop()
        body = {
            "conclusion": conclusion,
            "outputs": self._outputs,
            "steps": [bare(console.report()) for console in self._consoles[:MOST_STEPS]],
        }
        try:
            return self._send_end(body)
        except ApiError as error:
            if error.job_is_gone or error.status not in (400, 413):
                return f"dropped: {error}"
            self._report(f"job {self.payload.id}: its end is sent without steps and outputs: {error}")
        try:
            return self._send_end(
                {"conclusion": "failure" if conclusion == "success" else conclusion, "outputs": {}, "steps": []}
            )
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
