"""What was deployed where, by whom, and is it still there? A deployment is a job that deploys to its environment.

It has no row and no state of its own: so none is ever missing, and none says what its job does not. Words and states:
GitHub docs, "Viewing deployment history"."""

from __future__ import annotations

from django.db.models import Case, CharField, F, OuterRef, QuerySet, Subquery, Value, When
from django.db.models.functions import Coalesce

from ci.models import Conclusion, DeploymentState, Job, JobState, RunAttempt
from forge.models import Repository


def deployments(repository: Repository) -> QuerySet[Job]:
    """The jobs that deploy, the newest first. Each has `deployment_state`, and `deployed_by`: who started its attempt.

    Those of a deleted environment are no longer among them.
    """
    rows = deploying().filter(environment__repository=repository)
    return rows.annotate(deployment_state=_state(), deployed_by=_starter()).order_by("-id")


def deploying() -> QuerySet[Job]:
    """Of all repositories; without the copies in later attempts, which deployed nothing again."""
    return Job.objects.filter(deploys=True, carried_from=None)


def _state() -> Case:
    succeeded = deploying().filter(environment=OuterRef("environment"), conclusion=Conclusion.SUCCESS)
    newest = Subquery(succeeded.order_by("-ended_at", "-id").values("pk")[:1])
    of_state = {
        JobState.BLOCKED: DeploymentState.WAITING,
        JobState.QUEUED: DeploymentState.QUEUED,
        JobState.ASSIGNED: DeploymentState.QUEUED,
        JobState.RUNNING: DeploymentState.IN_PROGRESS,
    }
    return Case(
        *(When(state=state, then=Value(found.value)) for state, found in of_state.items()),
        When(conclusion=Conclusion.FAILURE, then=Value(DeploymentState.FAILURE.value)),
        When(conclusion=Conclusion.SUCCESS, pk=newest, then=Value(DeploymentState.SUCCESS.value)),
        default=Value(DeploymentState.INACTIVE.value),
        output_field=CharField(),
    )


def _starter() -> Coalesce:
    """Of an attempt that others followed it stands with that attempt, else with the run."""
    earlier = RunAttempt.objects.filter(run=OuterRef("run"), number=OuterRef("attempt"))
    return Coalesce(Subquery(earlier.values("triggered_by_name")[:1]), F("run__triggered_by_name"))
