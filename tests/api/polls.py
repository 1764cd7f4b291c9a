"""How do the tests of the waiting calls poll, beat and see that a poll has begun?"""

import threading

import httpx

from ci.models import Runner

WAIT = 50  # seconds, the longest there is
# Measured are milliseconds. It must only be shorter than what else would end the wait: WAIT, and for a heartbeat half
# of what loses a job, 30 s; the server of these tests does not sweep.
AT_ONCE = 25.0


def registered(playground, *labels, **options):
    """A runner and its token."""
    return playground.runner(*labels, **options), playground.runner_token


class Poll:
    """One jobs/fetch in a thread of its own."""

    def __init__(self, server, token, *, poll_id="poll", wait=WAIT):
        self.answer = None
        self._thread = threading.Thread(target=self._run, args=(server, token, {"poll_id": poll_id, "wait": wait}))
        self._thread.start()

    def _run(self, server, token, body):
        headers = {"Authorization": f"Bearer {token}"}
        url = f"{server.url}/api/runner/v1/jobs/fetch"
        self.answer = httpx.post(url, json=body, headers=headers, timeout=WAIT + 20)

    @property
    def waits(self):
        return self._thread.is_alive()

    def result(self, seconds=WAIT + 20.0):
        self._thread.join(seconds)
        assert not self._thread.is_alive(), "the poll still waits"
        return self.answer


def looked(runner):
    """A condition: the runner's poll has reached the database since."""
    Runner.objects.filter(pk=runner.pk).update(last_seen_at=None)
    return lambda: Runner.objects.filter(pk=runner.pk, last_seen_at__isnull=False).exists()


def beat(server, assigned, wait=0.0):
    headers = {"Authorization": f"Bearer {assigned.token}"}
    url = f"{server.url}/api/runner/v1/jobs/{assigned.id}/heartbeat"
    return httpx.post(url, json={"wait": wait}, headers=headers, timeout=WAIT + 20)
