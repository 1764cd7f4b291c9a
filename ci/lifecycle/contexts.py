"""What do expressions see of a run? The github, needs, vars and secrets contexts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.conf import settings
from django.db.models import Q, QuerySet

from ci.lifecycle.encryption import decrypt
from ci.models import Conclusion, Job, Run, Secret, Variable
from ci.workflow import needs as needs_rules
from forge.models import Repository


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
        "retention_days": "90",
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


def variables(repository: Repository) -> dict[str, str]:
    """The `vars` context: a repository's value wins over its owner's, that over the instance's."""
    rows = _in_scope(Variable.objects.all(), repository)
    return {row.name: row.value for row in sorted(rows, key=_nearness)}


def secrets(run: Run) -> dict[str, str]:
    """The `secrets` context in plain, nearest scope first; empty for a run that nobody with write access caused."""
    if not run.trusted:
        return {}
    rows = _in_scope(Secret.objects.all(), run.repository)
    return {row.name: decrypt(row.encrypted) for row in sorted(rows, key=_nearness)}


def _in_scope(rows: QuerySet[Any], repository: Repository) -> QuerySet[Any]:
    return rows.filter(
        Q(repository=repository) | Q(repository=None, owner=repository.owner_id) | Q(repository=None, owner=None)
    )


def _nearness(row: Secret | Variable) -> int:
    return 2 if row.repository_id is not None else 1 if row.owner_id is not None else 0
