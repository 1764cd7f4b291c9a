"""What did a step write into GITHUB_ENV, GITHUB_OUTPUT, GITHUB_STATE, GITHUB_PATH and GITHUB_STEP_SUMMARY?

Source of the formats: GitHub docs, "Workflow commands", environment files.
"""

from __future__ import annotations

import os
import stat
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

FILE_LIMIT = 16 * 1024 * 1024
VALUE_LIMIT = 1024 * 1024
SUMMARY_LIMIT = 1024 * 1024

# NODE_OPTIONS would let one step run code inside every later JavaScript action.
BLOCKED = frozenset({"NODE_OPTIONS"})


class FileError(Exception):
    """An environment file cannot be read; the text is for the log and names the variable."""


@dataclass(frozen=True)
class EnvFiles:
    """The five files of one step: named when its expressions are read, made empty before its program starts."""

    env: Path
    output: Path
    state: Path
    path: Path
    summary: Path

    @classmethod
    def reserve(cls, folder: Path) -> EnvFiles:
        """Names that no other step has."""
        token = uuid.uuid4().hex
        return cls(
            env=folder / f"set_env_{token}",
            output=folder / f"set_output_{token}",
            state=folder / f"save_state_{token}",
            path=folder / f"add_path_{token}",
            summary=folder / f"step_summary_{token}",
        )

    def create(self) -> None:
        self.env.parent.mkdir(parents=True, exist_ok=True)
        for file in self.all():
            os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))

    def all(self) -> tuple[Path, ...]:
        return (self.env, self.output, self.state, self.path, self.summary)

    def variables(self) -> dict[str, str]:
        return {
            "GITHUB_ENV": str(self.env),
            "GITHUB_OUTPUT": str(self.output),
            "GITHUB_STATE": str(self.state),
            "GITHUB_PATH": str(self.path),
            "GITHUB_STEP_SUMMARY": str(self.summary),
        }

    def context(self) -> dict[str, str]:
        """Their keys in the `github` context: env, output, state, path, step_summary."""
        return {name.removeprefix("GITHUB_").lower(): file for name, file in self.variables().items()}

    def remove(self) -> None:
        for file in self.all():
            file.unlink(missing_ok=True)


def read(file: Path, variable: str, *, limit: int = FILE_LIMIT) -> str:
    """The file's text; '' where the step removed it. Raises FileError for anything but a file within the limit."""
    try:
        # Most steps write nothing.
        if stat.S_ISREG((found := file.stat()).st_mode) and found.st_size == 0:
            return ""
        # The step may have put a pipe or a device in its place, which would block us for ever.
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise FileError(f"Unable to read the file of ${variable}: {error.strerror}") from error
    with os.fdopen(descriptor, "rb") as stream:
        if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            raise FileError(f"Unable to read the file of ${variable}: it is no longer a regular file")
        raw = stream.read(limit + 1)
    if len(raw) > limit:
        raise FileError(f"The file of ${variable} is larger than {limit // 1024} KiB, the most a step may write to it")
    return raw.decode("utf-8-sig", "replace")


def pairs(text: str, variable: str) -> dict[str, str]:
    """`name=value` lines and `name<<DELIMITER` blocks. Raises FileError with GitHub's wording."""
    found: dict[str, str] = {}
    lines = text.replace("\r\n", "\n").split("\n")
    index = 0
    while index < len(lines):
        line = lines[index]
        index += 1
        if not line:
            continue
        equals, heredoc = line.find("="), line.find("<<")
        if equals >= 0 and (heredoc < 0 or equals < heredoc):
            name, value = line[:equals], line[equals + 1 :]
        elif heredoc >= 0:
            name, value, index = _block(lines, index, line=line, at=heredoc, variable=variable)
        else:
            raise FileError(
                f"Unable to process file command '{_word(variable)}' successfully. Invalid format '{line[:200]}'"
            )
        if not name.strip() or "\0" in name:
            raise FileError(
                f"Unable to process file command '{_word(variable)}' successfully. "
                "The name of a value is empty or has a NUL in it"
            )
        if len(value) > VALUE_LIMIT:
            raise FileError(f"The value of '{name[:100]}' in ${variable} is larger than {VALUE_LIMIT // 1024} KiB")
        found[name] = value
    return found


def _block(lines: list[str], index: int, *, line: str, at: int, variable: str) -> tuple[str, str, int]:
    name, delimiter = line[:at], line[at + 2 :]
    if not delimiter:
        raise FileError(
            f"Unable to process file command '{_word(variable)}' successfully. Invalid format '{line[:200]}'"
        )
    for end in range(index, len(lines)):
        if lines[end] == delimiter:
            return name, "\n".join(lines[index:end]), end + 1
    raise FileError(
        f"Unable to process file command '{_word(variable)}' successfully. "
        f"Invalid value. Matching delimiter not found '{delimiter[:200]}'"
    )


def _word(variable: str) -> str:
    return variable.removeprefix("GITHUB_").lower()


def blocked(names: Iterable[str]) -> dict[str, str]:
    """Names a step may not set through GITHUB_ENV, each with the reason for the log. The step goes on all the same."""
    return {
        name: f"Can't store {name} output parameter using '$GITHUB_ENV' command."
        for name in names
        if name.upper() in BLOCKED
    }


def without_effect(names: Iterable[str], *, reserved: frozenset[str]) -> list[str]:
    """Names that the runner gives every program itself: through GITHUB_ENV only the `env` context gets them."""
    return [name for name in names if name in reserved]


def paths(text: str) -> list[str]:
    """The folders of GITHUB_PATH, one a line, in the order written."""
    return [line.strip() for line in text.splitlines() if line.strip()]
