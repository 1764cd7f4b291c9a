"""Which verb takes which lock before it decides? The lock is taken away from one verb at a time."""

from __future__ import annotations

from tests.mutation.guard import RACES, Guard, T

EACH = RACES + "test_each_lock.py::"
RACING_CACHES = RACES + "test_caches.py::"
CACHES = "ci/lifecycle/caches/"
REGISTRATION = "ci/lifecycle/registration.py"

LOCKS = {
    "lock_job(job_id)": '(lambda job: (job.run, job))(Job.objects.select_related("run").get(pk=job_id))',
    "lock_job(job.pk)": '(lambda job: (job.run, job))(Job.objects.select_related("run").get(pk=job.pk))',
    "lock_run(run_id)": "Run.objects.get(pk=run_id)",
    "lock_runner(runner_id)": "Runner.objects.get(pk=runner_id)",
    "lock_set(set_id)": "RunnerSet.objects.get(pk=set_id)",
}
ATTEMPT = "    current = open_attempt(runner)\n"
OTHER_ATTEMPT = ATTEMPT + "    if current is None or current.number != attempt"


def without(verb: str, path: str, begin: str, lock: str, then: str, test: str) -> Guard:
    """`begin`, the lock and `then` are the text, of which `then` makes it the only one in its file."""
    return Guard(
        f"the lock in {verb}",
        path,
        f"{begin}{lock}\n{then}",
        f"{begin}{LOCKS[lock]}\n{then}",
        (f"{EACH}{test}[{verb}]",),
    )


OF_RUNS = tuple(
    without(verb, T + file if "/" not in file else file, begin, lock, then, "test_who_cancels_a_run_waits_for")
    for verb, file, begin, lock, then in (
        ("heartbeat", "heartbeat.py", "    run, job = ", "lock_job(job_id)", ""),
        ("update_steps", "update_steps.py", "    _, job = ", "lock_job(job_id)", ""),
        ("complete", "complete.py", "    run, job = ", "lock_job(job_id)", ""),
        ("seal_log", "seal_log.py", "    _, job = ", "lock_job(job_id)", ""),
        ("append_log, at the limit", "append_log.py", "    _, job = ", "lock_job(job_id)", ""),
        ("act_on_deadline", "deadlines.py", "    run, job = ", "lock_job(job_id)", "    if job.is_ended or"),
        ("lose_job", "deadlines.py", "    run, job = ", "lock_job(job_id)", "    if job.state != JobState.RUNNING"),
        ("release_from_runner", "deadlines.py", "    run, job = ", "lock_job(job_id)", "    if job.runner_id"),
        ("requeue_job", "deadlines.py", "    run, job = ", "lock_job(job_id)", "    check_version"),
        ("fail_unpreparable", "claim.py", "    run, job = ", "lock_job(job_id)", ""),
        ("cancel_job", "cancel.py", "    run, job = ", "lock_job(job_id)", ""),
        ("cancel_run", "cancel.py", "    run = ", "lock_run(run_id)", "    check_version"),
        ("act_on_run_deadline", "cancel.py", "    run = ", "lock_run(run_id)", "    now = "),
        ("approve_run", "approve_run.py", "    run = ", "lock_run(run_id)", ""),
        ("rerun", "rerun.py", "    run = ", "lock_run(run_id)", ""),
        ("lock_caller", "ci/lifecycle/runtime_tokens.py", "    _, locked = ", "lock_job(job.pk)", ""),
    )
)

OF_CALLERS = tuple(
    Guard(f"the lock in {verb}", path, old, new, (f"{EACH}test_who_cancels_a_run_waits_for[{verb}]",))
    for verb, path, old, new in (
        ("keep_summary", "ci/lifecycle/summaries.py", "locked = lock_caller(job)", "locked = job"),
        (
            "close_folder",
            "ci/lifecycle/artifact_folders.py",
            "    locked = lock_caller(job)\n    artifact = Artifact.objects.filter(run=",
            "    locked = job\n    artifact = Artifact.objects.filter(run=",
        ),
        ("put_file, anew", "ci/lifecycle/artifact_folders.py", "    lock_caller(job)\n    file = ", "    file = "),
        (
            "delete_artifact",
            "ci/lifecycle/artifacts.py",
            "        lock_caller(job)\n    else",
            "        pass\n    else",
        ),
    )
)

OF_RUNNERS = tuple(
    without(verb, path, "    runner = ", "lock_runner(runner_id)", then, "test_who_pauses_a_runner_waits_for")
    for verb, path, then in (
        ("begin_launch", T + "launching.py", "    now = timezone.now()\n"),
        ("launched", T + "launching.py", OTHER_ATTEMPT + ":\n        return False\n    if current.handle"),
        ("launch_unanswered", T + "launching.py", ATTEMPT + "    if current is not None"),
        ("launch_failed", T + "launching.py", OTHER_ATTEMPT + ":\n        return False\n    close("),
        ("came_up", T + "launching.py", "    check_runner_token"),
        ("process_forced", T + "process_end.py", OTHER_ATTEMPT + " or"),
        ("process_ended", T + "process_end.py", OTHER_ATTEMPT + ":"),
        ("claim", T + "claim.py", ""),
        ("retire_runner", T + "retire_runner.py", ""),
        ("pause_runner", REGISTRATION, "    check_version(runner, version)\n    if runner.paused"),
        ("remove_runner", REGISTRATION, "    check_version(runner, version)\n    # Under"),
    )
)

OF_SETS = (
    without(
        "delete_set",
        T + "set_life.py",
        "    runner_set = ",
        "lock_set(set_id)",
        "    check_version(runner_set, version)\n    if runner_set.phase == ",
        "test_who_scales_a_set_waits_for",
    ),
    without(
        "recover_set",
        T + "set_life.py",
        "    runner_set = ",
        "lock_set(set_id)",
        "    check_version(runner_set, version)\n    if runner_set.phase != ",
        "test_who_scales_a_set_waits_for",
    ),
    Guard(
        "the version: recover_set",
        T + "set_life.py",
        "    check_version(runner_set, version)\n    if runner_set.phase != ",
        "    if runner_set.phase != ",
        ("tests/scaling/test_park.py::test_a_person_may_let_it_start_again",),
    ),
    Guard(
        "the version: rerun of a job, in the admin",
        "ci/admin/jobs.py",
        "            check_version(job, version)\n",
        "",
        ("tests/admin/test_act_on_jobs.py::test_a_job_that_ended_meanwhile_is_not_run_again",),
    ),
)

OF_CACHES = tuple(
    Guard(f"the lock in which a cache is {done}", CACHES + file, f"repository = {old}", f"repository = {new}", (test,))
    for done, file, old, new, test in (
        (
            "reserved",
            "reserve.py",
            "lock_caches(job.run.repository_id)",
            "job.run.repository",
            RACING_CACHES + "test_of_two_who_reserve_a_key_at_once_one_gets_it",
        ),
        (
            "committed",
            "commit.py",
            "lock_caches(job.run.repository_id)",
            "job.run.repository",
            RACING_CACHES + "test_two_commits_at_once_stay_within_the_quota",
        ),
        (
            "evicted",
            "evict.py",
            "lock_caches(repository_id)",
            "Repository.objects.get(pk=repository_id)",
            RACING_CACHES + "test_a_commit_waits_for_the_eviction_and_finds_room",
        ),
        (
            "deleted",
            "delete.py",
            "lock_caches(repository_id)",
            "Repository.objects.get(pk=repository_id)",
            RACING_CACHES + "test_a_cache_goes_once_whoever_deletes_it",
        ),
    )
)

OF_VERBS = (*OF_RUNS, *OF_CALLERS, *OF_RUNNERS, *OF_SETS, *OF_CACHES)
