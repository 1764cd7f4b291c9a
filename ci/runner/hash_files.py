"""What is the hash of the files that match these patterns?

Source of the rule: GitHub docs, "Evaluate expressions", hashFiles: SHA-256 of each file, then of those hashes.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

SECONDS = 120.0


class HashError(Exception):
    """The files cannot be hashed; the text is for the log."""


def hash_files(workspace: Path, patterns: Sequence[str]) -> str:
    """Hex SHA-256, or '' where no file matches. A pattern beginning with ! excludes; later patterns win."""
    rules = [rule for text in patterns for line in str(text).splitlines() if (rule := _rule(line, workspace))]
    deadline = time.monotonic() + SECONDS
    total = hashlib.sha256()
    found = False
    for name, path in _files(workspace, deadline):
        included = False
        for negated, pattern in rules:
            if pattern.fullmatch(name):
                included = not negated
        if included:
            found = True
            total.update(_digest(path, deadline))
    return total.hexdigest() if found else ""


def _rule(line: str, workspace: Path) -> tuple[bool, re.Pattern[str]] | None:
    text = line.strip()
    if not text or text.startswith("#"):
        return None
    negated = False
    while text.startswith("!"):
        negated, text = not negated, text[1:].strip()
    text = text.removeprefix(f"{workspace}/").removeprefix("./").rstrip("/")
    # As GitHub's glob: a pattern that names a folder means everything below it.
    try:
        return negated, re.compile(translate(text) + r"(?:/.*)?", re.DOTALL)
    except re.error as error:
        raise HashError(f"hashFiles cannot read the pattern '{text[:200]}': {error}") from error


def translate(glob: str) -> str:
    """A regular expression for a path relative to the workspace: **, *, ?, [set]."""
    out: list[str] = []
    index = 0
    while index < len(glob):
        char = glob[index]
        if glob.startswith("**/", index):
            out.append("(?:[^/]+/)*")
            index += 3
        elif glob.startswith("**", index):
            out.append(".*")
            index += 2
        elif char == "[" and (end := glob.find("]", index + 2)) > 0:
            inner = glob[index + 1 : end].replace("\\", "\\\\").replace("[", "\\[").replace("^", "\\^")
            out.append("[" + ("^" + inner[1:] if inner.startswith("!") else inner) + "]")
            index = end + 1
        else:
            out.append({"*": "[^/]*", "?": "[^/]"}.get(char) or re.escape(char))
            index += 1
    return "".join(out)


def _files(workspace: Path, deadline: float) -> Iterator[tuple[str, Path]]:
    """Regular files below the workspace, depth first in the order of their names; links to folders not followed."""
    pending = [workspace]
    while pending:
        current = pending.pop()
        if time.monotonic() > deadline:
            raise HashError(f"hashFiles did not finish within {SECONDS:.0f} seconds")
        if current.is_dir() and (current == workspace or not current.is_symlink()):
            try:
                names = sorted(os.listdir(current), reverse=True)
            except OSError:
                continue
            pending.extend(current / name for name in names)
        elif current.is_file():
            yield str(current.relative_to(workspace)), current


def _digest(path: Path, deadline: float) -> bytes:
    digest = hashlib.sha256()
    try:
        with path.open("rb") as stream:
            while block := stream.read(1024 * 1024):
                digest.update(block)
                if time.monotonic() > deadline:
                    raise HashError(f"hashFiles did not finish within {SECONDS:.0f} seconds")
    except OSError as error:
        raise HashError(f"hashFiles cannot read '{path}': {error.strerror}") from error
    return digest.digest()
