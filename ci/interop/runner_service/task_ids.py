"""How do a job and its assignment fit into the one number that a task has? Both can be read off it in decimal.

Task 42000003 is the third assignment of job 42: six digits are more assignments than a run has time for, and leave
room for 9 * 10**12 jobs in an int64.
"""

from __future__ import annotations

from ci.lifecycle.errors import NotFound
from ci.lifecycle.transitions import Holder
from ci.models import Job, Runner

_ASSIGNMENTS = 10**6
_LARGEST_JOB = (2**63 - 1) // _ASSIGNMENTS


def task_id_of(job: Job) -> int:
    """Raises ValueError where the numbers do not fit."""
    if job.assignment >= _ASSIGNMENTS or job.pk >= _LARGEST_JOB:
        raise ValueError(f"The assignment {job.assignment} of job {job.pk} has no task number.")
    return job.pk * _ASSIGNMENTS + job.assignment


def job_and_holder(task_id: int, runner: Runner) -> tuple[int, Holder]:
    """The job's id, and what the runner claims to hold of it. Raises NotFound where this can be no task."""
    job_id, assignment = divmod(task_id, _ASSIGNMENTS)
    if job_id <= 0 or assignment <= 0:
        raise NotFound("There is no such task.")
    return job_id, Holder(runner.pk, assignment)
