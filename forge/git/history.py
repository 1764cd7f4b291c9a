"""What happened in a bare repository? Commits, their differences and their order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from forge.git.names import is_ref_name, is_sha
from forge.git.program import GitError, GitTimeout, OutputTooLarge, head, run
from forge.models import ZERO_SHA, Repository

_EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
_FIELDS = "%x00".join(["%H", "%P", "%an", "%ae", "%aI", "%cn", "%ce", "%cI", "%s", "%b"])
_FIELD_COUNT = 10
_MAX_COMMITS = 1000
_MAX_LOG = 16 * 1024 * 1024  # bytes
_MAX_PATHS = 3000


@dataclass(frozen=True)
class Commit:
    sha: str
    parents: tuple[str, ...]
    author_name: str
    author_email: str
    authored_at: datetime | None
    committer_name: str
    committer_email: str
    committed_at: datetime | None
    subject: str
    body: str

    @property
    def message(self) -> str:
        return f"{self.subject}\n\n{self.body}" if self.body else self.subject


@dataclass(frozen=True)
class Change:
    """One file of a difference. `added` and `deleted` count lines and are None for a binary file."""

    path: str
    added: int | None
    deleted: int | None


@dataclass(frozen=True)
class Diff:
    """A difference as git writes it (unified, with file headers), cut at the end of a line when `truncated`."""

    text: str
    truncated: bool
    files: tuple[Change, ...]


def commits(
    repository: Repository, rev: str, *, path: str | None = None, skip: int = 0, limit: int = 30
) -> list[Commit]:
    """Commits reachable from `rev` (a full SHA or a full ref), newest first; with `path` those that changed it.

    Empty when there is no such commit. `limit` is at most 1000; messages of more than 16 MiB together shorten the list.
    """
    if not (is_sha(rev) or is_ref_name(rev)):
        return []
    arguments = ["log", "-z", f"--format=tformat:{_FIELDS}", f"--skip={max(skip, 0)}", "--no-show-signature"]
    arguments += [f"--max-count={min(max(limit, 0), _MAX_COMMITS)}", "--end-of-options", rev, "--"]
    try:
        output, _ = head(repository.path, [*arguments, *([path] if path else [])], max_bytes=_MAX_LOG)
    except GitTimeout:
        raise
    except GitError:
        return []
    return list(_parsed(output))


def commit(repository: Repository, sha: str) -> Commit | None:
    """The commit `sha` (full); None when there is none."""
    found = commits(repository, sha, limit=1) if is_sha(sha) else []
    return found[0] if found and found[0].sha == sha else None


def count(repository: Repository, rev: str, *, before: str | None = None) -> int:
    """How many commits `rev` (a full SHA or ref) reaches that `before` does not; 0 when there is no such commit."""
    given = [rev] if before is None else [rev, before]
    if not all(is_sha(name) or is_ref_name(name) for name in given):
        return 0
    excluded = [] if before is None or before == ZERO_SHA else [f"^{before}"]
    try:
        return int(run(repository.path, ["rev-list", "--count", "--end-of-options", rev, *excluded, "--"]))
    except GitTimeout:
        raise
    except GitError:
        return 0


def is_ancestor(repository: Repository, ancestor: str, descendant: str) -> bool:
    """Whether `descendant` reaches `ancestor` (full SHAs); False also when one of them is unknown."""
    if not (is_sha(ancestor) and is_sha(descendant)):
        return False
    try:
        run(repository.path, ["merge-base", "--is-ancestor", ancestor, descendant])
    except GitTimeout:
        raise
    except GitError:
        return False
    return True


def changed_paths(
    repository: Repository, before: str, after: str, *, limit: int = _MAX_PATHS, ref: str | None = None
) -> list[str] | None:
    """The paths that differ between two commits, old and new name of a renamed file both.

    For a new branch (`before` is zero) the difference is that of its new commits: those that no other ref than `ref`
    reaches (GitHub docs, "Workflow syntax", git diff comparisons). None when it cannot be known, has no new commits,
    or is more than `limit` paths.
    """
    if not is_sha(after) or after == ZERO_SHA:
        return None
    if before == ZERO_SHA:
        base = _base_of_new_commits(repository, after, ref) if ref else None
        if base is None:
            return None
    else:
        base = before
    if not is_sha(base):
        return None
    try:
        output = run(repository.path, ["diff-tree", "-r", "-z", "--name-only", "--no-renames", base, after, "--"])
    except GitError:
        return None
    paths = [path.decode("utf-8", "surrogateescape") for path in output.split(b"\0") if path]
    return paths if len(paths) <= limit else None


def diff(repository: Repository, sha: str, *, base: str | None = None, max_bytes: int = 1024 * 1024) -> Diff | None:
    """The difference from `base` (default: the first parent, or nothing for a root commit) to the commit `sha`."""
    found = commit(repository, sha)
    if found is None or (base is not None and not is_sha(base)):
        return None
    base = base or (found.parents[0] if found.parents else _EMPTY_TREE)
    options = ["-r", "-M", "--no-ext-diff", "--no-textconv", "--no-color"]
    try:
        output, whole = head(repository.path, ["diff-tree", "-p", *options, base, sha, "--"], max_bytes=max_bytes)
        files = tuple(_changes(repository, ["diff-tree", "--numstat", "-z", "-r", "--no-renames", base, sha, "--"]))
    except GitTimeout:
        raise
    except GitError:
        return None
    text = output.decode("utf-8", "replace")
    return Diff(text if whole else text[: text.rfind("\n") + 1], not whole, files)


def _changes(repository: Repository, arguments: list[str]) -> Iterator[Change]:
    output, _ = head(repository.path, arguments, max_bytes=1024 * 1024)
    for line in output.split(b"\0")[:-1][:_MAX_PATHS]:
        numbers = line.split(b"\t", 2)
        if len(numbers) == 3:
            added, deleted = (None if number == b"-" else int(number) for number in numbers[:2])
            yield Change(numbers[2].decode("utf-8", "surrogateescape"), added, deleted)


def _base_of_new_commits(repository: Repository, after: str, ref: str) -> str | None:
    if not is_ref_name(ref):
        return None
    arguments = [
        "rev-list",
        "--topo-order",
        "--reverse",
        "--parents",
        after,
        "--not",
        f"--exclude={ref}",
        "--glob=refs/*",
    ]
    try:
        # Its first line is the deepest new commit.
        output, _ = head(repository.path, arguments, max_bytes=4096)
    except (GitTimeout, OutputTooLarge):
        return None
    except GitError:
        return None
    words = output.split(b"\n", 1)[0].decode("ascii", "replace").split()
    if not words:
        return None
    return words[1] if len(words) > 1 else _EMPTY_TREE


def _parsed(output: bytes) -> Iterator[Commit]:
    fields = output.decode("utf-8", "replace").split("\0")
    # The last, perhaps cut record has fewer fields; the whole output ends with a NUL of its own.
    for start in range(0, len(fields) - _FIELD_COUNT, _FIELD_COUNT):
        sha, parents, author, author_email, authored, committer, committer_email, committed, subject, body = fields[
            start : start + _FIELD_COUNT
        ]
        yield Commit(
            sha,
            tuple(parents.split()),
            author,
            author_email,
            _date(authored),
            committer,
            committer_email,
            _date(committed),
            subject,
            body.strip("\n"),
        )


def _date(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:  # a year that git can write and Python cannot read
        return None
