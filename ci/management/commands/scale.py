"""`manage.py scale`: keeps the runner sets at the size that their jobs need."""

from __future__ import annotations

import signal
from typing import Any

from django.core.management.base import BaseCommand

from ci.scaling.scaler import Scaler
from forge.session_names import name_sessions


class Command(BaseCommand):
    help = (
        "Start and end the runners of runner sets as jobs come and go. Any number may run; one leads. "
        "Runners that it started go on when it ends, and are found again by the next one."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        name_sessions("scale")
        scaler = Scaler()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: scaler.stop())
        scaler.run()
