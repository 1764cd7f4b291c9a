"""What do the jobs of a round do, and what will each of them say? Both follow from the seed."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from typing import Any

FOLDER = ".github/workflows"
JOBS = 50
LATER_PUSHES = 3
DEPLOYS, IN_LINE = 5, 3
LEG = "${{ matrix.n }}"
_MODULUS = 104_729


@dataclass(frozen=True)
class Planned:
    """One job of a workflow file. `pause` follows each `every` lines, in seconds; `fails`: "", "first" or "always"."""

    key: str
    lines: int
    every: int
    factor: int
    needs: tuple[str, ...] = ()
    always: bool = False
    fails: str = ""
    output: bool = False
    legs: int = 0
    max_parallel: int | None = None
    fail_fast: bool = True
    failing_leg: int = 0
    pause: float = 0.1

    @property
    def tag(self) -> str:
        return f"{self.key}/{LEG}" if self.legs else self.key

    def breaks(self, *, attempt: int, leg: int | None) -> bool:
        """Whether its script is meant to exit with 1."""
        if self.failing_leg:
            return leg == self.failing_leg
        return self.fails == "always" or (self.fails == "first" and attempt == 1)

    def script(self) -> list[str]:
        lines = [
            f"for i in $(seq 1 {self.lines}); do",
            f'  echo "{self.tag} $GITHUB_RUN_ATTEMPT $i $((i * {self.factor} % {_MODULUS})) ✓"',
            f"  if test $((i % {self.every})) = 0; then sleep {self.pause}; fi",
            "done",
        ]
        if self.failing_leg:
            lines.append(f'test "{LEG}" != {self.failing_leg}')
        elif self.fails:
            lines.append("false" if self.fails == "always" else 'test "$GITHUB_RUN_ATTEMPT" -gt 1')
        return lines

    def says(self, *, attempt: int, leg: int | None) -> list[str]:
        """The lines of its script, in order."""
        tag = self.tag.replace(LEG, str(leg))
        return [f"{tag} {attempt} {i} {i * self.factor % _MODULUS} ✓" for i in range(1, self.lines + 1)]

    def output_script(self) -> list[str]:
        return [f'echo "value=from {self.tag}" >> "$GITHUB_OUTPUT"']

    def definition(self) -> dict[str, Any]:
        """As the workflow file has it."""
        steps: list[dict[str, Any]] = [{"name": "Speak", "run": "\n".join(self.script()) + "\n"}]
        found: dict[str, Any] = {"runs-on": "ubuntu-latest"}
        if self.output:
            steps.append({"name": "Hand on", "id": "hand", "run": self.output_script()[0]})
            found["outputs"] = {"value": "${{ steps.hand.outputs.value }}"}
        if self.needs:
            found["needs"] = list(self.needs)
        if self.always:
            found["if"] = "always()"
        if self.legs:
            strategy: dict[str, Any] = {"matrix": {"n": list(range(1, self.legs + 1))}, "fail-fast": self.fail_fast}
            if self.max_parallel is not None:
                strategy["max-parallel"] = self.max_parallel
            found["strategy"] = strategy
        return {**found, "steps": steps}


@dataclass(frozen=True)
class File:
    """One workflow file. `group`: its concurrency group. `calls`: job key -> the file it calls."""

    name: str
    on: Any
    jobs: tuple[Planned, ...]
    group: str = ""
    queue_all: bool = False
    calls: dict[str, str] = field(default_factory=dict)
    run_name: str = ""

    @property
    def path(self) -> str:
        return f"{FOLDER}/{self.name}.yml"

    def text(self) -> str:
        """JSON, which is YAML too."""
        jobs: dict[str, Any] = {job.key: job.definition() for job in self.jobs}
        jobs |= {key: {"uses": f"./{FOLDER}/{file}.yml"} for key, file in self.calls.items()}
        found: dict[str, Any] = {"name": self.name, "on": self.on, "jobs": jobs}
        if self.run_name:
            found["run-name"] = self.run_name
        if self.group:
            found["concurrency"] = {"group": self.group, **({"queue": "max"} if self.queue_all else {})}
        return json.dumps(found, indent=2, ensure_ascii=False) + "\n"


_ON_MAIN = {"push": {"branches": ["main"]}}
_BY_HAND = {"workflow_dispatch": {"inputs": {"mark": {"type": "string", "required": True}}}}
_MARKED = "${{ inputs.mark }}"


class Workload:
    """All files of one round."""

    def __init__(self, seed: int) -> None:
        # Not the killer's sequence, so that the same work can be met by other kills.
        self._random = random.Random(f"work {seed}")
        self.files = {file.path: file for file in self._files()}

    def planned(self, path: str, key: str) -> Planned | None:
        """None for a job that calls a workflow."""
        file = self.files[path]
        files = [file, *(self.files[f"{FOLDER}/{name}.yml"] for name in file.calls.values())]
        return next((job for each in files for job in each.jobs if job.key == key), None)

    def texts(self) -> dict[str, str]:
        return {path: file.text() for path, file in self.files.items()}

    def _job(self, key: str, *, seconds: tuple[float, float] = (0.5, 4.0), **fields: Any) -> Planned:
        chance = self._random
        every, pauses = chance.randint(3, 40), round(chance.uniform(*seconds) / 0.1)
        return Planned(key, lines=every * pauses, every=every, factor=chance.randrange(2, _MODULUS), **fields)

    def _files(self) -> list[File]:
        job = self._job
        failing = self._random.randint(1, 5)
        later = {"push": {"branches": ["later-*"]}}
        return [
            File("plain", _ON_MAIN, tuple(job(f"plain{number}") for number in range(1, 11))),
            File("chain", _ON_MAIN, (*self._chain("a", 4), *self._chain("b", 3))),
            File(
                "legs",
                _ON_MAIN,
                (
                    job("leg", legs=6, max_parallel=2, fail_fast=False, seconds=(0.5, 2.0)),
                    job("after", needs=("leg",)),
                ),
            ),
            File(
                "hasty",
                _ON_MAIN,
                (
                    job("leg", legs=5, failing_leg=failing, seconds=(2.0, 6.0)),
                    job("report", needs=("leg",), always=True),
                ),
            ),
            File("stopped", _ON_MAIN, (*self._long(2), job("tidy", needs=("long1", "long2"), always=True))),
            File(
                "flaky",
                _ON_MAIN,
                (job("first", fails="first"), job("second", needs=("first",)), job("other")),
            ),
            File("calling", _ON_MAIN, (), calls={"call": "called"}),
            File("called", {"workflow_call": {}}, (job("inner", output=True), job("outer", needs=("inner",)))),
            File("deploy", _BY_HAND, (job("deploy", seconds=(1.0, 5.0)),), group="deploy", run_name=_MARKED),
            File("line", _BY_HAND, (job("wait"),), group="line", queue_all=True, run_name=_MARKED),
            File("later", later, (job("pushed"),)),
        ]

    def _chain(self, letter: str, length: int) -> list[Planned]:
        keys = [f"{letter}{number}" for number in range(1, length + 1)]
        return [
            self._job(
                key,
                needs=(keys[number - 1],) if number else (),
                output=number < length - 1,
                always=letter == "a" and number == length - 1,
            )
            for number, key in enumerate(keys)
        ]

    def _long(self, count: int) -> list[Planned]:
        return [self._job(f"long{number}", seconds=(15.0, 20.0)) for number in range(1, count + 1)]
