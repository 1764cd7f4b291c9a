"""What is wrong with a workflow file, and where?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

MAX_PROBLEMS = 10
MAX_MESSAGE = 500


@dataclass(frozen=True, slots=True)
class Problem:
    """One finding: `line` and `column` count from 1; both are 0 where the whole file is meant."""

    path: str
    line: int
    column: int
    message: str

    def __str__(self) -> str:
        """GitHub's own form: `<path> (Line: N, Col: M): <text>`."""
        where = f" (Line: {self.line}, Col: {self.column})" if self.line else ""
        return f"{self.path}{where}: {self.message}"


class WorkflowErrors(Exception):
    """A workflow file was refused; `problems` holds 1 to 10 findings in the order of the file."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems: tuple[Problem, ...] = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


class PlanError(Exception):
    """A valid workflow, or one of its jobs, cannot be planned for this event; the text says why."""


class Problems:
    """Collects the findings of one file, at most ten, each message at most 500 characters (GitHub's ParseOptions)."""

    def __init__(self, path: str, *, github_only: bool = False) -> None:
        """`github_only`: leave out what GitHub's own parser accepts and only this server refuses."""
        self.path = path
        self.github_only = github_only
        self._found: dict[tuple[str, int, int, str], Problem] = {}

    def inside(self, path: str) -> Problems:
        """The same collection, for findings in another file that this one calls."""
        other = Problems(path, github_only=self.github_only)
        other._found = self._found
        return other

    def add(self, line: int, column: int, message: str, *, own: bool = False) -> None:
        """Record a finding; `own` ones are this server's, not GitHub's parser's. A repeat (an alias checked twice)
        and everything after the tenth change nothing."""
        if own and self.github_only:
            return
        if len(message) > MAX_MESSAGE:
            message = message[: MAX_MESSAGE - 5] + "[...]"
        if not self.full:
            found = Problem(self.path, line, column, message)
            self._found.setdefault((self.path, line, column, message), found)

    @property
    def full(self) -> bool:
        return len(self._found) >= MAX_PROBLEMS

    def __len__(self) -> int:
        return len(self._found)

    def __bool__(self) -> bool:
        return bool(self._found)

    def __iter__(self) -> Iterator[Problem]:
        """The findings: those of this file first, each file's in the order of its text."""
        return iter(sorted(self._found.values(), key=lambda found: (found.path != self.path, found.line, found.column)))

    def raise_if_any(self) -> None:
        """Raises WorkflowErrors when anything was found."""
        if self._found:
            raise WorkflowErrors(self)
