"""Which guards do the artifacts of a run have?"""

from __future__ import annotations

from tests.mutation.guard import LIFE, RACES, Guard

KEEP = "ci/lifecycle/artifacts.py"
FOLDERS = "ci/lifecycle/artifact_folders.py"
SWEEPS = "ci/lifecycle/artifact_sweeps.py"
TOKENS = "ci/lifecycle/runtime_tokens.py"
RACING = RACES + "test_artifacts.py"
KEEPING = LIFE + "test_keep_artifacts.py"
SWEEPING = LIFE + "test_sweep_artifacts.py"
SERVICE = "tests/interop/test_results_service.py"

OF_ARTIFACTS = (
    Guard(
        "an artifact is made under the lock of its run",
        KEEP,
        "    locked = lock_caller(job)\n",
        "    locked = job\n",
        (RACING + "::test_of_two_jobs_that_make_a_name_at_once_one_gets_it",),
    ),
    Guard(
        "a folder is opened under the lock of its run",
        FOLDERS,
        "    locked = lock_caller(job)\n    expiry",
        "    locked = job\n    expiry",
        (RACING + "::test_two_jobs_that_open_a_folder_at_once_share_it",),
    ),
    Guard(
        "a file is begun under the lock of its run",
        FOLDERS,
        "    locked = lock_caller(job)\n    artifact = Artifact.objects.filter(pk=artifact_id",
        "    locked = job\n    artifact = Artifact.objects.filter(pk=artifact_id",
        (RACING + "::test_two_jobs_that_begin_a_file_at_once_leave_one_file",),
    ),
    Guard(
        "an artifact is finished before its job ends",
        KEEP,
        "    lock_caller(job)\n    artifact = ",
        "    artifact = ",
        (RACING + "::test_a_job_that_ends_before_it_has_finished_leaves_nothing_to_see",),
    ),
    Guard(
        "an artifact is finished with the bytes that were looked at",
        KEEP,
        "filter(pk=artifact_id, blob=blob_id)",
        "filter(run=job.run_id)",
        (RACING + "::test_what_began_anew_is_not_finished_with_the_old_bytes",),
    ),
    Guard(
        "an artifact has the size that was said",
        KEEP,
        "    if size != blob.size:\n",
        "    if False:\n",
        (SERVICE + "::test_other_bytes_than_announced_are_not_finalized",),
    ),
    Guard(
        "an artifact has the digest that was said",
        KEEP,
        "    if digest and digest != found:\n",
        "    if False:\n",
        (SERVICE + "::test_other_bytes_than_announced_are_not_finalized",),
    ),
    Guard(
        "an artifact is not replaced",
        KEEP,
        "    if known.finalized_at is not None:\n",
        "    if False:\n",
        (SERVICE + "::test_finalizing_twice_is_once",),
    ),
    Guard(
        "what another job uploads is not taken over",
        KEEP,
        " and known.job.state in ACTIVE_STATES",
        " and False",
        (KEEPING + "::test_what_another_running_job_uploads_keeps_its_name",),
    ),
    Guard(
        "an artifact is kept no longer than its repository allows",
        KEEP,
        "    return min([latest, *asked])\n",
        "    return min(asked, default=latest)\n",
        (KEEPING,),
    ),
    Guard(
        "a runtime token is of one assignment",
        TOKENS,
        "    if job.assignment != assignment:\n",
        "    if False:\n",
        (SERVICE, RACING),
    ),
    Guard(
        "a runtime token ends with its job",
        TOKENS,
        "    if job.is_ended:\n",
        "    if False:\n",
        (SERVICE,),
    ),
    Guard(
        "a sweep looks again under the lock",
        SWEEPS,
        "    if _abandoned().filter(pk=artifact_id).exists():\n",
        "    if True:\n",
        (RACING + "::test_a_sweep_leaves_what_is_finished_just_then",),
    ),
    Guard(
        "what a running job uploads is not swept",
        SWEEPS,
        "    lost = ~Q(job__state__in=ACTIVE_STATES) & ",
        "    lost = ",
        (SWEEPING + "::test_nothing_is_given_up_while_its_job_runs",),
    ),
)
