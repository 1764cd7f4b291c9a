"""How does a benchmark get jobs that run? Of one workflow, each fetched and acknowledged by a runner of its own."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from tests.bench.fleet import Wire
from tests.bench.ground import Ground
from tests.e2e.projects import Project

WORKFLOW = "name: one\non: workflow_dispatch\njobs:\n  one: {runs-on: linux, steps: [{run: echo}]}\n"
# Nobody is asked whether he still lives while he writes a long log.
SETTINGS = {"FORGE_ACKNOWLEDGE_SECONDS": "3600", "FORGE_HEARTBEAT_SECONDS": "3600"}


@dataclass(frozen=True)
class RunningJob:
    id: int
    token: str
    wire: Wire


def project_of(ground: Ground) -> Project:
    """A repository with WORKFLOW as one.yml."""
    project = Project.create(ground.person, "jobs", ground.folder / "tree")
    project.start({".github/workflows/one.yml": WORKFLOW})
    return project


def begin(ground: Ground, project: Project, count: int) -> list[RunningJob]:
    tokens = [token for token, _ in ground.register(count, [["linux"]], api=project.api)]
    for _ in tokens:
        project.dispatch("one.yml")

    async def begin_one(token: str) -> RunningJob:
        wire = Wire("127.0.0.1", ground.product.port)
        status, body = await wire.call("POST", "jobs/fetch", token, {"poll_id": "first", "wait": 30})
        assert status == 200, body
        job = RunningJob(body["job"]["id"], body["job"]["token"], wire)
        status, body = await wire.call("POST", f"jobs/{job.id}/heartbeat", job.token, {})
        assert status == 200, body
        wire.close()  # the next loop has its own
        return job

    async def begin_all() -> list[RunningJob]:
        return await asyncio.gather(*map(begin_one, tokens))

    return asyncio.run(begin_all())


def complete(jobs: list[RunningJob]) -> None:
    async def complete_one(job: RunningJob) -> None:
        status, body = await job.wire.call("POST", f"jobs/{job.id}/complete", job.token, {"conclusion": "success"})
        assert status == 200, body
        job.wire.close()

    async def complete_all() -> None:
        await asyncio.gather(*map(complete_one, jobs))

    asyncio.run(complete_all())
