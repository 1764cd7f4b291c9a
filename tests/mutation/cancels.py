"""Which guards keep a cancelled run, a circle of waiting runs and what a killed process left from doing harm?"""

from __future__ import annotations

from tests.mutation.guard import LIFE, RACES, Guard, T

CIRCLES = RACES + "test_circles.py"
CRASHES = "tests/forge/git/test_settle_after_a_crash.py"

CANCELS = (
    Guard(
        "a circle is looked at again under the locks",
        T + "circles.py",
        "    if {job.pk for job in circle(group_id)} != {job.pk for job in found}:\n        return\n",
        "",
        (CIRCLES,),
    ),
    Guard(
        "the locks of a circle's groups",
        T + "circles.py",
        "        lock_group(each)\n",
        "        pass\n",
        (CIRCLES,),
    ),
    Guard(
        "the locks of a circle's runs",
        T + "circles.py",
        "{run_id: lock_run(run_id) for run_id in",
        "{run_id: Run.objects.get(pk=run_id) for run_id in",
        (CIRCLES,),
    ),
    Guard(
        "a run is stopped once",
        T + "stop_run.py",
        "    if run.cancel_reason:\n        return 0\n",
        "",
        (LIFE + "test_cancel.py",),
    ),
    Guard(
        "what a cancelled run keeps is kept",
        T + "stop_run.py",
        " and job.pk not in kept]",
        "]",
        (LIFE + "test_cancel.py",),
    ),
    Guard(
        "a run's deadline is looked at again under the lock",
        T + "cancel.py",
        "    if run.is_ended or run.deadline_at is None or run.deadline_at > now:\n        return False\n",
        "",
        (LIFE + "test_deadlines.py",),
    ),
    Guard(
        "nobody is lost for the server's own silence",
        "ci/lifecycle/watch.py",
        "sweeps.sweep(losing_from=self._losing_from)",
        "sweeps.sweep()",
        (LIFE + "test_watch.py",),
    ),
    Guard(
        "a lock that a living push may hold is left alone",
        "forge/git/receive.py",
        "for row in rows if (repository.pk, row.ref) not in busy]",
        "for row in rows]",
        (CRASHES,),
    ),
    Guard(
        "a lock made after the look at the living is left alone",
        "forge/git/stale_locks.py",
        "            if path.stat().st_mtime < before:\n",
        "            if path.exists():\n",
        (CRASHES,),
    ),
)
