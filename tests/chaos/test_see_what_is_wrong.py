"""Would the chaos test see it, if a log or an end were wrong? Made logs and ends, each with one fault."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.chaos import expected_log
from tests.chaos.expected_log import CANCELED, CLEANING, OUTPUT, steps_of
from tests.chaos.killer import Kill
from tests.chaos.verdict import Verdict
from tests.chaos.workload import FOLDER, JOBS, Planned, Workload

SPEAKER = Planned("speaker", lines=9, every=3, factor=7, output=True)
SET_UP = [
    "Current runner version: '1.0.0'",
    "##[group]Runner",
    "Runner name: alpha",
    "Labels: self-hosted, linux, x64, ubuntu-latest",
    "##[endgroup]",
    "##[group]Operating System",
    "Linux 6.1 x86_64",
    "Python 3.11.7, git 2.39.5",
    "##[endgroup]",
    "Complete job name: speaker",
]


def row(lines: list[str], **fields: Any) -> dict[str, Any]:
    first, second = (len(step) for step in steps_of(SPEAKER, {"matrix": {}, "attempt": 1}))
    steps = [(0, 10), (10, first), (10 + first, second), (10 + first + second, 2)]
    return {
        "log": "".join(f"{line}\n" for line in lines),
        "runner_name": "alpha",
        "name": "speaker",
        "assignment": 1,
        "attempt": 1,
        "matrix": {},
        "conclusion": "success",
        "steps": [{"first": at, "count": count} for at, count in steps],
        **fields,
    }


def whole() -> list[str]:
    steps = steps_of(SPEAKER, {"matrix": {}, "attempt": 1})
    return [*SET_UP, *steps[0], *steps[1], OUTPUT, CLEANING]


def at(text: str) -> int:
    return next(number for number, line in enumerate(whole()) if line.startswith(text))


def test_a_whole_log_is_complete() -> None:
    said = expected_log.read(row(whole()), SPEAKER)
    assert (said.problem, said.complete, said.code) == ("", True, None)


def test_each_beginning_of_a_log_is_in_order_and_only_the_whole_is_complete() -> None:
    for count in range(len(whole())):
        said = expected_log.read(row(whole()[:count], conclusion="failure"), SPEAKER)
        assert (said.problem, said.complete) == ("", False), f"of {count} lines"


def double(lines: list[str]) -> list[str]:
    number = at("speaker 1 4 ")
    return [*lines[: number + 1], *lines[number:]]


def leave_out(lines: list[str]) -> list[str]:
    return [line for line in lines if not line.startswith("speaker 1 4 ")]


def swap(lines: list[str]) -> list[str]:
    number = at("speaker 1 4 ")
    return [*lines[:number], lines[number + 1], lines[number], *lines[number + 2 :]]


def run_twice(lines: list[str]) -> list[str]:
    return [*lines[: at("speaker 1 4 ")], *lines]


def end_twice(lines: list[str]) -> list[str]:
    return [*lines, CLEANING]


@pytest.mark.parametrize("fault", [double, leave_out, swap, run_twice, end_twice])
def test_a_fault_in_a_log_is_seen(fault: Callable[[list[str]], list[str]]) -> None:
    for assignment in (1, 2):
        assert expected_log.read(row(fault(whole()), assignment=assignment), SPEAKER).problem


def test_a_step_that_claims_other_lines_is_seen() -> None:
    claims = [{"first": 0, "count": 10}, {"first": 10, "count": 3}, {"first": 30, "count": 1}]
    assert "claims" in expected_log.read(row(whole(), steps=claims), SPEAKER).problem


def test_what_a_lost_assignment_left_of_its_set_up_is_allowed_once() -> None:
    lines = [*SET_UP[:4], *whole()]
    assert "begins a set-up" in expected_log.read(row(lines), SPEAKER).problem
    shifted = [{**step, "first": step["first"] + 4} for step in row(lines)["steps"]]
    assert expected_log.read(row(lines, assignment=2, steps=shifted), SPEAKER).complete


def test_a_cancelled_log_ends_with_the_cancel() -> None:
    lines = [*whole()[: at("speaker 1 4 ")], CANCELED, CLEANING]
    assert expected_log.read(row(lines, conclusion="cancelled"), SPEAKER).problem == ""


def test_a_step_that_was_killed_behind_its_output_has_set_it_all_the_same() -> None:
    ended = [*whole()[: whole().index(OUTPUT)], "##[error]Process completed with exit code 137."]
    for tail in ([CLEANING], [OUTPUT, CLEANING]):
        said = expected_log.read(row([*ended, *tail], conclusion="failure"), SPEAKER)
        assert (said.problem, said.complete, said.code) == ("", True, 137)
    assert expected_log.read(row([*ended, OUTPUT, OUTPUT], conclusion="failure"), SPEAKER).problem


def test_a_step_that_was_killed_before_the_one_with_the_output_sets_none() -> None:
    killed = [*whole()[: at("speaker 1 9 ") + 1], "##[error]Process completed with exit code 137."]
    said = expected_log.read(row([*killed, CLEANING], conclusion="failure"), SPEAKER)
    assert (said.problem, said.complete, said.code) == ("", False, 137)
    assert expected_log.read(row([*killed, OUTPUT, CLEANING], conclusion="failure"), SPEAKER).problem


def test_a_round_has_its_jobs_and_the_same_seed_the_same_work() -> None:
    work = Workload(7)
    counted = {path: sum(job.legs or 1 for job in file.jobs) + len(file.calls) for path, file in work.files.items()}
    counted[f"{FOLDER}/deploy.yml"], counted[f"{FOLDER}/line.yml"], counted[f"{FOLDER}/later.yml"] = 5, 3, 3
    assert sum(counted.values()) == JOBS
    assert work.texts() == Workload(7).texts() != Workload(8).texts()


def ended(conclusion: str, kind: str = "ended", *, log: list[str] | None = None, **fields: Any) -> dict[str, Any]:
    moves = [("queued", "queued"), ("claimed", "assigned"), ("acknowledged", "running"), (kind, "ended")]
    path = f"{FOLDER}/plain.yml"
    planned = Workload(1).planned(path, "plain1")
    assert planned is not None
    made = {
        "id": 1,
        "run_id": 1,
        "parent_id": None,
        "carried_from_id": None,
        "path": path,
        "key": "plain1",
        "cancel_reason": "",
        "end_note": "",
        "events": [{"kind": name, "to": to, "at": 100.0 + n, "detail": ""} for n, (name, to) in enumerate(moves)],
    }
    lines = [*SET_UP[:9], "Complete job name: plain1", *steps_of(planned, {"matrix": {}, "attempt": 1})[0], CLEANING]
    steps = [{"first": 0, "count": 10}, {"first": 10, "count": len(lines) - 11}]
    given = {"name": "plain1", "conclusion": conclusion, "steps": steps, **made, **fields}
    return row(lines if log is None else log, **given)


def judged(job: dict[str, Any], *kills: Kill) -> list[str]:
    run = {"id": 1, "workflow_path": job["path"], "attempt": 1, "conclusion": job["conclusion"], "title": "it"}
    return Verdict(Workload(1), {"runs": [run], "jobs": [job], "tasks": 0}, kills).problems()


LOST = "runner alpha was lost: 20 s without a heartbeat."


def test_a_job_that_succeeded_with_all_its_lines_is_right() -> None:
    assert judged(ended("success")) == []


@pytest.mark.parametrize(
    ("job", "kills"),
    [
        (ended("success", log=SET_UP), []),
        (ended("failure"), []),
        (ended("cancelled", cancel_reason="owner"), []),
        (ended("skipped"), []),
        (ended("failure", "lost", end_note=LOST), []),
        (ended("failure", "lost", end_note=LOST), [Kill(101.5, 101.5, "a runner", 1, "beta")]),
        (ended("failure", "lost", end_note=LOST), [Kill(90.0, 90.0, "a runner", 1, "alpha")]),
        (ended("failure", "lost", end_note="Somehow."), [Kill(101.5, 101.5, "a runner", 1, "alpha")]),
        (ended("success", "lost", end_note=LOST), [Kill(101.5, 101.5, "a runner", 1, "alpha")]),
    ],
)
def test_an_end_that_nothing_explains_is_seen(job: dict[str, Any], kills: list[Kill]) -> None:
    assert judged(job, *kills)


def test_a_job_whose_runner_was_killed_may_be_lost() -> None:
    job = ended("failure", "lost", log=SET_UP[:3], end_note=LOST)
    assert judged(job, Kill(101.5, 101.5, "a runner", 1, "alpha")) == []
