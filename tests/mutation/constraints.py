"""Which constraints has the database? Each is dropped before the test that breaks it."""

from __future__ import annotations

from tests.mutation.guard import LIFE, Guard

FIXTURE = "@pytest.fixture\ndef playground("
WITHOUT = """@pytest.fixture(autouse=True)
def without_a_constraint(db: None) -> None:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE {table} DROP CONSTRAINT IF EXISTS {name}")
        cursor.execute("DROP INDEX IF EXISTS {name}")


"""
OLDER, NEWER = LIFE + "test_constraints.py", LIFE + "test_unique_rows.py"
QUEUED = OLDER + "::test_a_queued_job_cannot_become"
SCOPES, NEWER_SCOPES = OLDER + "::test_nothing_has_two_scopes", NEWER + "::test_nothing_has_two_scopes"
NAMES = NEWER + "::test_a_name_stands_once_where_it_is_looked_for"
ATTEMPTS = NEWER + "::test_an_attempt_stands_once_and_ends_after_its_start"
ENVIRONMENTS = NEWER + "::test_an_environment_is_of_its_repository"
KEYS = NEWER + "::test_one_key_signs_and_has_its_private_half"
SINCE_WHEN = NEWER + "::test_a_runner_set_says_since_when"
AS_ONE = NEWER + "::test_a_runner_of_a_set_is_started_waits_and_ends_as_one"
ADDED_UP = "tests/api/test_metrics.py::test_what_is_added_up_later_comes_to_what_was_there"
BYTES = NEWER + "::test_bytes_stand_once_in_a_blob_which_has_a_size_once_it_is_whole"
KEPT = NEWER + "::test_artifacts_and_caches_stand_once_where_they_are_looked_for"
TOKENS = NEWER + "::test_a_token_opens_one_thing"
OWNED = NEWER + "::test_bytes_have_one_owner_and_one_place"
ROOM = OLDER + "::test_a_runner_set_has_room_for_its_idle_runners"


def without(table: str, name: str, test: str) -> Guard:
    return Guard(
        f"constraint {name}",
        "tests/conftest.py",
        FIXTURE,
        WITHOUT.format(table=table, name=name) + FIXTURE,
        (test,),
    )


CONSTRAINTS = tuple(
    without(table, name, test)
    for table, name, test in (
        ("ci_job", "job_ended_has_a_conclusion", QUEUED),
        ("ci_job", "job_active_has_a_runner_and_token", QUEUED),
        ("ci_job", "job_waiting_has_neither", QUEUED),
        ("ci_job", "job_queued_can_be_matched", QUEUED),
        ("ci_job", "job_poll_forgotten_once_acknowledged", QUEUED),
        ("ci_job", "job_blocked_says_why", QUEUED),
        ("ci_job", "job_once_an_attempt_and_call", OLDER + "::test_a_job_stands_once_in_an_attempt"),
        ("ci_job", "job_one_ever_for_a_single_use_runner", OLDER + "::test_a_single_use_runner_has_one_job_ever"),
        ("ci_job", "job_one_at_a_time_for_a_runner", OLDER + "::test_a_runner_has_one_job_at_a_time"),
        ("ci_step", "step_once_a_job", OLDER + "::test_a_step_ends_with_a_conclusion_and_stands_once"),
        ("ci_step", "step_ended_has_a_conclusion", OLDER + "::test_a_step_ends_with_a_conclusion_and_stands_once"),
        ("ci_logchunk", "log_chunk_once_an_offset", OLDER + "::test_lines_of_a_log_stand_once"),
        ("ci_logchunk", "log_chunk_not_empty", OLDER + "::test_lines_of_a_log_stand_once"),
        ("ci_run", "run_once_a_push_event_and_workflow", OLDER + "::test_a_run_is_made_once"),
        ("ci_run", "run_number_once_a_workflow", OLDER + "::test_a_run_is_made_once"),
        ("ci_run", "run_ended_has_a_conclusion", OLDER + "::test_a_run_cannot_end_by_halves"),
        ("ci_run", "run_once_a_source_and_workflow", NEWER + "::test_a_run_causes_one_run_of_a_workflow"),
        ("ci_run", "run_once_a_due_time", NEWER + "::test_a_time_is_due_once"),
        ("ci_schedule", "schedule_once_an_entry", NEWER + "::test_a_time_is_due_once"),
        ("ci_runattempt", "attempt_once_a_run", ATTEMPTS),
        (
            "ci_runattempt",
            "attempt_ends_after_its_start",
            ATTEMPTS,
        ),
        ("ci_runner", "runner_only_single_use_ones_end", OLDER + "::test_only_single_use_runners_end"),
        ("ci_runner", "ci_runner_one_scope", SCOPES),
        ("ci_secret", "ci_secret_one_scope", SCOPES),
        ("ci_registrationtoken", "ci_registrationtoken_one_scope", NEWER_SCOPES),
        ("ci_runnerset", "ci_runnerset_one_scope", NEWER_SCOPES),
        ("ci_variable", "ci_variable_one_scope", NEWER_SCOPES),
        (
            "ci_runnerset",
            "runner_set_maximum_over_minimum",
            ROOM,
        ),
        ("ci_runnerset", "runner_set_once_a_scope", NAMES),
        ("ci_runnerset", "runner_set_each_repository_may_run_something", SINCE_WHEN),
        ("ci_runnerset", "runner_set_deleting_has_a_time", SINCE_WHEN),
        ("ci_runnerset", "runner_set_parked_has_a_time", SINCE_WHEN),
        ("ci_runner", "runner_busy_single_use_one_has_a_job", AS_ONE),
        ("ci_runner", "runner_of_a_set_is_single_use", AS_ONE),
        ("ci_runner", "runner_waiting_for_its_launch_has_no_process", AS_ONE),
        ("ci_runner", "runner_stopped_for_good_has_ended", AS_ONE),
        ("ci_launchattempt", "launch_attempt_one_at_a_time", AS_ONE),
        ("ci_launchattempt", "launch_attempt_once_a_number", AS_ONE),
        ("ci_measuresum", "measure_sum_once_a_bucket", ADDED_UP),
        ("ci_secret", "ci_secret_once_a_scope", OLDER + "::test_a_name_stands_once_in_its_scope"),
        ("ci_variable", "ci_variable_once_a_scope", NAMES),
        ("ci_secret", "ci_secret_environment_of_a_repository", ENVIRONMENTS),
        (
            "ci_variable",
            "ci_variable_environment_of_a_repository",
            ENVIRONMENTS,
        ),
        ("ci_workflow", "workflow_once_a_path", NAMES),
        ("ci_environment", "environment_once_a_repository", NAMES),
        ("ci_concurrencygroup", "concurrency_group_once", NAMES),
        (
            "ci_signingkey",
            "signing_key_one_in_use_an_algorithm",
            KEYS,
        ),
        (
            "ci_signingkey",
            "signing_key_in_use_has_its_private_half",
            KEYS,
        ),
        ("ci_blob", "blob_committed_has_a_size", BYTES),
        ("ci_blobpart", "blob_part_once_a_block", BYTES),
        ("ci_blobpart", "blob_part_once_a_position", BYTES),
        ("ci_artifact", "artifact_once_an_attempt", KEPT),
        ("ci_artifactfile", "artifact_file_once_a_path", KEPT),
        ("ci_cacheentry", "cache_entry_once_a_scope", KEPT),
        ("ci_storagepolicy", "storage_policy_days_in_bounds", NEWER + "::test_artifacts_are_kept_for_a_day_at_least"),
        ("forge_push", "push_moves_its_ref", OLDER + "::test_a_push_moves_its_ref_and_is_settled_at_a_time"),
        ("forge_push", "push_settled_has_a_time", OLDER + "::test_a_push_moves_its_ref_and_is_settled_at_a_time"),
        ("ci_labelset", "ci_labelset_labels_key", NEWER + "::test_labels_stand_once"),
        ("ci_runner", "ci_runner_token_hash_key", NEWER + "::test_a_token_is_of_one_runner"),
        ("ci_runner", "ci_runner_uuid_key", NEWER + "::test_a_runner_has_a_name_of_its_own_to_us"),
        ("ci_registrationtoken", "ci_registrationtoken_token_hash_key", TOKENS),
        ("forge_accesstoken", "forge_accesstoken_token_hash_key", TOKENS),
        ("ci_signingkey", "ci_signingkey_kid_key", NEWER + "::test_a_key_id_is_of_one_key"),
        ("ci_blob", "ci_blob_key_key", OWNED),
        ("ci_blobpart", "ci_blobpart_file_key", OWNED),
        ("ci_artifact", "ci_artifact_blob_id_key", OWNED),
        ("ci_artifactfile", "ci_artifactfile_blob_id_key", OWNED),
        ("ci_cacheentry", "ci_cacheentry_blob_id_key", OWNED),
        ("forge_member", "member_once_a_repository", NAMES),
        ("forge_member", "member_role_known", NEWER + "::test_a_member_has_a_role_that_is_known"),
        (
            "forge_repository",
            "repository_name_once_an_owner",
            NAMES,
        ),
    )
)
