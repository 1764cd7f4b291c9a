"""What does a runner that was killed leave behind, and how does the next one clear it?"""

from __future__ import annotations

import re
import uuid
from pathlib import Path

from ci.runner.process import end_orphans

# Files in the work folder, from which a later runner learns what one that was killed left behind.
TRACKING_FILE = ".job"
SPOOL = ".spool-"


def new_tracking_id() -> str:
    """Unlike the job's number this is unique on the machine, where runners of other forges may work too."""
    return f"forge_{uuid.uuid4().hex}."


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
