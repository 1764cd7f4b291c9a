"""What is in a bare repository? Refs, trees and files, through the git program.

Everything takes a `forge.models.Repository` and is plain sync code with bounded output and a deadline. Names from
outside never reach git as options: they are looked up through its standard input, or follow a full SHA.
Nothing here raises for what is merely absent (None, empty list); `GitError` means that git itself failed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from forge.git.history import (
    Change,
    Commit,
    Diff,
    changed_paths,
    commit,
    commits,
    count,
    diff,
    is_ancestor,
)
from forge.git.names import is_ref_name, is_sha
from forge.git.program import GitError, GitTimeout, OutputTooLarge, head, run
from forge.models import Repository

__all__ = [
    "MAX_FILE",
    "BlobTooLarge",
    "Change",
    "Commit",
    "Diff",
    "Entry",
    "GitError",
    "GitTimeout",
    "OutputTooLarge",
    "Ref",
    "RefAndPath",
    "blob",
    "branches",
    "changed_paths",
    "commit",
    "commits",
    "count",
    "count_branches",
    "count_tags",
    "diff",
    "entry",
    "files_under",
    "is_ancestor",
    "is_empty",
    "ref_sha",
    "refs_at",
    "resolve",
    "split_ref_and_path",
    "tags",
    "tree",
]

MAX_FILE = 1024 * 1024  # bytes of one file in files_under; one byte more is read, so that "too large" can be told
_MAX_PATH = 4096
_MAX_SEGMENTS = 64
_SHORT_SHA = re.compile(r"[0-9a-f]{7,64}\Z")


class BlobTooLarge(GitError):
    """The file has more bytes than were asked for; `.size` says how many."""

    def __init__(self, size: int) -> None:
        super().__init__(f"the file has {size} bytes")
        self.size = size


@dataclass(frozen=True)
class Ref:
    """A branch or tag. `sha` is the commit, also where the tag is annotated."""

    name: str  # "main", "v1.0", "feature/x"
    full_name: str  # "refs/heads/main"
    sha: str
    committed_at: datetime | None
    subject: str


@dataclass(frozen=True)
class Entry:
    """One entry of a folder. `type` is "blob", "tree" or "commit" (a submodule); `size` in bytes, of blobs only."""

    mode: str
    type: str
    sha: str
    size: int | None
    name: str

    @property
    def is_symlink(self) -> bool:
        return self.mode == "120000"


class RefAndPath(NamedTuple):
    """A page address taken apart: which commit, under which name, and the path inside it ("" is the root)."""

    ref: str
    kind: str  # "branch", "tag" or "commit"
    sha: str
    path: str


def is_empty(repository: Repository) -> bool:
    """Whether there is no branch yet."""
    return not _refs(repository, "refs/heads/", limit=1)


def resolve(repository: Repository, rev: str) -> str | None:
    """The commit that `rev` names: a full SHA, a full ref, HEAD, a branch, a tag, or an SHA of at least 7 digits."""
    names = [rev] if is_sha(rev) or rev == "HEAD" else []
    if is_ref_name(rev):
        names.append(rev)
    names += [full for prefix in ("refs/heads/", "refs/tags/") if is_ref_name(full := prefix + rev)]
    if _SHORT_SHA.match(rev):
        names.append(rev)
    return next((sha for sha in _commits_named(repository, names) if sha), None)


def ref_sha(repository: Repository, ref: str) -> str | None:
    """What a full ref ("refs/heads/main") points at, unpeeled; None when there is no such ref."""
    return refs_at(repository, [ref])[ref]


def refs_at(repository: Repository, refs: Sequence[str]) -> dict[str, str | None]:
    """What each of the full refs points at, unpeeled, in one look."""
    known = [ref for ref in refs if is_ref_name(ref)]
    found = dict.fromkeys(refs) | dict(zip(known, _lookup(repository, known), strict=True))
    return {ref: name.split()[0] if name else None for ref, name in found.items()}


def branches(repository: Repository, *, skip: int = 0, limit: int = 100) -> list[Ref]:
    """Branches, those committed to last first."""
    return _refs(repository, "refs/heads/", skip=skip, limit=limit)


def tags(repository: Repository, *, skip: int = 0, limit: int = 100) -> list[Ref]:
    """Tags, newest first."""
    return _refs(repository, "refs/tags/", skip=skip, limit=limit)


def count_branches(repository: Repository) -> int:
    return _count_refs(repository, "refs/heads/")


def count_tags(repository: Repository) -> int:
    return _count_refs(repository, "refs/tags/")


def split_ref_and_path(repository: Repository, rest: str) -> RefAndPath | None:
    """Take "feature/x/docs/a.md" apart, where the branch may be `feature` or `feature/x`.

    Branches win over tags, tags over SHAs. None when no beginning of `rest` names a commit.
    """
    segments = rest.strip("/").split("/")
    heads = ["/".join(segments[: length + 1]) for length in range(min(len(segments), _MAX_SEGMENTS))]
    candidates = [(name, "branch", f"refs/heads/{name}") for name in heads]
    candidates += [(name, "tag", f"refs/tags/{name}") for name in heads]
    candidates = [candidate for candidate in candidates if is_ref_name(candidate[2])]
    if is_sha(segments[0]) or _SHORT_SHA.match(segments[0]):
        candidates.append((segments[0], "commit", segments[0]))
    shas = _commits_named(repository, [full for _, _, full in candidates])
    for (name, kind, _), sha in zip(candidates, shas, strict=True):
        if sha:
            return RefAndPath(name, kind, sha, rest.strip("/")[len(name) + 1 :])
    return None


def tree(repository: Repository, sha: str, path: str = "") -> list[Entry] | None:
    """The entries of the folder `path` ("" is the root) at the commit `sha`, folders first; None when it is no folder.

    Raises OutputTooLarge for a folder of more than about 100,000 entries.
    """
    if not _is_path(path) or not is_sha(sha):
        return None
    try:
        output = run(repository.path, ["ls-tree", "-z", "--long", f"{sha}:{path}"])
    except OutputTooLarge:
        raise
    except GitError:
        return None
    return sorted(_entries(output), key=lambda found: (found.type == "blob", found.name))


def entry(repository: Repository, sha: str, path: str) -> Entry | None:
    """What is at `path` at the commit `sha`: its `name` is the whole path."""
    if not path or not _is_path(path) or not is_sha(sha):
        return None
    try:
        output = run(repository.path, ["ls-tree", "-z", "--long", "--full-tree", sha, "--", path])
    except GitError:
        return None
    return next(_entries(output), None)


def blob(repository: Repository, sha: str, path: str, *, max_bytes: int = 8 * MAX_FILE) -> bytes | None:
    """The bytes of the file `path` at the commit `sha`; None when there is no such file.

    Raises BlobTooLarge when it has more than `max_bytes`.
    """
    found = entry(repository, sha, path)
    if found is None or found.type != "blob":
        return None
    if (found.size or 0) > max_bytes:
        raise BlobTooLarge(found.size or 0)
    return run(repository.path, ["cat-file", "blob", found.sha], max_bytes=max_bytes)


def files_under(
    repository: Repository, sha: str, folder: str, *, max_files: int = 500, max_bytes: int = MAX_FILE + 1
) -> dict[str, bytes]:
    """Path -> bytes of the regular files below `folder` at the commit `sha`; {} when there is no such folder.

    Of a larger file the first `max_bytes` bytes; of more files the first `max_files` by name. Links and submodules are
    left out: they could lead anywhere.
    """
    if not is_sha(sha) or not folder or not _is_path(folder):
        return {}
    try:
        output = run(repository.path, ["ls-tree", "-r", "-z", "--long", f"{sha}:{folder}"])
    except OutputTooLarge:
        raise
    except GitError:
        return {}
    found = [item for item in _entries(output) if item.type == "blob" and not item.is_symlink][:max_files]
    return {f"{folder}/{item.name}": _beginning(repository, item, max_bytes) for item in found}


def _beginning(repository: Repository, item: Entry, max_bytes: int) -> bytes:
    return head(repository.path, ["cat-file", "blob", item.sha], max_bytes=max_bytes)[0]


def _entries(output: bytes) -> Iterator[Entry]:
    # git ls-tree --long: "<mode> <type> <sha> <size, padded>\t<name>\0"
    for line in output.split(b"\0"):
        if line:
            facts, _, name = line.partition(b"\t")
            mode, kind, sha, size = facts.decode("ascii").split()
            yield Entry(mode, kind, sha, None if size == "-" else int(size), name.decode("utf-8", "surrogateescape"))


def _refs(repository: Repository, prefix: str, *, limit: int, skip: int = 0) -> list[Ref]:
    fields = "%00".join(
        # *… is the commit behind an annotated tag, empty for the others.
        ["%(refname)", "%(objectname)", "%(*objectname)", "%(creatordate:iso-strict)", "%(contents:subject)"]
    )
    arguments = ["for-each-ref", f"--count={skip + limit}", "--sort=refname", "--sort=-creatordate"]
    output = run(repository.path, [*arguments, f"--format={fields}", prefix])
    found = []
    for line in output.decode("utf-8", "replace").split("\n")[skip:-1]:
        full_name, sha, peeled, date, subject = line.split("\0")
        found.append(Ref(full_name[len(prefix) :], full_name, peeled or sha, _date(date), subject))
    return found


def _count_refs(repository: Repository, prefix: str) -> int:
    return run(repository.path, ["for-each-ref", "--format=.", prefix]).count(b"\n")


def _date(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:  # a year that git can write and Python cannot read
        return None


def _commits_named(repository: Repository, names: Sequence[str]) -> list[str | None]:
    found = _lookup(repository, [f"{name}^{{commit}}" for name in names])
    return [answer.split()[0] if answer else None for answer in found]


def _lookup(repository: Repository, names: Sequence[str]) -> list[str | None]:
    """ "<sha> <type>" or None for each object name; the names hold no line feed."""
    if not names:
        return []
    feed = "".join(f"{name}\n" for name in names).encode("utf-8", "surrogateescape")
    output = run(repository.path, ["cat-file", "--batch-check=%(objectname) %(objecttype)"], stdin=feed)
    lines = output.decode("utf-8", "surrogateescape").split("\n")[:-1]
    # A missing or ambiguous name is echoed, followed by that word.
    return [None if line.endswith((" missing", " ambiguous")) else line for line in lines]


def _is_path(path: str) -> bool:
    """Whether `path` is one that a tree can hold: relative, whole segments, nothing that git would read otherwise."""
    if not path:
        return True
    if len(path) > _MAX_PATH or "\0" in path:
        return False
    return all(segment not in ("", ".", "..") for segment in path.split("/"))
