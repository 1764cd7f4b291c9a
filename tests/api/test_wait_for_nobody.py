"""A poll is answered however many heartbeats wait for the lock of their run."""

from __future__ import annotations

import threading

import httpx
import psycopg
from django.db import connection

from tests.api.server import Server, until
from tests.playground import Playground

# More than the server has threads of any kind for.
HEARTBEATS = 24


def waiting_for_locks() -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        return int(cursor.fetchone()[0])


def test_a_claim_is_not_held_up_by_another_runs_lock(server: Server, committing_playground: Playground) -> None:
    playground = committing_playground
    locked = playground.run()
    assigned = playground.assigned(playground.runner(name="held"))
    playground.run()
    free = playground.runner(name="free")
    wanted = ("dbname", "user", "password", "host", "port")
    parameters = {name: value for name, value in connection.get_connection_params().items() if name in wanted}

    def beat() -> None:
        headers = {"Authorization": f"Bearer {assigned.token}"}
        url = f"{server.url}/api/runner/v1/jobs/{assigned.id}/heartbeat"
        statuses.append(httpx.post(url, json={}, headers=headers, timeout=60).status_code)

    statuses: list[int] = []
    beats = [threading.Thread(target=beat) for _ in range(HEARTBEATS)]
    with psycopg.connect(**parameters) as other:
        other.execute("SELECT 1 FROM ci_run WHERE id = %s FOR UPDATE", [locked.pk])
        for one in beats:
            one.start()
        until(lambda: waiting_for_locks() >= 4, what="heartbeats wait for the run's lock")
        headers = {"Authorization": f"Bearer {playground.runner_token}"}
        polled = httpx.post(
            f"{server.url}/api/runner/v1/jobs/fetch", json={"poll_id": "p"}, headers=headers, timeout=60
        )
        assert not statuses, "the poll was to be answered while all heartbeats wait"
        other.rollback()
    for one in beats:
        one.join()
    assert polled.status_code == 200
    assert polled.json()["job"]["run_id"] != locked.pk
    assert free.name == "free"
    assert statuses == [200] * HEARTBEATS
