"""How did the runs of a commit go? One state a commit, for lists of commits."""

from __future__ import annotations

from collections.abc import Sequence

from django.urls import reverse

from ci.models import Run
from forge.models import Repository

# The first of these that any run of the commit has is the commit's.
PRECEDENCE = ("startup_failure", "failure", "running", "queued", "waiting", "cancelled", "success", "skipped")


def states_of_commits(repository: Repository, shas: Sequence[str]) -> dict[str, dict[str, str]]:
    """By SHA: outcome, address (of the one run, else of the run list), title. Commits without runs are absent."""
    runs: dict[str, list[Run]] = {}
    # The newest run of each workflow counts.
    newest = Run.objects.filter(repository=repository, sha__in=shas).order_by("sha", "workflow_id", "-id")
    for run in newest.distinct("sha", "workflow_id"):
        runs.setdefault(run.sha, []).append(run)
    return {sha: _state(repository, found) for sha, found in runs.items()}


def _state(repository: Repository, runs: Sequence[Run]) -> dict[str, str]:
    outcome = min((run.outcome for run in runs), key=PRECEDENCE.index)
    owner, name = repository.owner.username, repository.name
    done = sum(run.is_ended for run in runs)
    if len(runs) == 1:
        url = reverse("run", args=[owner, name, runs[0].pk])
        return {"outcome": outcome, "url": url, "title": f"{runs[0].workflow_name}: {runs[0].outcome}"}
    url = f"{reverse('runs', args=[owner, name])}?sha={runs[0].sha}"
    return {"outcome": outcome, "url": url, "title": f"{done} of {len(runs)} workflow runs have ended"}
