"""Do waiting calls cost nothing, and does what they wait for reach one of them at once? On a real server process."""

import asyncio
import json
import socket
import threading
import time
from datetime import timedelta

import httpx
import psycopg
import pytest
from django.db import connection
from django.utils.dateparse import parse_datetime

from ci.lifecycle import registration, transitions
from ci.models import Job, JobState, Runner, Scope
from forge.tokens import hash_token, new_token
from tests.api.calls import TIME
from tests.api.server import Server, connections, until
from tests.playground import Assigned

AT_ONCE = 2.0  # seconds; measured are milliseconds, but two cores serve all that runs here
WAIT = 50


@pytest.fixture(scope="module")
def servers(django_db_setup, tmp_path_factory):
    """The server that the tests share, in a list: those that end it leave an ended one."""
    shared = []
    yield shared
    for server in shared:
        server.kill()


@pytest.fixture
def server(committing_playground, servers, tmp_path_factory):
    if not servers or servers[-1].process.poll() is not None:
        servers.append(Server(tmp_path_factory.mktemp("server") / "log").__enter__())
    before = len(servers[-1].log)
    yield servers[-1]
    said = servers[-1].log[before:]
    assert "Traceback" not in said, said


@pytest.fixture
def world(committing_playground):
    committing_playground.repository  # noqa: B018 - made before the clock runs
    return committing_playground


def registered(playground, *labels, **options):
    """A runner and its token."""
    return playground.runner(*labels, **options), playground.runner_token


class Poll:
    """One jobs/fetch in a thread of its own."""

    def __init__(self, server, token, *, poll_id="poll", wait=WAIT):
        self.answer = None
        self.ended_at = None
        self._thread = threading.Thread(target=self._run, args=(server, token, {"poll_id": poll_id, "wait": wait}))
        self._thread.start()

    def _run(self, server, token, body):
        headers = {"Authorization": f"Bearer {token}"}
        url = f"{server.url}/api/runner/v1/jobs/fetch"
        self.answer = httpx.post(url, json=body, headers=headers, timeout=WAIT + 20)
        self.ended_at = time.monotonic()

    @property
    def waits(self):
        return self._thread.is_alive()

    def result(self, seconds=30.0):
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


def test_a_job_that_is_queued_later_reaches_the_waiting_runner_at_once(world, server):
    runner, token = registered(world)
    seen = looked(runner)
    poll = Poll(server, token)
    until(seen, what="the first look")
    run = world.run()
    queued_at = time.monotonic()
    payload = poll.result().json()
    assert payload["job"]["run_id"] == run.pk
    assert poll.ended_at - queued_at < AT_ONCE
    assert beat(server, Assigned(runner, payload)).json()["cancel"] is None


def test_a_job_that_waits_already_is_given_at_once(world, server):
    world.run()
    _, token = registered(world)
    assert Poll(server, token).result(AT_ONCE).status_code == 200


def test_a_job_queued_between_register_and_first_look_is_not_missed(world, server):
    """Twenty times at once, with no pause to hide in."""
    runner, token = registered(world)
    for number in range(20):
        poll = Poll(server, token, poll_id=f"poll-{number}")
        world.run()
        assigned = Assigned(runner, poll.result(10).json())
        assigned.heartbeat()
        assigned.complete()


def test_a_poll_ends_empty_when_its_time_is_up(world, server):
    _, token = registered(world)
    began = time.monotonic()
    answer = Poll(server, token, wait=0.4).result()
    assert (answer.status_code, answer.content) == (204, b"")
    assert 0.2 <= time.monotonic() - began < 0.4 + AT_ONCE


def test_jobs_for_others_wake_nobody(world, server):
    runner, token = registered(world, "linux")
    other = world.make_repository(name="other")
    elsewhere, elsewhere_token = registered(world, "gpu", name="elsewhere", scope=Scope(repository=other))
    seen = looked(runner), looked(elsewhere)
    polls = [Poll(server, token, wait=4), Poll(server, elsewhere_token, wait=4)]
    until(lambda: all(check() for check in seen), what="both looks")
    world.run("on: push\njobs:\n  a:\n    runs-on: gpu\n    steps:\n      - run: echo\n")
    assert [poll.result().status_code for poll in polls] == [204, 204]
    assert Job.objects.get().state == JobState.QUEUED


def test_a_job_passes_by_runners_of_other_scopes_to_the_one_that_may_take_it(world, server):
    """All have the label; only one serves the repository, and the wake-up finds it."""
    other = world.make_repository(name="other")
    tokens = [registered(world, name=f"other-{n}", scope=Scope(repository=other)) for n in range(5)]
    fitting = registered(world, name="fitting", scope=Scope(repository=world.repository))
    runners = [*tokens, fitting]
    seen = [looked(runner) for runner, _ in runners]
    polls = [Poll(server, token) for _, token in runners]
    until(lambda: all(check() for check in seen), what="all looks")
    world.run()
    payload = polls[-1].result(AT_ONCE + 1).json()
    assert payload["job"]["name"] == "build"
    assert [poll.waits for poll in polls[:-1]] == [True] * 5
    server.terminate()
    assert [poll.result().status_code for poll in polls[:-1]] == [204] * 5


def test_a_resumed_runner_gets_what_is_queued(world, server):
    runner, token = registered(world)
    registration.pause_runner(runner_id=runner.pk, paused=True, actor=world.operator)
    seen = looked(runner)
    poll = Poll(server, token)
    until(seen, what="the first look")
    world.run()
    registration.pause_runner(runner_id=runner.pk, paused=False, actor=world.operator)
    assert poll.result(AT_ONCE).status_code == 200


def test_a_new_poll_of_the_same_runner_ends_the_older_one(world, server):
    runner, token = registered(world)
    seen = looked(runner)
    older = Poll(server, token, poll_id="older")
    until(seen, what="the first look")
    newer = Poll(server, token, poll_id="newer")
    assert older.result(AT_ONCE).status_code == 204
    world.run()
    assert newer.result(AT_ONCE).status_code == 200


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


def hang_on(server, token):
    """A raw socket with a poll on its way."""
    body = json.dumps({"poll_id": "poll", "wait": WAIT}).encode()
    client = socket.create_connection(("127.0.0.1", server.port))
    head = f"POST /api/runner/v1/jobs/fetch HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    client.sendall(head.encode() + body)
    return client


def test_a_removed_runner_is_told_so_when_it_is_woken(world, server):
    runner, token = registered(world)
    seen = looked(runner)
    poll = Poll(server, token)
    until(seen, what="the first look")
    registration.remove_runner(runner_id=runner.pk)
    world.run()
    assert poll.result(AT_ONCE).json()["code"] == "unauthenticated"


def test_a_cancel_reaches_the_waiting_heartbeat_at_once(world, server):
    runner, _ = registered(world)
    world.run()
    assigned = world.assigned(runner).begin()
    answers = []
    thread = threading.Thread(target=lambda: answers.append(beat(server, assigned, WAIT)))
    before = assigned.job.heartbeat.at
    thread.start()
    until(lambda: Job.objects.get().heartbeat.at > before, what="the heartbeat")
    transitions.cancel_job(job_id=assigned.id, actor=world.alice)
    thread.join(AT_ONCE)
    assert [answer.json()["cancel"] for answer in answers] == ["owner"]


def test_the_end_of_a_job_reaches_the_waiting_heartbeat_at_once(world, server):
    runner, _ = registered(world)
    world.run()
    assigned = world.assigned(runner).begin()
    answers = []
    thread = threading.Thread(target=lambda: answers.append(beat(server, assigned, WAIT)))
    before = assigned.job.heartbeat.at
    thread.start()
    until(lambda: Job.objects.get().heartbeat.at > before, what="the heartbeat")
    transitions.cancel_run(run_id=assigned.job.run_id, actor=world.alice, force=True)
    thread.join(AT_ONCE)
    assert [(answer.status_code, answer.json()["code"]) for answer in answers] == [(409, "job_ended")]


def test_a_heartbeat_that_waits_in_vain_is_heard_of_at_both_ends(world, server):
    runner, _ = registered(world)
    world.run()
    assigned = world.assigned(runner).begin()
    answer = beat(server, assigned, 0.5)
    assert (answer.status_code, answer.json()["cancel"]) == (200, None)
    last = parse_datetime(answer.json()["now"])
    assert last - Job.objects.get().heartbeat.at < timedelta(seconds=0.4)


def test_when_told_to_end_the_server_answers_all_who_wait_and_ends(world, server):
    runner, token = registered(world)
    busy, _ = registered(world, name="busy")
    world.run()
    assigned = world.assigned(busy).begin()
    seen = looked(runner)
    poll = Poll(server, token)
    answers = []
    thread = threading.Thread(target=lambda: answers.append(beat(server, assigned, WAIT)))
    before = assigned.job.heartbeat.at
    thread.start()
    until(lambda: seen() and Job.objects.get().heartbeat.at > before, what="both calls")
    server.terminate()
    assert poll.result(5).status_code == 204
    thread.join(5)
    assert [answer.status_code for answer in answers] == [200]
    server.process.wait(10)


def test_the_hub_survives_the_loss_of_its_connection(world, server):
    runner, token = registered(world)
    seen = looked(runner)
    poll = Poll(server, token)
    until(seen, what="the first look")
    kill = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'forge hub'"
    with connection.cursor() as cursor:
        cursor.execute(kill)
        assert cursor.fetchone() == (1,)
    world.run()
    assert poll.result(10).status_code == 200


def test_errors_have_the_shapes_of_the_other_calls(world, server):
    _, token = registered(world)
    url = f"{server.url}/api/runner/v1/jobs/"
    good = {"Authorization": f"Bearer {token}"}
    sent = [
        ("fetch", {}, b"{}", 401, "unauthenticated"),
        ("fetch", {"Authorization": "Bearer frr_x"}, b"{", 401, "unauthenticated"),
        ("fetch", {"Authorization": b"Bearer \xff\xfe"}, b"{}", 401, "unauthenticated"),
        ("fetch", good, b"", 400, "invalid"),
        ("fetch", good, b"[]", 400, "invalid"),
        ("fetch", good, b'{"poll_id": "\\u0000"}', 400, "invalid"),
        ("fetch", good, b'{"poll_id": "p", "wait": 51}', 400, "invalid"),
        ("fetch", good, b'{"poll_id": "p", "wait": NaN}', 400, "invalid"),
        ("fetch", good, b'{"poll_id": "p", "wait": "1"}', 400, "invalid"),
        ("fetch", good, b'{"x": "' + b"x" * 20_000 + b'"}', 413, "too_large"),
        ("fetch", good | {"Content-Type": "text/plain"}, b'{"poll_id": "p"}', 415, "unsupported_media_type"),
        ("999999/heartbeat", {"Authorization": "Bearer frj_x"}, b"{}", 404, "not_found"),
        (f"{2**63}/heartbeat", {"Authorization": "Bearer frj_x"}, b"{}", 404, "not_found"),
        ("1/heartbeat", good, b"{}", 401, "unauthenticated"),
    ]
    for path, headers, body, status, code in sent:
        answer = httpx.post(url + path, content=body, headers={"Content-Type": "application/json"} | headers)
        assert (answer.status_code, answer.json()["code"]) == (status, code), (path, body[:40], answer.text)
        assert answer.json()["detail"]
        assert ("WWW-Authenticate" in answer.headers) == (status == 401)
    answer = httpx.get(url + "fetch", headers=good)
    assert (answer.status_code, answer.headers["Allow"]) == (405, "POST")


def test_a_body_that_comes_in_pieces_is_whole(world, server):
    _, token = registered(world)
    world.run()
    pieces = iter([b'{"poll_id"', b': "p", "wait"', b": 1}"])
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    answer = httpx.post(f"{server.url}/api/runner/v1/jobs/fetch", content=pieces, headers=headers)
    assert answer.status_code == 200
    assert answer.json()["job"]["name"] == "build"


def many_runners(count):
    tokens = [new_token("runner") for _ in range(count)]
    Runner.objects.bulk_create(
        Runner(name=f"runner-{number}", labels=["linux"], token_hash=hash_token(token))
        for number, token in enumerate(tokens)
    )
    return tokens


async def fetch_all(server, tokens, *, on_waiting):
    """All poll at once; once the server knows them, `on_waiting` runs; the answers as they come, with their times."""
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
    async with httpx.AsyncClient(timeout=120, limits=limits) as client:

        async def one(token):
            headers = {"Authorization": f"Bearer {token}"}
            body = {"poll_id": "poll", "wait": WAIT}
            answer = await client.post(f"{server.url}/api/runner/v1/jobs/fetch", json=body, headers=headers)
            return answer, time.monotonic()

        polls = [asyncio.create_task(one(token)) for token in tokens]
        await on_waiting()
        done, waiting = await asyncio.wait(polls, timeout=10, return_when=asyncio.FIRST_COMPLETED)
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
        figures["queued_at"] = time.monotonic()
        connection.close()

    done, rest = asyncio.run(fetch_all(server, tokens, on_waiting=lambda: asyncio.to_thread(look_and_push)))
    # Of the pool's eight threads some may have begun only now; none is there for a runner.
    assert figures["threads"] <= threads_before + 8
    assert figures["connections"] <= 8 + 16 + 2  # the pool's, Django's own threads', the hub's, this test's
    assert [answer.status_code for answer, _ in done] == [200]
    assert done[0][1] - figures["queued_at"] < AT_ONCE
    assert [answer.status_code for answer, _ in rest] == [204] * 499
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


def test_log_lines_go_through_the_whole_server(world, server):
    """A batch near its limit passes the server's own bounds."""
    runner, _ = registered(world)
    world.run()
    assigned = world.assigned(runner).begin()
    body = {"offset": 0, "lines": [[TIME, "x" * 800]] * 9_000}
    headers = {"Authorization": f"Bearer {assigned.token}"}
    answer = httpx.post(f"{server.url}/api/runner/v1/jobs/{assigned.id}/log", json=body, headers=headers, timeout=60)
    assert answer.json() == {"next_offset": 9_000}


def test_a_notification_that_was_lost_is_made_up_for(world, server):
    """Queued behind the hub's back: the sweep finds it."""
    runner, token = registered(world)
    world.run()
    job = Job.objects.get()
    Job.objects.filter(pk=job.pk).update(state=JobState.BLOCKED, hold="run", queued_at=None)
    seen = looked(runner)
    poll = Poll(server, token)
    until(seen, what="the first look")
    with psycopg.connect(**{k: v for k, v in connection.get_connection_params().items() if k in KEYS}) as other:
        other.execute("UPDATE ci_job SET state = 'queued', hold = '', queued_at = now() WHERE id = %s", [job.pk])
    assert poll.result(15).status_code == 200


KEYS = ("dbname", "user", "password", "host", "port")
