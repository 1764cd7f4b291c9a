"""Which forge does this runner belong to, and by which token?"""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
from collections.abc import MutableMapping
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import urlsplit

from ci.runner import environment

DEFAULT_FILE = ".runner"
DEFAULT_WORK = "_work"
# How a launcher hands a runner that it starts what registration would have written down.
TOKEN_VARIABLE = "FORGE_RUNNER_TOKEN"  # noqa: S105 (a variable's name)
TOKEN_FILE_VARIABLE = "FORGE_RUNNER_TOKEN_FILE"  # noqa: S105 (a variable's name)
URL_VARIABLE = "FORGE_URL"
NAME_VARIABLE = "FORGE_RUNNER_NAME"
LABELS_VARIABLE = "FORGE_RUNNER_LABELS"
_MOST_TOKEN_CHARACTERS = 1000
_TOKEN = re.compile(r"[A-Za-z0-9_-]{1,200}")
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:/-]{0,99}")


class ConfigError(Exception):
    """The configuration or an argument is wrong; the text says which and what to do."""


@dataclass(frozen=True)
class Config:
    """What registration wrote down, or a launcher said."""

    url: str
    id: int  # 0 where a launcher gave the token: nothing needs it
    name: str
    token: str
    labels: tuple[str, ...]
    ephemeral: bool = False

    def save(self, file: Path) -> None:
        """Write the file so that only its owner reads it, whole or not at all. Raises ConfigError."""
        fresh = file.with_name(file.name + ".new")
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            fresh.unlink(missing_ok=True)
            descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w") as stream:
                json.dump(asdict(self), stream, indent=2)
                stream.write("\n")
            fresh.replace(file)
        except OSError as error:
            raise ConfigError(f"The configuration {file} cannot be written: {error.strerror}") from error

    @classmethod
    def load(cls, file: Path) -> Config:
        """Raises ConfigError."""
        try:
            body = json.loads(file.read_text())
            return cls(
                url=check_url(body["url"]),
                id=int(body["id"]),
                name=str(body["name"]),
                token=str(body["token"]),
                labels=tuple(str(label) for label in body["labels"]),
                ephemeral=bool(body.get("ephemeral", False)),
            )
        except FileNotFoundError as error:
            raise ConfigError(f"There is no configuration {file}. Run `python -m ci.runner register` first.") from error
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ConfigError(
                f"The configuration {file} cannot be read ({error}). Register the runner again."
            ) from error

    @classmethod
    def take(cls, environment: MutableMapping[str, str]) -> Config | None:
        """What a launcher gave by the environment, for one job; None where it gave no token. Raises ConfigError.

        The token, or the file that holds it, is taken away: what this process starts must not find it. Name and labels
        may be absent, the forge tells them.
        """
        token = environment.pop(TOKEN_VARIABLE, "").strip()
        file = environment.pop(TOKEN_FILE_VARIABLE, "")
        source = TOKEN_VARIABLE if token or not file else TOKEN_FILE_VARIABLE
        if not token and file:
            token = _take_file(Path(file))
        elif not token:
            return None
        if not _TOKEN.fullmatch(token):
            raise ConfigError(f"{source} gives no runner token (frr_…); what it gives is not shown here.")
        if not environment.get(URL_VARIABLE):
            raise ConfigError(f"{source} is set, so {URL_VARIABLE} must be too: the address of the forge.")
        labels = environment.get(LABELS_VARIABLE, "").split(",")
        return cls(
            url=check_url(environment[URL_VARIABLE]),
            id=0,
            name=environment.get(NAME_VARIABLE) or "runner",
            token=token,
            labels=tuple(label.strip() for label in labels if label.strip()),
            ephemeral=True,
        )


def _take_file(file: Path) -> str:
    """The token in the file, which is removed where that is allowed. Raises ConfigError."""
    try:
        with file.open() as stream:
            token = stream.read(_MOST_TOKEN_CHARACTERS).strip()
            is_plain = stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise ConfigError(f"The file {file} of {TOKEN_FILE_VARIABLE} cannot be read: {reason}.") from error
    # Only what can have been made to hold a token: a device or pipe that a mistake names is needed by others.
    if is_plain and _TOKEN.fullmatch(token):
        with contextlib.suppress(OSError):  # a mounted secret cannot be removed
            file.unlink()
    return token


def check_url(url: object) -> str:
    """The forge's address without a trailing slash. Raises ConfigError."""
    text = str(url).strip().rstrip("/")
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query or parts.fragment:
        raise ConfigError(f"'{text}' is no address of a forge; it must look like https://forge.example.org")
    return text


def read_labels(text: str) -> list[str]:
    """Labels of a comma-separated list, without repeats. Raises ConfigError."""
    labels = list(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    for label in labels:
        if not _LABEL.fullmatch(label):
            raise ConfigError(f"'{label}' is no label: letters, digits and _ . : / - only, at most 100")
    if not labels:
        raise ConfigError("At least one label is needed, for example --labels self-hosted,linux")
    return labels


def default_labels() -> list[str]:
    return ["self-hosted", environment.system().lower(), environment.architecture().lower(), "ubuntu-latest"]
