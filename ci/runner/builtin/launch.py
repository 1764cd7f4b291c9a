"""How is a built-in action started?"""

from __future__ import annotations

import os
import sys

from ci.runner.console import Console
from ci.runner.javascript import JavaScript

# The program sees the runner's own modules and none that the job's environment names.
START = "import sys; sys.path[:] = sys.argv.pop(1).split('\\n'); from ci.runner.builtin.program import main; main()"
OPTIONS = ("-E", "-P", "-X", "utf8")


class BuiltIn(JavaScript):
    """One use of a built-in action in a job: all as for a JavaScript action but the program."""

    def _command(self, stage: str, console: Console) -> list[str]:
        runs = self._action.runs
        modules = "\n".join(os.path.abspath(path) for path in sys.path)
        return [sys.executable, *OPTIONS, "-c", START, modules, str(runs[stage]), stage, str(runs["major"])]
