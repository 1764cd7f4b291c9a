"""How do the tests of caches get a running job, and save something for it?"""

from __future__ import annotations

from io import BytesIO
from typing import Any

from ci.lifecycle import caches, runtime_tokens
from ci.models import CacheEntry, Job, Run
from ci.storage import blobs
from tests.playground import Assigned, Playground

VERSION = "5f" * 32
DEFAULT = "refs/heads/main"


def begin(playground: Playground, *, runner: str = "alpha", **fields: Any) -> Assigned:
    """A running job; `fields` of its run: who else but a push causes runs, the forge does not know yet."""
    run = playground.run()
    Run.objects.filter(pk=run.pk).update(**fields)
    return playground.assigned(playground.runner(name=runner)).begin()


def pull_request(number: int = 7, *, base: str = "main") -> dict[str, Any]:
    """The fields of a run that a pull request caused."""
    payload = {"pull_request": {"number": number, "base": {"ref": base}}}
    return {"event": "pull_request", "ref": f"refs/pull/{number}/merge", "payload": payload}


def job_of(assigned: Assigned) -> Job:
    """As the services find it by the runtime token."""
    return runtime_tokens.job_of(assigned.payload["runtime"]["token"])


def on(playground: Playground, *, runner: str = "alpha", **fields: Any) -> Job:
    return job_of(begin(playground, runner=runner, **fields))


def upload(entry: CacheEntry, content: bytes) -> None:
    """As a client of v2 does, before it finalizes."""
    blobs.put_whole(blob=entry.blob, source=BytesIO(content), size=len(content))


def save(job: Job, key: str, content: bytes = b"abc", *, version: str = VERSION) -> CacheEntry:
    upload(caches.reserve_cache(job=job, key=key, version=version), content)
    return caches.commit_cache(job=job, key=key, version=version, size=len(content))


def found(job: Job, *keys: str, version: str = VERSION) -> CacheEntry | None:
    return caches.find_cache(job=job, keys=keys, version=version)


def kept() -> list[str]:
    """The keys of what is committed, in the order in which they were reserved."""
    return list(CacheEntry.objects.filter(finalized_at__isnull=False).order_by("pk").values_list("key", flat=True))
