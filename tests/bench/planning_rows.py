"""How long do the parts of a push's planning take, in a process that has Django and the product's database?"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import IO, Any

from django.utils import timezone

from ci.lifecycle import pushes, workflow_files
from ci.lifecycle.firing import Trigger, fire
from ci.lifecycle.transitions import Cause
from ci.models import Job, Run
from ci.workflow import Event, legs, load, plan, triggers
from forge.git import bare
from forge.models import Push, Repository
from tests.bench.planning import CASES


def main(tasks: IO[str]) -> None:
    """Reads the task as JSON: repository (owner/name), case, rounds. Prints the milliseconds of each round."""
    task = json.load(tasks)
    owner, _, name = task["repository"].partition("/")
    repository = Repository.objects.select_related("owner").get(owner__username=owner, name=name)
    print(json.dumps(Rounds(repository, CASES[task["case"]]).go(task["rounds"])))


class Rounds:
    """Of one repository whose main branch has these files. What is remembered of expressions is warm for each part."""

    def __init__(self, repository: Repository, files: Mapping[str, bytes]) -> None:
        self._repository, self._files = repository, files
        found = bare.resolve(repository, "refs/heads/main")
        assert found is not None
        self._sha = found
        self._loaded = workflow_files.load_all(repository, found)
        # With all that the expressions of the files may see.
        self._payload = Run.objects.filter(repository=repository).order_by("id")[0].payload

    def go(self, count: int) -> dict[str, list[float]]:
        parts: dict[str, Callable[[], object]] = {"alone": self._in_memory, "create": self._create, "push": self._plan}
        taken: dict[str, list[float]] = {part: [] for part in parts}
        for number in range(count + 1):
            for part, work in parts.items():
                milliseconds = self._timed(work)
                if number:  # the first warms
                    taken[part].append(milliseconds)
        legs_in_memory, first = self._in_memory(), Run.objects.filter(push=self._push)
        queued = Job.objects.filter(run__in=first, expanded=True).count()
        assert legs_in_memory == queued, f"{legs_in_memory} legs in memory, {queued} in the database"
        return taken

    def _timed(self, work: Callable[[], object]) -> float:
        """Milliseconds; each time for a push of its own."""
        self._push = Push.objects.create(
            repository=self._repository,
            pusher=self._repository.owner,
            pusher_name=self._repository.owner.get_username(),
            ref="refs/heads/main",
            before="1" * 40,
            after=self._sha,
            state=Push.State.SETTLED,
            settled_at=timezone.now(),
        )
        began = time.perf_counter()
        work()
        return (time.perf_counter() - began) * 1000

    def _in_memory(self) -> int:
        """The language's own part: the legs of the jobs that need no other, as objects. Returns how many."""
        github: dict[str, Any] = {"ref": "refs/heads/main", "sha": self._sha, "event_name": "push"}
        github |= {"workflow": "Checks", "event": self._payload}
        contexts: dict[str, object] = {"github": github, "inputs": {}, "vars": {}, "needs": {}}
        count = 0
        for path in self._files:
            document = load(path, self._files, options=workflow_files.OPTIONS)
            event = Event("push", github)
            assert triggers.matches(document, event)
            for job in plan(document, event).jobs:
                if not job.needs:
                    found = legs.expand(job.definition, contexts=contexts, ancestors={}, cancelled=False, key=job.key)
                    count += len(found.legs)
        return count

    def _create(self) -> None:
        cause = Cause(
            repository=self._repository,
            event="push",
            payload=self._payload,
            ref="refs/heads/main",
            sha=self._sha,
            title="A push",
            actor=self._repository.owner,
            trusted=True,
            push=self._push,
        )
        fire(Trigger(cause=cause), self._loaded)

    def _plan(self) -> None:
        pushes.plan_push(self._push.pk)
