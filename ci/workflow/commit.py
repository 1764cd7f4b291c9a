"""Does a commit message ask for no workflow run? (GitHub docs, "Skipping workflow runs")"""

from __future__ import annotations

import re

_MARKS = ("[skip ci]", "[ci skip]", "[no ci]", "[skip actions]", "[actions skip]")
_TRAILER = re.compile(r"skip-checks:\s*true\s*", re.IGNORECASE)


def skips_ci(message: str) -> bool:
    """Whether a push or pull_request whose head commit has this message starts no workflow: one of GitHub's five marks
    anywhere, or a trailer `skip-checks: true` in the last paragraph."""
    lowered = message.casefold()
    if any(mark in lowered for mark in _MARKS):
        return True
    _, blank, trailers = message.strip().replace("\r\n", "\n").rpartition("\n\n")
    return bool(blank) and any(_TRAILER.fullmatch(line) for line in trailers.split("\n"))
