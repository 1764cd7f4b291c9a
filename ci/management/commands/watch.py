"""`manage.py watch`: acts on every deadline of jobs, runners, schedules and logs."""

from __future__ import annotations

import signal
from typing import Any

from django.core.management.base import BaseCommand

from ci.lifecycle.watch import Watch
from forge.session_names import name_sessions


class Command(BaseCommand):
    help = (
        "Act on deadlines: unacknowledged, lost, timed out and cancelled jobs, schedules, logs. "
        "Any number may run; one leads."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        name_sessions("watch")
        watch = Watch()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: watch.stop())
        watch.run()
