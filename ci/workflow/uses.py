"""Which workflow file does the `uses:` of a job name, and which ones does a file call?"""

from __future__ import annotations

from dataclasses import dataclass

from ci.workflow.document.nodes import Mapping, Scalar
from ci.workflow.document.reader import read
from ci.workflow.problems import Problems

_LOCAL = ("./", "$/")
MAX_REFERENCE = 1024


class UsesError(ValueError):
    """A `uses:` that names no workflow file; the text says what to write."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A called workflow file. `key`: its name among the files given to `load`, a path of the calling repository or
    `owner/repo/path@ref`. `repository` and `ref` are None for a file of the repository and commit of the run."""

    key: str
    path: str
    repository: str | None = None
    ref: str | None = None


def resolve(uses: str, caller: Reference | None = None) -> Reference:
    """The file that `uses` names in the file `caller` (None: a file of the run's own repository and commit).

    `./path` and `$/path` are files of the calling file's repository, at its commit. Raises UsesError.
    """
    if len(uses) > MAX_REFERENCE:
        raise UsesError(f"Invalid workflow reference: it is longer than {MAX_REFERENCE} characters")
    if uses.startswith(_LOCAL):
        if "@" in uses:
            raise UsesError(
                f"Invalid workflow reference '{uses}': a local workflow cannot have a version. Remove the '@'"
            )
        path = _path(uses, uses[2:])
        if caller is None or caller.repository is None:
            return Reference(path, path)
        return Reference(f"{caller.repository}/{path}@{caller.ref}", path, caller.repository, caller.ref)
    name, _, version = uses.partition("@")
    if not version:
        raise UsesError(
            f"Invalid workflow reference '{uses}': no version specified. Add '@ref', or write './' before a path of "
            "this repository"
        )
    parts = name.split("/", 2)
    if len(parts) < 3 or not all(parts):
        raise UsesError(f"Invalid workflow reference '{uses}': write owner/repo/path/to/workflow.yml@ref")
    path = _path(uses, parts[2])
    return Reference(uses, path, f"{parts[0]}/{parts[1]}", version)


def _path(uses: str, path: str) -> str:
    if any(part in {"", ".", ".."} for part in path.split("/")):
        raise UsesError(f"Invalid workflow reference '{uses}': write the path of a file, without '.' and '..' parts")
    return path


def references(text: str | bytes) -> tuple[str, ...]:
    """The `uses:` of every job of a file, as written, each once: what must be among the files given to `load`.

    Whatever is wrong with the file is left to `load`; a file that is no YAML calls nothing.
    """
    root = read(text, Problems(""))
    jobs = root.get("jobs") if isinstance(root, Mapping) else None
    found: dict[str, None] = {}
    for _, job in jobs.pairs if isinstance(jobs, Mapping) else []:
        uses = job.get("uses") if isinstance(job, Mapping) else None
        if isinstance(uses, Scalar) and uses.text:
            found[uses.text] = None
    return tuple(found)
