"""What does `manage.py up --demo-set` show? A runner set that grows for a burst of jobs, and shrinks again."""

from __future__ import annotations

import time

from django.conf import settings

from ci.lifecycle.runner_sets import save_runner_set
from ci.management.demonstration import BURST, Demo
from ci.management.start_errors import CannotContinue
from ci.models import ACTIVE_STATES, Job, Runner, RunnerPhase, RunnerSet

NAME = "demo-set"
MOST = 4
_SHRINK_SECONDS = 120


class SetDemo(Demo):
    """As the other demo; it is over when the run is, and the set has no runner any more."""

    sample = BURST

    def push(self) -> None:
        """Make the set where it is missing, then push. Raises as the other demo's, InvalidInput."""
        fields = {"labels": [NAME], "minimum": 0, "maximum": MOST, "launcher": RunnerSet.Launcher.LOCAL}
        known = RunnerSet.objects.filter(name=NAME, owner=None, repository=None).first()
        if known is None:
            fields["name"] = NAME
        made = save_runner_set(
            runner_set_id=known.pk if known else None, fields=fields, version=None, actor=self._admin
        )
        self._set_id, self._seen, self._peak, self._late_at = made.pk, (-1, -1), 0, 0.0
        self._progress.say(f"  Runner set {made}: {made.minimum} to {made.maximum} local processes, one job each")
        super().push()

    def follow(self) -> bool:
        """Tell how the set and the run go on; whether both have come to rest. Raises CannotContinue when late."""
        ended = super().follow()
        processes = self._tell()
        if not ended:
            return False
        self._late_at = self._late_at or time.monotonic() + _SHRINK_SECONDS + settings.SCALE_CALM_SECONDS
        if processes and time.monotonic() > self._late_at:
            raise CannotContinue(f"The runner set {NAME} still has {processes} processes.")
        return processes == 0

    def exit_status(self) -> int:
        """0 where the run ended in success and the set had grown to its maximum."""
        status = super().exit_status()
        self._progress.say(f"The runner set {NAME} had {self._peak} runners at once, and has none now.")
        return status if self._peak == MOST else 1

    def _tell(self) -> int:
        """How many processes of the set there may be."""
        live = Runner.objects.filter(runner_set=self._set_id, stopped_at=None)
        processes = live.count()
        busy = Job.objects.filter(runner__runner_set=self._set_id, state__in=ACTIVE_STATES).count()
        ready = live.filter(phase__in=[RunnerPhase.PENDING, RunnerPhase.RUNNING], ready=True).count()
        self._peak = max(self._peak, processes)
        if (processes, ready) != self._seen:
            self._seen = (processes, ready)
            self._progress.say(f"    {NAME}: {processes} runners, {ready} up, {busy} with a job")
        return processes
