"""What do expressions see of a run? The github, needs, vars and secrets contexts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.conf import settings
from django.db import connection

from ci.lifecycle.encryption import decrypt
from ci.lifecycle.scopes import by_key, results
from ci.lifecycle.storage_policies import artifact_days
from ci.models import Conclusion, Environment, Job, Run, Secret, Variable
from ci.workflow import needs as needs_rules
from ci.workflow.calls import call_secrets
from ci.workflow.legs import strategy_context
from forge.models import Repository

# Sorted so that the nearest comes last: the instance, the owner, the repository, the environment.
_IN_SCOPE = """
    SELECT name, {column} FROM {table}
    WHERE environment_id IS NULL
        AND (repository_id = %(repository)s OR (repository_id IS NULL AND (owner_id = %(owner)s OR owner_id IS NULL)))
        OR environment_id = %(environment)s
    ORDER BY environment_id NULLS FIRST, repository_id NULLS FIRST, owner_id NULLS FIRST
"""


def github(run: Run) -> dict[str, Any]:
    """The `github` context without what only a runner knows (paths, the token). Source: GitHub docs, "Contexts"."""
    repository = run.repository
    owner = repository.owner
    server = settings.SERVER_URL
    is_tag = run.ref.startswith("refs/tags/")
    return {
        "action": "",
        "action_path": "",
        "action_ref": "",
        "action_repository": "",
        "actor": run.actor_name,
        "actor_id": str(run.actor_id or ""),
        "api_url": f"{server}/api/v1",
        "base_ref": "",
        "event": run.payload,
        "event_name": run.event,
        "graphql_url": "",
        "head_ref": "",
        "job": "",
        "ref": run.ref,
        "ref_name": run.ref_name,
        "ref_protected": False,
        "ref_type": "tag" if is_tag else "branch",
        "repository": str(repository),
        "repository_id": str(repository.pk),
        "repository_owner": owner.username,
        "repository_owner_id": str(owner.pk),
        "repositoryUrl": f"{server}/{repository}.git",
        "retention_days": str(artifact_days(repository)),
        "run_attempt": str(run.attempt),
        "run_id": str(run.pk),
        "run_number": str(run.number),
        "secret_source": "Actions" if run.trusted else "None",
        "server_url": server,
        "sha": run.sha,
        "triggering_actor": run.triggered_by_name or run.actor_name,
        "workflow": run.workflow_name,
        "workflow_ref": f"{repository}/{run.workflow_path}@{run.ref}",
        "workflow_sha": run.sha,
    }


def needs(job: Job, groups: Mapping[str, Sequence[Job]], known: Mapping[str, str | None]) -> dict[str, Any]:
    """The `needs` context: result and outputs of each direct need, the legs of a matrix merged."""
    return {
        key: {
            "result": known[key],
            "outputs": {}
            if known[key] == Conclusion.SKIPPED
            else needs_rules.merge_outputs([leg.outputs for leg in groups[key]]),
        }
        for key in job.needs
        if key in groups
    }


def of_condition(
    run: Run, job: Job, groups: Mapping[str, Sequence[Job]], known: Mapping[str, str | None]
) -> dict[str, Any]:
    """What a job's `if`, matrix and name see once its needs have ended."""
    return {
        "github": github(run),
        "inputs": inputs(job),
        "vars": variables(run.repository),
        "needs": needs(job, groups, known),
    }


def variables(repository: Repository, environment: Environment | None = None) -> dict[str, str]:
    """The `vars` context: the nearest scope's value wins: environment, repository, owner, instance."""
    return _in_scope(Variable, "value", repository, environment)


def inputs(job: Job) -> dict[str, Any]:
    """The `inputs` context: of the call that the job belongs to, else of the run."""
    given: dict[str, Any] = job.parent.call_inputs if job.parent is not None else job.run.inputs
    return given


def secrets(job: Job, *, token: str) -> dict[str, str]:
    """The `secrets` context in plain, without GITHUB_TOKEN; empty for a run that nobody with write access caused.

    In a called workflow: what the calls on the way to it hand on, and those of the job's own environment. `token`: the
    job's, which a call may hand on under another name.
    Raises SecretUnreadable, and ExpressionError where a call hands on something that cannot be evaluated.
    """
    if not job.run.trusted:
        return {}
    if job.parent is not None:
        found = _handed_on(job.parent, token)
    else:
        found = _decrypted(_in_scope(Secret, "encrypted", job.run.repository))
    if job.environment is not None:
        own = Secret.objects.filter(environment=job.environment)
        found.update(_decrypted(dict(own.values_list("name", "encrypted"))))
    return found


def _handed_on(call: Job, token: str) -> dict[str, str]:
    """What a call gives to its jobs: with `inherit` all it has itself."""
    raw = call.definition.get("secrets") or {}
    outer = secrets(call, token=token)
    if raw == "inherit":
        return outer
    rows = Job.objects.filter(run=call.run_id, attempt=call.attempt, parent=call.parent_id)
    groups = by_key(list(rows.order_by("matrix_index")))
    seen = {
        "github": {**github(call.run), "token": token},
        "inputs": inputs(call),
        "vars": variables(call.run.repository),
        "needs": needs(call, groups, results(groups)),
        "strategy": strategy_of(call),
        "matrix": call.matrix,
        "secrets": {**outer, "GITHUB_TOKEN": token},
    }
    return call_secrets({name: str(value) for name, value in raw.items()}, seen)


def strategy_of(job: Job) -> dict[str, Any]:
    """The `strategy` context."""
    return strategy_context(job.matrix_index, job.matrix_total, fail_fast=job.fail_fast, max_parallel=job.max_parallel)


def _decrypted(encrypted: Mapping[str, str]) -> dict[str, str]:
    return {name: decrypt(text) for name, text in encrypted.items()}


def _in_scope(
    model: type[Secret] | type[Variable], column: str, repository: Repository, environment: Environment | None = None
) -> dict[str, str]:
    """Values by name; of a name that more than one scope has, the nearest one's.

    Asked for with every job: by SQL, which the ORM would build anew each time, at several times the query's cost.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            _IN_SCOPE.format(column=column, table=model._meta.db_table),
            {
                "repository": repository.pk,
                "owner": repository.owner_id,
                "environment": environment.pk if environment is not None else None,
            },
        )
        return dict(cursor.fetchall())
