"""How are GitHub's own npm packages asked for their verdict?

`npm ci` in `tests/conformance/oracle` installs them in the exact versions of the lock file; that is done once, by the
fixture `oracle`, where npm is present and its registry can be reached. Nothing else needs them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "oracle"
INSTALL = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
INSTALL_SECONDS = 120


class Absent(Exception):
    """The packages are not here; the text says why."""


def install() -> None:
    """Install the packages where they are not there yet. Raises Absent."""
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            raise Absent(f"{program} is not installed")
    lock = FOLDER / "package-lock.json"
    done = FOLDER / "node_modules" / ".package-lock.json"
    if done.is_file() and done.stat().st_mtime >= lock.stat().st_mtime:
        return
    try:
        made = subprocess.run(INSTALL, cwd=FOLDER, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False)
    except subprocess.TimeoutExpired as late:
        raise Absent(f"npm ci took longer than {INSTALL_SECONDS} s") from late
    if made.returncode:
        raise Absent(f"npm ci failed: {made.stderr.strip()[-300:]}")
    os.utime(done)


class Oracle:
    """One node process that answers line by line."""

    def __init__(self) -> None:
        command = ["node", "--import", "./json_imports.mjs", "judge.mjs"]
        self._process = subprocess.Popen(
            command, cwd=FOLDER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
        )

    def evaluate(self, expr: str, contexts: dict[str, Any], functions: dict[str, bool] | None = None) -> Any:
        """{kind, value}, or {stage, message} where it is an error."""
        return self._ask({"expr": expr, "contexts": contexts, "functions": functions or {}})

    def template(self, path: str, text: str) -> Any:
        """{template} as GitHub's parser serializes it, or {errors} with their texts."""
        return self._ask({"path": path, "text": text})

    def _ask(self, question: dict[str, Any]) -> Any:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"the oracle ended at {question!r}")
        return json.loads(answer)

    def close(self) -> None:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.close()
        self._process.wait(10)
        self._process.stdout.close()
