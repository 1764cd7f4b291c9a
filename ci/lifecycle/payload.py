"""What does a runner need to know to run a job? Everything, in one answer."""

from __future__ import annotations

from typing import Any

from django.conf import settings

from ci.lifecycle import contexts, id_tokens, job_workflow, runtime_tokens
from ci.lifecycle.scopes import by_key, results
from ci.models import Job, Log


def build(job: Job, token: str) -> dict[str, Any]:
    """The body of jobs/fetch for a job just assigned. Raises SecretUnreadable and what a broken definition raises."""
    run = job.run
    # Only for those that it needs: of a wide matrix each leg would read all others.
    scope = Job.objects.filter(run=run, attempt=job.attempt, parent=job.parent_id, key__in=job.needs)
    groups = by_key(list(scope.order_by("matrix_index"))) if job.needs else {}
    secrets = {**contexts.secrets(job, token=token), "GITHUB_TOKEN": token}
    called = job.parent.definition["called"] if job.parent is not None else None
    asking = id_tokens.request_of(job)
    runtime = _runtime(job)
    masks = {*secrets.values(), asking.token if asking else "", runtime["token"]} - {""}
    log = Log.objects.filter(job=job).first()
    return {
        "job": {
            "id": job.pk,
            "assignment": job.assignment,
            "token": token,
            "name": job.name,
            "key": job.key,
            "run_id": run.pk,
            "attempt": job.attempt,
            "timeout_minutes": job.timeout_minutes,
            "cancel_grace_seconds": job.grace.total_seconds(),
            "log_offset": log.lines if log else 0,
        },
        "workflow": {
            "name": run.workflow_name,
            "path": run.workflow_path,
            "env": called["env"] if called else run.env,
            "defaults": called["defaults"] if called else run.defaults,
        },
        "definition": job.definition,
        "contexts": {
            "github": {**contexts.github(run), "job": job.key, "token": token},
            "needs": contexts.needs(job, groups, results(groups)),
            "matrix": job.matrix,
            "strategy": contexts.strategy_of(job),
            "vars": contexts.variables(run.repository, job.environment),
            "secrets": secrets,
            "inputs": contexts.inputs(job),
            "job": job_workflow.context(job),
        },
        "actions_sources": settings.ACTIONS_SOURCES,
        "id_token": {"request_url": asking.url, "request_token": asking.token} if asking else None,
        "runtime": runtime,
        "masks": sorted(masks),
    }


def _runtime(job: Job) -> dict[str, str]:
    """Where and with which token its actions keep artifacts and caches."""
    urls = runtime_tokens.urls()
    return {
        "token": runtime_tokens.issue(job),
        "runtime_url": urls.runtime,
        "results_url": urls.results,
        "cache_url": urls.cache,
    }
