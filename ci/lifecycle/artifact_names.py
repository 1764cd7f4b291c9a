"""May an artifact, or a file in one, have this name? It becomes a folder or a file on machines of every kind."""

from __future__ import annotations

import re

from ci.lifecycle.errors import InvalidInput
from ci.workflow.storable import UNSTORABLE

MAX_NAME = 255
MAX_PATH = 1000
# What GitHub's clients refuse too, each for some file system: the slash is for names of artifacts alone.
_FORBIDDEN = '" : < > | * ? and control characters'
_IN_PATHS = re.compile(r'[":<>|*?\x00-\x1f\x7f]')
_IN_NAMES = re.compile(r"[\\/]")


def check_name(name: str) -> None:
    """Raises InvalidInput. `%`, `#`, quotes ('), spaces and any script are fine."""
    if not name or name in (".", ".."):
        raise InvalidInput({"name": "An artifact needs a name."})
    if len(name) > MAX_NAME:
        raise InvalidInput({"name": f"The name of an artifact has at most {MAX_NAME} characters."})
    if _IN_PATHS.search(name) or _IN_NAMES.search(name) or UNSTORABLE.search(name):
        raise InvalidInput({"name": f"The name of an artifact must not contain / \\ {_FORBIDDEN}."})


def file_path(given: str) -> str:
    """A file's path in its artifact, relative and with slashes, of what a client calls it. Raises InvalidInput."""
    path = given.replace("\\", "/")  # as clients on Windows write it
    if not path or len(path) > MAX_PATH:
        raise InvalidInput({"itemPath": f"The path of a file has 1 to {MAX_PATH} characters."})
    if _IN_PATHS.search(path) or UNSTORABLE.search(path):
        raise InvalidInput({"itemPath": f"The path of a file must not contain {_FORBIDDEN}."})
    if any(part in ("", ".", "..") for part in path.split("/")):
        raise InvalidInput({"itemPath": "The path of a file must be relative and stay in its artifact."})
    return path
