"""What is a job in the words of Forgejo's and Gitea's runners? A task: a workflow of one job, and its contexts."""

from __future__ import annotations

from typing import Any

from django.conf import settings

from ci.interop.protocol import runner_pb2 as pb
from ci.interop.runner_service.results import result_of
from ci.interop.runner_service.task_ids import task_id_of
from ci.interop.workflow_payload import workflow_text
from ci.lifecycle import contexts, id_tokens, runtime_tokens
from ci.lifecycle.scopes import by_key, results
from ci.models import Job

# All the same: runners and actions ask for the one that their own forge calls so.
_TOKEN_NAMES = ("GITHUB_TOKEN", "GITEA_TOKEN", "FORGEJO_TOKEN")
# The release of Forgejo whose protocol this is.
_LIKE = "15.0.0+forge-ci"
# Of the `github` context, what only the runner itself knows.
_OF_THE_RUNNER = ("action_status", "env", "event_path", "path", "workspace")


def build(job: Job, token: str) -> pb.Task:
    """The task for a job just assigned. Raises what makes the job unfit for any runner, or for these."""
    rows = Job.objects.filter(run=job.run, attempt=job.attempt, parent=job.parent_id)
    groups = by_key(list(rows.order_by("matrix_index")))
    # A need that failed and was allowed to is a success here: the runner does not know that it was.
    needs = contexts.needs(job, groups, results(groups))
    asking, runtime_token = id_tokens.request_of(job), runtime_tokens.issue(job)
    # Every step sees these two in its environment, and a runner masks only what it knows as a secret.
    tokens = {"ACTIONS_RUNTIME_TOKEN": runtime_token, **dict.fromkeys(_TOKEN_NAMES, token)}
    if asking is not None:
        tokens["ACTIONS_ID_TOKEN_REQUEST_TOKEN"] = asking.token
    task = pb.Task(
        id=task_id_of(job),
        workflow_payload=workflow_text(job).encode(),
        secrets={**contexts.secrets(job, token=token), **tokens},
        needs={
            key: pb.TaskNeed(outputs=need["outputs"], result=result_of(need["result"])) for key, need in needs.items()
        },
        vars=contexts.variables(job.run.repository, job.environment),
    )
    task.context.update(_context(job, token, runtime_token, asking))
    return task


def _context(job: Job, token: str, runtime_token: str, asking: id_tokens.IdTokenRequest | None) -> dict[str, Any]:
    """Texts, numbers too, but for `event` and `ref_protected`: the runner reads no others."""
    found: dict[str, Any] = {
        **dict.fromkeys(_OF_THE_RUNNER, ""),
        **contexts.github(job.run),
        "job": job.key,
        "token": token,
        "forgejo_server_version": _LIKE,
    }
    # Without a place to take actions from, a Forgejo runner ends the task. It asks for the first of the two names.
    source = settings.ACTIONS_SOURCES[0] if settings.ACTIONS_SOURCES else settings.SERVER_URL
    for prefix in ("forgejo_", "gitea_"):
        found[f"{prefix}default_actions_url"] = source
        found[f"{prefix}runtime_token"] = runtime_token
    if asking is not None:
        for prefix in ("forgejo_", ""):
            found[f"{prefix}actions_id_token_request_url"] = asking.url
            found[f"{prefix}actions_id_token_request_token"] = asking.token
    return found
