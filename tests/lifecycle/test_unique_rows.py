"""What else the database refuses to hold twice, or by halves; and that no constraint is without a test."""

from __future__ import annotations

import re
import uuid
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.db import IntegrityError, transaction
from django.utils import timezone

from ci.models import (
    Artifact,
    ArtifactFile,
    Blob,
    BlobPart,
    CacheEntry,
    ConcurrencyGroup,
    Environment,
    LabelSet,
    LaunchAttempt,
    MeasureSum,
    RegistrationToken,
    Run,
    RunAttempt,
    Runner,
    RunnerSet,
    Schedule,
    Secret,
    SigningKey,
    StoragePolicy,
    Variable,
    Workflow,
)
from forge.models import AccessToken, Member, Repository
from tests.playground import Playground

HERE = Path(__file__).parent
NOW = timezone.now()


def refused(constraint: str, act: Any) -> None:
    with pytest.raises(IntegrityError, match=constraint), transaction.atomic():
        act()


def copy(row: Any, **fields: Any) -> None:
    """The same row once more."""
    row.pk = None
    row._state.adding = True
    for name, value in fields.items():
        setattr(row, name, value)
    row.save(force_insert=True)


def test_a_name_stands_once_where_it_is_looked_for(playground: Playground) -> None:
    playground.run()
    repository = playground.repository
    refused("workflow_once_a_path", lambda: copy(Workflow.objects.get()))
    Environment.objects.create(repository=repository, name="production")
    refused(
        "environment_once_a_repository", lambda: Environment.objects.create(repository=repository, name="Production")
    )
    ConcurrencyGroup.objects.create(repository=repository, name="deploy")
    refused("concurrency_group_once", lambda: copy(ConcurrencyGroup.objects.get()))
    RunnerSet.objects.create(name="set", labels=["linux"])
    refused("runner_set_once_a_scope", lambda: copy(RunnerSet.objects.get()))
    Variable.objects.create(name="X", value="x")
    refused("ci_variable_once_a_scope", lambda: copy(Variable.objects.get()))
    refused("repository_name_once_an_owner", lambda: Repository.objects.create(owner=playground.alice, name="WIDGETS"))
    refused("member_once_a_repository", lambda: copy(Member.objects.filter(user=playground.bob).get()))


def test_labels_stand_once(playground: Playground) -> None:
    LabelSet.objects.create(labels=["linux", "gpu"])
    refused("ci_labelset_labels", lambda: LabelSet.objects.create(labels=["linux", "gpu"]))


def test_a_token_is_of_one_runner(playground: Playground) -> None:
    playground.runner()
    refused("ci_runner_token_hash", lambda: copy(Runner.objects.get()))


def test_a_runner_has_a_name_of_its_own_to_us(playground: Playground) -> None:
    playground.runner()
    Runner.objects.update(uuid=uuid.UUID(int=7))
    refused("ci_runner_uuid", lambda: copy(Runner.objects.get(), token_hash=None))


def test_a_token_opens_one_thing(playground: Playground) -> None:
    RegistrationToken.objects.create(token_hash="x")
    refused("ci_registrationtoken_token_hash", lambda: copy(RegistrationToken.objects.get()))
    AccessToken.objects.create(user=playground.alice, name="one", token_hash="x")
    refused("forge_accesstoken_token_hash", lambda: copy(AccessToken.objects.get(), name="two"))


def test_a_key_id_is_of_one_key(db: None) -> None:
    SigningKey.objects.create(kid="one", public="x", retired_at=NOW)
    refused("ci_signingkey_kid", lambda: copy(SigningKey.objects.get()))


def test_bytes_have_one_owner_and_one_place(playground: Playground) -> None:
    run, blob = playground.run(), Blob.objects.create()
    refused("ci_blob_key", lambda: copy(Blob.objects.get()))
    BlobPart.objects.create(blob=blob, block_id="a", position=0, size=1, file="one")
    refused("ci_blobpart_file", lambda: copy(BlobPart.objects.get(), block_id="b", position=1))
    artifact = Artifact.objects.create(run=run, attempt=1, name="one", expires_at=NOW, blob=blob)
    refused("ci_artifact_blob_id", lambda: copy(Artifact.objects.get(), name="two"))
    ArtifactFile.objects.create(artifact=artifact, path="a", blob=blob)
    refused("ci_artifactfile_blob_id", lambda: copy(ArtifactFile.objects.get(), path="b"))
    found = {"repository": playground.repository, "ref": run.ref, "version": "1", "blob": blob}
    CacheEntry.objects.create(key="one", **found)
    refused("ci_cacheentry_blob_id", lambda: copy(CacheEntry.objects.get(), key="two"))


def test_a_time_is_due_once(playground: Playground) -> None:
    run = playground.run()
    row = Schedule.objects.create(workflow=run.workflow, cron="0 3 * * *", next_at=NOW)
    refused("schedule_once_an_entry", lambda: copy(Schedule.objects.get()))
    Run.objects.filter(pk=run.pk).update(schedule=row, scheduled_for=NOW)
    refused("run_once_a_due_time", lambda: copy(Run.objects.get(), number=2, push=None))


def test_a_run_causes_one_run_of_a_workflow(playground: Playground) -> None:
    source = playground.run()
    fields = {"source_run": source, "source_attempt": 1, "source_action": "completed", "push": None}
    copy(Run.objects.get(), number=2, **fields)
    again = Run.objects.get(number=2)
    refused("run_once_a_source_and_workflow", lambda: copy(again, number=3))


def test_an_attempt_stands_once_and_ends_after_its_start(playground: Playground) -> None:
    run = playground.run()
    RunAttempt.objects.create(run=run, number=1, conclusion="success", ended_at=NOW)
    refused("attempt_once_a_run", lambda: copy(RunAttempt.objects.get()))
    late = {"number": 2, "started_at": NOW + timedelta(seconds=1)}
    refused("attempt_ends_after_its_start", lambda: copy(RunAttempt.objects.get(), **late))


def test_nothing_has_two_scopes(playground: Playground) -> None:
    scope = {"owner": playground.alice, "repository": playground.repository}
    refused("ci_registrationtoken_one_scope", lambda: RegistrationToken.objects.create(token_hash="x", **scope))
    refused("ci_runnerset_one_scope", lambda: RunnerSet.objects.create(name="s", labels=["x"], **scope))
    refused("ci_variable_one_scope", lambda: Variable.objects.create(name="X", value="x", **scope))


def test_an_environment_is_of_its_repository(playground: Playground) -> None:
    environment = Environment.objects.create(repository=playground.repository, name="production")
    for model, value in ((Secret, {"encrypted": "x"}), (Variable, {"value": "x"})):
        name = f"ci_{model.__name__.lower()}_environment_of_a_repository"
        refused(name, lambda m=model, v=value: m.objects.create(name="X", environment=environment, **v))


def test_a_member_has_a_role_that_is_known(playground: Playground) -> None:
    assert playground.repository
    refused("member_role_known", lambda: Member.objects.update(role="owner"))


def test_one_key_signs_and_has_its_private_half(playground: Playground) -> None:
    SigningKey.objects.create(kid="one", encrypted="x", public="x")
    refused("signing_key_one_in_use_an_algorithm", lambda: copy(SigningKey.objects.get(), kid="two"))
    refused("signing_key_in_use_has_its_private_half", lambda: SigningKey.objects.update(encrypted=""))
    refused("signing_key_in_use_has_its_private_half", lambda: SigningKey.objects.update(retired_at=NOW))


def test_a_runner_of_a_set_is_started_waits_and_ends_as_one(playground: Playground) -> None:
    pool = RunnerSet.objects.create(name="pool", labels=["linux"])
    runner = playground.runner(ephemeral=True)
    mine = Runner.objects.filter(pk=runner.pk)
    mine.update(runner_set=pool)
    refused("runner_busy_single_use_one_has_a_job", lambda: mine.update(phase="running"))
    refused("runner_of_a_set_is_single_use", lambda: mine.update(ephemeral=False))
    refused("runner_waiting_for_its_launch_has_no_process", lambda: mine.update(next_attempt_at=NOW))
    refused("runner_stopped_for_good_has_ended", lambda: mine.update(stopped_at=NOW))
    LaunchAttempt.objects.create(runner=runner, number=1)
    refused("launch_attempt_one_at_a_time", lambda: copy(LaunchAttempt.objects.get(), number=2))
    refused("launch_attempt_once_a_number", lambda: copy(LaunchAttempt.objects.get(), ended_at=NOW))


def test_a_runner_set_says_since_when(playground: Playground) -> None:
    pool = RunnerSet.objects.create(name="pool", labels=["linux"])
    mine = RunnerSet.objects.filter(pk=pool.pk)
    refused("runner_set_each_repository_may_run_something", lambda: mine.update(maximum_per_repository=0))
    refused("runner_set_deleting_has_a_time", lambda: mine.update(phase="deleting"))
    refused("runner_set_deleting_has_a_time", lambda: mine.update(deleting_at=NOW))
    refused("runner_set_parked_has_a_time", lambda: mine.update(phase="outdated"))


def test_a_bucket_is_added_up_in_one_row(playground: Playground) -> None:
    pool = RunnerSet.objects.create(name="pool", labels=["linux"])
    MeasureSum.objects.create(runner_set=pool, kind="queue", bound=1.0, milliseconds=5, count=1)
    refused("measure_sum_once_a_bucket", lambda: copy(MeasureSum.objects.get()))


def test_bytes_stand_once_in_a_blob_which_has_a_size_once_it_is_whole(db: None) -> None:
    blob = Blob.objects.create()
    refused("blob_committed_has_a_size", lambda: Blob.objects.update(size=1))
    refused("blob_committed_has_a_size", lambda: Blob.objects.update(committed_at=NOW))
    BlobPart.objects.create(blob=blob, block_id="a", position=0, size=1, file="one")
    refused("blob_part_once_a_block", lambda: copy(BlobPart.objects.get(), position=1, file="two"))
    refused("blob_part_once_a_position", lambda: copy(BlobPart.objects.get(), block_id="b", file="two"))


def test_artifacts_and_caches_stand_once_where_they_are_looked_for(playground: Playground) -> None:
    run = playground.run()
    artifact = Artifact.objects.create(run=run, attempt=1, name="report", expires_at=NOW)
    refused("artifact_once_an_attempt", lambda: copy(Artifact.objects.get()))
    ArtifactFile.objects.create(artifact=artifact, path="a", blob=Blob.objects.create())
    refused("artifact_file_once_a_path", lambda: copy(ArtifactFile.objects.get(), blob=Blob.objects.create()))
    found = {"repository": playground.repository, "ref": run.ref, "key": "deps", "version": "1"}
    CacheEntry.objects.create(blob=Blob.objects.create(), **found)
    refused("cache_entry_once_a_scope", lambda: copy(CacheEntry.objects.get(), blob=Blob.objects.create()))


def test_artifacts_are_kept_for_a_day_at_least(playground: Playground) -> None:
    StoragePolicy.objects.create(repository=playground.repository)
    for days in (0, 401):
        refused("storage_policy_days_in_bounds", lambda d=days: StoragePolicy.objects.update(artifact_days=d))


def test_every_constraint_has_a_test() -> None:
    tested = (HERE / "test_constraints.py").read_text() + Path(__file__).read_text()
    models = [*apps.get_app_config("ci").get_models(), *apps.get_app_config("forge").get_models()]
    names = {str(constraint.name) for model in models for constraint in model._meta.constraints}
    assert len(names) > 30
    made = {f"ci_{model}_environment_of_a_repository" for model in ("secret", "variable")}
    assert made < names
    assert not {name for name in names - made if not re.search(rf"\b{name}\b", tested)}
