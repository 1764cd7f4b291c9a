"""How does the runner call the git program without showing a token?"""

from __future__ import annotations

import base64
import functools
import os
import shlex
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence

from ci.runner.control import Guard
from ci.runner.lines import LineReader
from ci.runner.process import TRACKING, StartError, run

MOST_CAPTURED = 4 * 1024 * 1024


class GitError(Exception):
    """git failed; the text is its last words."""


def basic(token: str) -> str:
    """The header git sends: forges take any user name beside a token."""
    return "Authorization: Basic " + base64.b64encode(f"x-access-token:{token}".encode()).decode()


class Git:
    """git in one environment. The token travels in environment variables, never on a command line or in a URL."""

    def __init__(
        self,
        env: Mapping[str, str],
        *,
        guard: Guard,
        marker: Callable[[], str],
        show: Callable[[str], None],
    ) -> None:
        self._env = {**env, "GIT_TERMINAL_PROMPT": "0", "GCM_INTERACTIVE": "Never", "LC_ALL": "C.UTF-8"}
        self._config: list[tuple[str, str]] = [
            # A slow server is given up after a minute without data instead of never.
            ("http.lowSpeedLimit", "1"),
            ("http.lowSpeedTime", "60"),
            ("advice.detachedHead", "false"),
            ("init.defaultBranch", "main"),
            ("gc.auto", "0"),
            # The credentials of the person who set up this machine are not for jobs.
            ("credential.helper", ""),
        ]
        self._guard = guard
        self._marker = marker
        self._show = show

    def authorize(self, url: str, token: str) -> None:
        """Send the token to this server, and to no other."""
        if token and url.startswith(("http://", "https://")):
            self._config.append((f"http.{url.rstrip('/')}/.extraHeader", basic(token)))

    def trust(self, folder: str) -> None:
        self._config.append(("safe.directory", folder))

    def _variables(self) -> dict[str, str]:
        variables = {"GIT_CONFIG_COUNT": str(len(self._config))}
        for index, (key, value) in enumerate(self._config):
            variables[f"GIT_CONFIG_KEY_{index}"] = key
            variables[f"GIT_CONFIG_VALUE_{index}"] = value
        return variables

    def run(self, *args: str, cwd: str, quiet: bool = False, guard: Guard | None = None) -> str:
        """What git printed, both streams together. Raises GitError, with the end of it, when git fails."""
        if not quiet:
            self._show(f"##[command]git {shlex.join(args)}")
        lines: list[str] = []
        size = 0

        def take(line: str) -> None:
            nonlocal size
            size += len(line)
            if size < MOST_CAPTURED:
                lines.append(line)
            if not quiet:
                self._show(line)

        reader = LineReader(take, slack=lambda: 0)
        env = {**self._env, **self._variables(), TRACKING: self._marker()}
        try:
            ended = run(["git", *args], cwd=cwd, env=env, output=reader.feed, guard=guard or self._guard)
        except StartError as error:
            raise GitError(str(error)) from error
        reader.close()
        if ended.halted:
            raise GitError("git was interrupted")
        if ended.code:
            words = [line for line in lines if line.strip()][-3:]
            raise GitError("; ".join(words) or f"git {args[0]} ended with exit code {ended.code}")
        return "\n".join(lines)

    def succeeds(self, *args: str, cwd: str) -> bool:
        try:
            self.run(*args, cwd=cwd, quiet=True)
        except GitError:
            return False
        return True


def version() -> str | None:
    """The git program's version, None where there is none."""
    program = shutil.which("git")
    return None if program is None else _version(program, os.stat(program).st_mtime_ns)


@functools.lru_cache(maxsize=1)
def _version(program: str, _changed: int) -> str | None:
    """Asked once for each program that was there: a job should not wait for what is the same each time."""
    try:
        done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip().removeprefix("git version ")


def safe_ref(ref: str) -> bool:
    """May this text be a branch, tag or commit? Refuses what git could read as an option or a refspec."""
    forbidden: Sequence[str] = ("..", "@{", "//", "\\", " ", "~", "^", ":", "?", "*", "[", "\x7f")
    return (
        bool(ref)
        and len(ref) <= 1024
        and not ref.startswith(("-", "/", "."))
        and not ref.endswith(("/", ".", ".lock"))
        and not any(part in ref for part in forbidden)
        and all(ord(char) >= 32 for char in ref)
    )
