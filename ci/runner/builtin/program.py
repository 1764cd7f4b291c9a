"""What does the program of a built-in action do from its first to its last line?"""

from __future__ import annotations

import io
import os
import sys
import traceback
from collections.abc import Callable
from typing import NoReturn, cast

from ci.runner.builtin import cache, download_artifact, merge_artifacts, step, upload_artifact
from ci.runner.builtin.step import Call, Failure

ACTIONS: dict[str, Callable[[Call], None]] = {
    "actions/upload-artifact": upload_artifact.run,
    "actions/upload-artifact/merge": merge_artifacts.run,
    "actions/download-artifact": download_artifact.run,
    "actions/cache": cache.run,
    "actions/cache/restore": cache.run_restore,
    "actions/cache/save": cache.run_save,
}
INTERRUPTED = 130


def main() -> NoReturn:
    """Arguments: the action, its stage and its major. Ends the process."""
    # Names of files need not be UTF-8.
    cast("io.TextIOWrapper", sys.stdout).reconfigure(errors="backslashreplace")
    name, stage, major = sys.argv[1:4]
    code = 0
    try:
        ACTIONS[name](Call(stage, int(major)))
    except Failure as problem:
        step.error(str(problem))
        code = 1
    except OSError as problem:
        step.error(f"{problem.filename or name}: {problem.strerror or problem}")
        code = 1
    except Exception as problem:
        # A fault of the action itself must end its step with words, and not wait for its threads.
        step.error(f"The built-in {name} failed: {type(problem).__name__}: {problem}")
        step.debug(traceback.format_exc())
        code = 1
    except KeyboardInterrupt:
        code = INTERRUPTED
    # Transfers under way in other threads end with the process.
    sys.stdout.flush()
    os._exit(code)
