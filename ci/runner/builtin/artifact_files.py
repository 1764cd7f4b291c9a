"""Which files go into an artifact, and under which names?

Source of the rules: actions/upload-artifact: the names begin below what all searched paths have in common."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path

from ci.runner.builtin import step
from ci.runner.builtin.globs import Globber
from ci.runner.builtin.step import Failure
from ci.runner.builtin.zips import Entry

_OF_FILES = {
    '"': ' Double quote "', ":": " Colon :", "<": " Less than <", ">": " Greater than >", "|": " Vertical bar |",
    "*": " Asterisk *", "?": " Question mark ?", "\r": " Carriage return \\r", "\n": " Line feed \\n",
}  # fmt: skip
_OF_NAMES = {**_OF_FILES, "\\": " Backslash \\", "/": " Forward slash /"}


def find(lines: Sequence[str], *, hidden: bool) -> tuple[list[str], str]:
    """The files that the lines of `path` mean, and the folder that the artifact begins at. Raises Failure."""
    globber = Globber(lines, cwd=Path.cwd(), home=Path.home())
    files: list[str] = []
    seen: set[str] = set()
    for path, found in globber.find(descendants=True, hidden=hidden):
        if stat.S_ISDIR(found.st_mode):
            continue
        if not stat.S_ISREG(found.st_mode):
            step.warning(f"'{path}' is no regular file and is left out.")
            continue
        if path.lower() in seen:
            step.info(
                f"Uploads are case insensitive: {path} was detected that it will be overwritten by another file "
                "with the same path"
            )
        seen.add(path.lower())
        files.append(path)
    return files, _root(globber.search_paths(), files)


def _root(searched: list[str], files: list[str]) -> str:
    if len(searched) > 1:
        step.info("Multiple search paths detected. Calculating the least common ancestor of all paths")
        root = os.path.commonpath(searched)
        step.info(f"The least common ancestor is {root}. This will be the root directory of the artifact")
        return root
    if len(files) == 1 and searched == files:
        return os.path.dirname(files[0])
    return searched[0] if searched else os.getcwd()


def check_name(name: str) -> None:
    """Raises Failure for a name that an artifact cannot have."""
    if not name:
        raise Failure("Provided artifact name input during validation is empty")
    if found := next((said for char, said in _OF_NAMES.items() if char in name), None):
        raise Failure(
            f"The artifact name is not valid: {name}. Contains the following character: {found}\n"
            f"Invalid characters include: {','.join(_OF_NAMES.values())}\n"
            "They are not allowed because not every file system has them, and the artifact is for all."
        )
    step.info("Artifact name is valid!")


def entries(files: Sequence[str], root: str) -> list[Entry]:
    """Raises Failure for a file whose name not every file system can hold."""
    if not os.path.isdir(root):
        raise Failure(f"The provided rootDirectory {root} is not a valid directory")
    step.info("Root directory input is valid!")
    found: list[Entry] = []
    for path in files:
        name = os.path.relpath(path, root)
        if said := next((said for char, said in _OF_FILES.items() if char in name), None):
            raise Failure(
                f"The path for one of the files in artifact is not valid: /{name}. "
                f"Contains the following character: {said}\n"
                f"Invalid characters include: {','.join(_OF_FILES.values())}\n"
                "They are not allowed because not every file system has them, and the artifact is for all."
            )
        found.append(Entry(path, name))
    return found
