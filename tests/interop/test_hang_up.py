"""What becomes of a task whose runner hangs up while it is being made?"""

import asyncio
import threading

import pytest
from django.db import connections

from ci.interop import task_payload
from ci.interop.runner_service import methods
from ci.lifecycle import registration
from ci.models import Job, JobState, Scope
from ci.waiting import process
from tests.api.polls import AT_ONCE

pytestmark = pytest.mark.django_db(transaction=True)


class Connection:
    """One request without a body, whose client hangs up as soon as its job has been claimed."""

    def __init__(self, headers):
        self.headers = [(name.encode(), value.encode()) for name, value in headers.items()]
        self.claimed = asyncio.Event()
        self.gone = threading.Event()
        self.sent = []
        self._has_come = False

    async def receive(self):
        if not self._has_come:
            self._has_come = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self.claimed.wait()
        self.gone.set()
        return {"type": "http.disconnect"}

    async def send(self, message):
        self.sent.append(message)

    async def fetch(self, monkeypatch):
        loop = asyncio.get_running_loop()
        build = task_payload.build

        def build_slowly(job, token):
            loop.call_soon_threadsafe(self.claimed.set)
            assert self.gone.wait(AT_ONCE)
            return build(job, token)

        monkeypatch.setattr(task_payload, "build", build_slowly)
        path = "/api/actions/runner.v1.RunnerService/FetchTask"
        scope = {"type": "http", "method": "POST", "path": path, "headers": self.headers}
        try:
            await methods.application(scope, self.receive, self.send)
        finally:
            await process.shutdown()


def fetch_and_hang_up(world, monkeypatch, *, ephemeral=False, **headers):
    _, token = registration.create_registration_token(scope=Scope(), created_by=world.operator)
    identity = "37633331-3539-3165-3862-363732323561"
    _, secret = registration.register_runner(
        token=token, name="theirs", labels=["linux"], ephemeral=ephemeral, identity=identity
    )
    world.run()
    sent = {"content-type": "application/proto", "x-runner-uuid": identity, "x-runner-token": secret, **headers}

    # The threads end with the test, and with them their connections must.
    monkeypatch.setitem(connections.settings["default"], "CONN_MAX_AGE", 0)

    async def fetch():
        await Connection(sent).fetch(monkeypatch)

    asyncio.run(fetch())
    return Job.objects.get()


def test_without_a_request_key_it_is_given_back_at_once(world, monkeypatch):
    job = fetch_and_hang_up(world, monkeypatch)
    assert (job.state, job.assignment, job.runner) == (JobState.QUEUED, 1, None)
    assert "hung up" in job.events.get(kind="requeued").detail


def test_with_a_request_key_it_is_kept_for_the_repeat(world, monkeypatch):
    job = fetch_and_hang_up(world, monkeypatch, **{"x-runner-request-key": "key"})
    assert (job.state, job.poll_id) == (JobState.ASSIGNED, "key")


def test_a_single_use_runner_keeps_its_one_job_until_the_lease_ends(world, monkeypatch):
    job = fetch_and_hang_up(world, monkeypatch, ephemeral=True)
    assert job.state == JobState.ASSIGNED
    assert job.runner.phase == "pending"
