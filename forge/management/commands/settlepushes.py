"""How does an operator repair pushes that a killed process left recorded?"""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from forge.git.receive import repair
from forge.models import Push


class Command(BaseCommand):
    help = "Settle pushes whose process died between git and the database (also done at every start, and by watch)."

    def handle(self, *args: Any, **options: Any) -> None:
        decided = repair()
        left = Push.objects.filter(state=Push.State.RECORDED).count()
        self.stdout.write(f"Decided {decided}; {left} still under way.")
