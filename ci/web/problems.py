"""Where in a workflow file is what is wrong? Each problem with the lines around it, the line itself marked."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from ci.lifecycle.workflow_files import notices
from ci.models import Run, Workflow
from forge.git import bare
from forge.models import Repository

LINES_AROUND = 2
MOST_PROBLEMS = 50
MOST_CHARACTERS = 300

# A problem in a called file stands where it is called, and says in GitHub's words where it is itself.
_CALLED = re.compile(
    r"Error from called workflow (?P<path>.+?) \(Line: (?P<line>\d{1,9}), Col: (?P<column>\d{1,9})\): "
)

logger = logging.getLogger(__name__)


def marked_problems(run: Run) -> list[dict[str, Any]]:
    """The problems of a startup failure, beside the text of the commit that it ran on."""
    return mark(run.repository, run.sha, run.problems)


def marked_file(repository: Repository, workflow: Workflow) -> list[dict[str, Any]]:
    """The problems of the file as the default branch has it now."""
    return mark(repository, _head(repository), workflow.problems) if workflow.problems else []


def marked_notices(repository: Repository, workflow: Workflow) -> list[dict[str, Any]]:
    """What that file asks for that not every runner does; those of another repository's files are for its readers."""
    if workflow.problems or not workflow.on_default_branch:
        return []
    sha = _head(repository)
    found = [asdict(one) for one in notices(repository, sha, workflow.path) if "@" not in one.path] if sha else []
    return mark(repository, sha, found)


def _head(repository: Repository) -> str:
    return bare.resolve(repository, f"refs/heads/{repository.default_branch}") or ""


def mark(repository: Repository, sha: str, problems: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each problem as its `message` and its `places`: where it is, and where in a file that is called from there."""
    files: dict[str, list[str]] = {}
    found = []
    for problem in problems[:MOST_PROBLEMS]:
        places = [_place(repository, sha, files, problem["path"], problem["line"], problem["column"])]
        called = _CALLED.match(problem["message"])
        # What another repository's file says is for those to see who may read that repository.
        if called is not None and "@" not in called["path"]:
            places.append(_place(repository, sha, files, called["path"], called["line"], called["column"]))
        found.append({"message": problem["message"], "places": places})
    return found


def _place(
    repository: Repository, sha: str, files: dict[str, list[str]], path: str, line: Any, column: Any
) -> dict[str, Any]:
    """`path`, `line`, `column`, `sha`, and an `excerpt` of (number, text, is the line, caret). Keeps what it reads."""
    line, column = int(line or 0), int(column or 0)
    if path not in files:
        files[path] = _lines(repository, sha, path)
    excerpt = _excerpt(files[path], line, column)
    return {"path": path, "line": line, "column": column, "sha": sha, "excerpt": excerpt}


def _lines(repository: Repository, sha: str, path: str) -> list[str]:
    try:
        data = bare.blob(repository, sha, path, max_bytes=bare.MAX_FILE) if sha else None
    except bare.GitError:
        logger.warning("Could not read %s of %s for its page.", path, repository, exc_info=True)
        data = None
    return (data or b"").decode("utf-8", "replace").split("\n")


def _excerpt(lines: Sequence[str], line: int, column: int) -> list[tuple[int, str, bool, str]]:
    if not 0 < line <= len(lines):
        return []
    first = max(1, line - LINES_AROUND)
    shown = lines[first - 1 : line + LINES_AROUND]
    return [
        (
            number,
            text.rstrip("\r").expandtabs(4)[:MOST_CHARACTERS],
            number == line,
            _caret(text, column) if number == line else "",
        )
        for number, text in enumerate(shown, first)
    ]


def _caret(text: str, column: int) -> str:
    """A mark to stand below the column; nothing where that lies outside what is shown."""
    before = len(text[: column - 1].expandtabs(4)) if column > 0 else MOST_CHARACTERS
    return f"{' ' * before}^" if before < MOST_CHARACTERS else ""
