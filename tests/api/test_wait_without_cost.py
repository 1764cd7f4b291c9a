"""Do runners that wait cost nothing, and are jobs given to none that is gone? On a real server process."""

import asyncio
import json
import socket

import httpx
from django.db import connection

from ci.models import Job, Runner
from forge.tokens import hash_token, new_token
from tests.api.polls import AT_ONCE, WAIT, Poll, looked, registered
from tests.api.server import connections, until


def hang_on(server, token):
    """A raw socket with a poll on its way."""
    body = json.dumps({"poll_id": "poll", "wait": WAIT}).encode()
    client = socket.create_connection(("127.0.0.1", server.port))
    head = f"POST /api/runner/v1/jobs/fetch HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    client.sendall(head.encode() + body)
    return client


def test_jobs_are_not_given_to_clients_that_hung_up(world, server):
    tokens = [registered(world, name=f"runner-{n}") for n in range(20)]
    seen = [looked(runner) for runner, _ in tokens]
    sockets = [hang_on(server, token) for _, token in tokens]
    until(lambda: all(check() for check in seen), what="all looks")
    for client in sockets:
        client.close()
    runner, token = registered(world, name="alive")
    check = looked(runner)
    poll = Poll(server, token)
    until(check, what="the living one's look")
    world.run()
    payload = poll.result(AT_ONCE).json()
    assert payload["job"]["assignment"] == 1
    assert Job.objects.get().runner == runner


def many_runners(count):
    tokens = [new_token("runner") for _ in range(count)]
    Runner.objects.bulk_create(
        Runner(name=f"runner-{number}", labels=["linux"], token_hash=hash_token(token))
        for number, token in enumerate(tokens)
    )
    return tokens


async def fetch_all(server, tokens, *, on_waiting):
    """All poll at once; once the server knows them, `on_waiting` runs; the answers as they come."""
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
    async with httpx.AsyncClient(timeout=120, limits=limits) as client:

        async def one(token):
            headers = {"Authorization": f"Bearer {token}"}
            body = {"poll_id": "poll", "wait": WAIT}
            answer = await client.post(f"{server.url}/api/runner/v1/jobs/fetch", json=body, headers=headers)
            return answer

        polls = [asyncio.create_task(one(token)) for token in tokens]
        await on_waiting()
        done, waiting = await asyncio.wait(polls, timeout=AT_ONCE, return_when=asyncio.FIRST_COMPLETED)
        server.terminate()
        rest = await asyncio.gather(*waiting)
        return [task.result() for task in done], rest


def test_five_hundred_idle_runners_cost_no_thread_and_no_connection_and_one_gets_the_job_at_once(world, server):
    _, first = registered(world)
    Poll(server, first, wait=0.2).result()
    threads_before = server.threads
    tokens = many_runners(500)
    figures = {}

    def look_and_push():
        until(lambda: not Runner.objects.filter(name__startswith="runner-", last_seen_at=None).exists(), what="looks")
        figures["threads"] = server.threads
        figures["connections"] = connections()
        world.run()
        connection.close()

    done, rest = asyncio.run(fetch_all(server, tokens, on_waiting=lambda: asyncio.to_thread(look_and_push)))
    # Of the pool's eight threads some may have begun only now; none is there for a runner.
    assert figures["threads"] <= threads_before + 8
    assert figures["connections"] <= 8 + 16 + 2  # the pool's, Django's own threads', the hub's, this test's
    assert [answer.status_code for answer in done] == [200]
    assert [answer.status_code for answer in rest] == [204] * 499
    assert Job.objects.get().assignment == 1


def test_a_burst_of_jobs_is_spread_over_the_waiting_runners(world, server):
    """Thirty jobs, thirty runners: everyone gets one."""
    runners = [registered(world, name=f"runner-{n}") for n in range(30)]
    seen = [looked(runner) for runner, _ in runners]
    polls = [Poll(server, token) for _, token in runners]
    until(lambda: all(check() for check in seen), what="all looks")
    legs = ", ".join(map(str, range(30)))
    world.run(
        f"on: push\njobs:\n  a:\n    strategy:\n      matrix:\n        n: [{legs}]\n    runs-on: linux\n"
        "    steps:\n      - run: echo\n"
    )
    answers = [poll.result() for poll in polls]
    assert [answer.status_code for answer in answers] == [200] * 30
    assert len({answer.json()["job"]["id"] for answer in answers}) == 30
