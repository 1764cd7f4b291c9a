"""Which guards do the caches of a repository have?"""

from __future__ import annotations

from tests.mutation.guard import LIFE, RACES, Guard

CACHES = "ci/lifecycle/caches/"
RACING = RACES + "test_caches.py"

OF_CACHES = (
    Guard(
        "the lock of a repository's caches",
        CACHES + "locking.py",
        "Repository.objects.select_for_update(no_key=True).get(pk=repository_id)",
        "Repository.objects.get(pk=repository_id)",
        (RACING + "::test_of_two_who_reserve_a_key_at_once_one_gets_it",),
    ),
    Guard(
        "a cache is reserved by an assignment that counts",
        CACHES + "reserve.py",
        "    lock_caller(job)\n",
        "",
        (RACING + "::test_a_call_of_an_assignment_that_is_replaced_at_that_moment_changes_nothing",),
    ),
    Guard(
        "a cache is committed before its job ends",
        CACHES + "commit.py",
        "    lock_caller(job)\n",
        "",
        (RACING + "::test_the_end_of_a_job_waits_for_its_commit",),
    ),
    Guard(
        "a commit makes room",
        CACHES + "commit.py",
        "    make_room(repository, keep=entry)\n",
        "",
        (RACING + "::test_two_commits_at_once_stay_within_the_quota",),
    ),
    Guard(
        "only the job that reserved a cache commits it",
        CACHES + "commit.py",
        "filter(repository=job.run.repository_id, job=job)",
        "filter(repository=job.run.repository_id)",
        (LIFE + "test_commit_cache.py::test_only_the_job_that_reserved_it_commits",),
    ),
    Guard(
        "what has gone is not handed out",
        CACHES + "find.py",
        "update(last_used_at=now)) or rows.exists()",
        "update(last_used_at=now)) or True",
        (LIFE + "test_find_cache.py::test_what_goes_at_that_very_moment_is_not_handed_out",),
    ),
    Guard(
        "a stranger adds nothing to the default branch",
        CACHES + "scopes.py",
        "if not run.trusted and run.ref",
        "if False and run.ref",
        (LIFE + "test_reserve_cache.py::test_a_stranger_adds_nothing_to_the_default_branch",),
    ),
)
