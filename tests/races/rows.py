"""What do the rows say, and what may one call change in them? A picture of all rows, and rules for two in a row."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from django.db import connection

from ci.lifecycle.transitions.moves import ORIGINS
from ci.models import ACTIVE_STATES, TERMINAL_PHASES, Conclusion

Row = Mapping[str, Any]
Picture = Mapping[str, Any]

# One statement, so that a picture costs one round trip. What never changes is left out.
PICTURE = """
SELECT json_build_object(
    'runs', (SELECT json_agg(to_jsonb(run) - '{payload,permissions}'::text[] ORDER BY id) FROM ci_run run),
    'jobs', (SELECT json_agg(to_jsonb(job) - '{definition,runs_on,matrix,call_inputs}'::text[] ORDER BY id)
             FROM ci_job job),
    'runners', (SELECT json_agg(to_jsonb(runner) - '{labels}'::text[] ORDER BY id) FROM ci_runner runner),
    'steps', (SELECT json_agg(to_jsonb(step) ORDER BY job_id, number) FROM ci_step step),
    'heartbeats', (SELECT json_agg(to_jsonb(beat) ORDER BY job_id) FROM ci_heartbeat beat),
    'logs', (SELECT json_agg(to_jsonb(log) ORDER BY job_id) FROM ci_log log),
    'event', (SELECT max(id) FROM ci_event)
)::text
"""

# What a call may write without a new version: who was seen when, and the write-once details of a runner's job.
UNVERSIONED_OF_RUNNER = {"last_seen_at", "used_job_id", "used_job_name"}
# The database itself clears it when the runner is deleted.
UNVERSIONED_OF_JOB = {"runner_id"}


def picture() -> tuple[Picture, str]:
    """All rows that count, and the same as text, for a search that must find nothing."""
    with connection.cursor() as cursor:
        cursor.execute(PICTURE)
        text: str = cursor.fetchone()[0]
    rows = json.loads(text)
    return {name: found or ([] if name != "event" else 0) for name, found in rows.items()}, text


def check_change(before: Picture, after: Picture) -> None:
    """The rules for any one transaction, whoever made it. Raises AssertionError."""
    now = {job["id"]: job for job in after["jobs"]}
    for job in before["jobs"]:
        _check_job(job, now[job["id"]])
    runs = {run["id"]: run for run in after["runs"]}
    for run in before["runs"]:
        _check_run(run, runs[run["id"]])
    runners = {runner["id"]: runner for runner in after["runners"]}
    for runner in before["runners"]:
        if runner["id"] in runners:
            _check_runner(runner, runners[runner["id"]])
    waited = {job["id"] for job in before["jobs"] if job["state"] == "queued"}
    over = {runner["id"] for runner in before["runners"] if runner["phase"] in TERMINAL_PHASES}
    given = {job["runner_id"] for job in after["jobs"] if job["id"] in waited and job["state"] == "assigned"}
    assert not given & over, "a runner that was over was given a job"


def check_state(rows: Picture) -> None:
    """The rules for the rows at rest that the invariants' queries do not ask for. Raises AssertionError."""
    active = [job for job in rows["jobs"] if job["state"] in ACTIVE_STATES]
    with_runner = [job["runner_id"] for job in active]
    assert len(with_runner) == len(set(with_runner)), "a runner has two jobs at once"
    stepping = {step["job_id"] for step in rows["steps"]}
    for job in rows["jobs"]:
        if job["state"] in ("blocked", "queued"):
            kept = [name for name in ("runner_id", "runner_name", "token_hash", "poll_id", "outputs") if job[name]]
            assert not kept, f"{job['key']} waits, and still has {kept}"
            assert job["id"] not in stepping, f"{job['key']} waits, and still has the steps of an assignment"
        assert job["state"] == "assigned" or not job["poll_id"], f"{job['key']} is acknowledged, its poll not forgotten"
        assert job["state"] != "ended" or job["deadline_at"] is None, f"{job['key']} has ended and has a deadline"
        assert job["state"] in ("blocked", "ended") or job["deadline_at"], f"nothing watches over {job['key']}"
    for runner in rows["runners"]:
        jobs = [job["key"] for job in rows["jobs"] if job["single_use"] and job["runner_id"] == runner["id"]]
        assert len(jobs) <= 1, f"single-use {runner['name']} was given {jobs}"
        busy = runner["id"] in with_runner
        assert busy or runner["phase"] != "running", f"{runner['name']} is busy with nothing"


def _check_job(was: Row, now: Row) -> None:
    changed = {name for name in was if was[name] != now[name]}
    if was["state"] == "ended":
        assert changed <= UNVERSIONED_OF_JOB, f"{was['key']} had ended, and {changed} changed"
    _check_version(was, now, changed - UNVERSIONED_OF_JOB)
    if was["state"] != now["state"]:
        origins = {"assigned": {"queued"}, **ORIGINS}[now["state"]]
        # One transaction may do two moves: a need that ends lets its dependent go, which ends skipped.
        assert was["state"] in origins, f"{was['key']} went from {was['state']} to {now['state']}"
    given = now["assignment"] - was["assignment"]
    assert given == int(was["state"] == "queued" and now["state"] == "assigned"), f"{was['key']}: {given} assignments"
    if was["cancel_reason"]:
        assert now["cancel_reason"] == was["cancel_reason"], f"{was['key']} was asked to stop for two reasons"
        stopped = now["state"] != "ended" or now["conclusion"] == Conclusion.CANCELLED
        assert stopped, f"{was['key']} was asked to stop, and ended with {now['conclusion']}"


def _check_run(was: Row, now: Row) -> None:
    changed = {name for name in was if was[name] != now[name]}
    _check_version(was, now, changed)
    if was["state"] == "ended" and changed:
        assert now["attempt"] == was["attempt"] + 1, f"run {was['id']} had ended, and {changed} changed"


def _check_runner(was: Row, now: Row) -> None:
    changed = {name for name in was if was[name] != now[name]}
    _check_version(was, now, changed - UNVERSIONED_OF_RUNNER)
    if was["phase"] in TERMINAL_PHASES:
        assert changed <= UNVERSIONED_OF_RUNNER, f"{was['name']} had ended, and {changed} changed"
    if was["used_job_id"] is not None:
        assert now["used_job_id"] == was["used_job_id"], f"{was['name']} was used for two jobs"


def _check_version(was: Row, now: Row, changed: Iterable[str]) -> None:
    assert now["version"] >= was["version"], f"the version of {was['id']} fell"
    if set(changed):
        assert now["version"] > was["version"], f"{changed} changed under the same version"
