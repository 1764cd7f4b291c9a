"""What the forge is told to call by its settings, in place of CI."""

import threading

from forge.access import JobActor
from forge.models import Push, Repository

HANGING = threading.Event()


def plan(push_id: int) -> None:
    """Never run: the tests look at the queue."""


def report(push_ids: list[int]) -> list[str]:
    return [f"settled {push.ref} {push.state} by {push.pusher_name}" for push in Push.objects.filter(pk__in=push_ids)]


def fail(push_ids: list[int]) -> list[str]:
    raise RuntimeError("the report is broken")


def hang(push_ids: list[int]) -> list[str]:
    HANGING.wait(60)
    return []


def actor_of_token(token: str) -> JobActor | None:
    if token not in ("frj_reads", "frj_writes"):
        return None
    repository = Repository.objects.get(name="widget")
    return JobActor(repository_id=repository.pk, job_id=7, may_write=token == "frj_writes", name="job build")
