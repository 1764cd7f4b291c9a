"""Is this the log that the job must have? Every line of it is accounted for: none doubled, none missing in between."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from tests.chaos.workload import LEG, Planned

CYAN, PLAIN = "\x1b[36;1m", "\x1b[0m"
SHELL = "shell: bash -e {0}"
CANCELED = "##[error]The operation was canceled."
OUTPUT = "Set output 'value'"
CLEANING = "Cleaning up orphan processes"
_FIRST = r"Current runner version: '[\d.]+'"


@dataclass(frozen=True)
class Said:
    """What a log turned out to hold. `problem`: "" for one as it must be. `complete`: all scripts ran to their end."""

    problem: str = ""
    complete: bool = False
    code: int | None = None  # that a step ended with, where that was no success


def set_up(runner: str, name: str) -> list[str]:
    """Patterns of the lines that come before a job's first step."""
    return [
        _FIRST,
        re.escape("##[group]Runner"),
        f"Runner name: {re.escape(runner)}",
        "Labels: self-hosted, .+, ubuntu-latest",
        re.escape("##[endgroup]"),
        re.escape("##[group]Operating System"),
        r"\S+ \S+ \S+",
        r"Python \S+, git \S+",
        re.escape("##[endgroup]"),
        f"Complete job name: {re.escape(name)}",
    ]


def steps_of(planned: Planned, row: dict[str, Any]) -> list[list[str]]:
    """The lines of each step, where it runs to its end."""
    leg = row["matrix"].get("n")
    scripts = [(planned.script(), planned.says(attempt=row["attempt"], leg=leg))]
    if planned.output:
        scripts.append((planned.output_script(), []))
    found = []
    for script, said in scripts:
        shown = [line.replace(LEG, str(leg)) for line in script]
        head = [f"##[group]Run {shown[0]}", *(f"{CYAN}{line}{PLAIN}" for line in shown), SHELL, "##[endgroup]"]
        found.append([*head, *said])
    return found


def read(row: dict[str, Any], planned: Planned) -> Said:
    """Compare the log of a job with what it must be, given by whom it was run and how often it was assigned."""
    lines = row["log"].split("\n")
    if lines.pop() != "":
        return Said("its last line is not whole")
    at, problem = _skip_set_ups(lines, row)
    if problem or at == len(lines):
        return Said(problem)
    steps = steps_of(planned, row)
    for number, step in enumerate(steps, 1):
        count = _common(lines[at:], step)
        at += count
        if count == len(step) and (problem := _claim_problem(row, number, at - count, count)):
            return Said(problem)
        last = number == len(steps) and count == len(step)
        if at < len(lines) and (code := _exit_code(lines[at])) is not None:
            # What a step wrote to its files before it was killed counts all the same.
            wrote = [OUTPUT] if number > 1 and lines[at + 1 : at + 2] == [OUTPUT] else []
            return Said(_tail_problem(lines, at + 1, [*wrote, CLEANING]), complete=last, code=code)
        if count < len(step) or (at < len(lines) and lines[at] == CANCELED):
            return _broken_off(lines, at, after=count)
    tail = [OUTPUT, CLEANING] if planned.output else [CLEANING]
    return Said(_tail_problem(lines, at, tail), complete=lines[at:] == tail)


def _exit_code(line: str) -> int | None:
    found = re.fullmatch(r"##\[error\]Process completed with exit code (\d+)\.", line)
    return int(found[1]) if found else None


def _skip_set_ups(lines: list[str], row: dict[str, Any]) -> tuple[int, str]:
    """Behind the set-up of the last assignment: each earlier one may have left a part of its own, and nothing else."""
    at, begun = 0, 0
    while True:
        begun += 1
        patterns = set_up(row["runner_name"], row["name"])
        if begun < row["assignment"]:
            patterns[2] = r"Runner name: \S+"
        count = 0
        for pattern, line in zip(patterns, lines[at:], strict=False):
            if not re.fullmatch(pattern, line):
                break
            count += 1
        at += count
        again = at < len(lines) and re.fullmatch(_FIRST, lines[at]) is not None
        if not again:
            if at < len(lines) and count < len(patterns) and not lines[at].startswith("##[error]The job was cancelled"):
                return at, f"line {at} of its set-up is {lines[at]!r}"
            return at, ""
        if begun >= row["assignment"]:
            return at, f"line {at} begins a set-up, the {begun + 1}., in {row['assignment']} assignments"


def _common(lines: list[str], step: list[str]) -> int:
    count = 0
    for line, expected in zip(lines, step, strict=False):
        if line != expected:
            break
        count += 1
    return count


def _broken_off(lines: list[str], at: int, *, after: int) -> Said:
    """A step whose lines are not all there: the log ends, or says why."""
    tail = lines[at:]
    if after and tail and tail[0] != CANCELED:
        return Said(f"line {at} is {tail[0]!r}, after {lines[at - 1]!r}")
    known = (CANCELED, CLEANING, "##[error]The job was cancelled before it began.")
    unknown = [line for line in tail if line not in known]
    return Said(f"behind line {at} it says {unknown[0]!r}" if unknown else "")


def _tail_problem(lines: list[str], at: int, expected: list[str]) -> str:
    """What comes after the last step, as far as the log got."""
    tail = lines[at:]
    return "" if tail == expected[: len(tail)] else f"behind line {at} it says {tail[:5]}"


def _claim_problem(row: dict[str, Any], number: int, first: int, count: int) -> str:
    """Whether a step that ended well claims exactly its own lines."""
    if row["conclusion"] != "success":
        return ""
    claimed = [(step["first"], step["count"]) for step in row["steps"][number : number + 1]]
    return "" if claimed == [(first, count)] else f"step {number + 1} claims {claimed}, and has {(first, count)}"
