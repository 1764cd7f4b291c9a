"""Does a queued job reach a waiting runner that may take it, at once? On a real server process."""

import time

import psycopg
from django.db import connection

from ci.lifecycle import registration
from ci.models import Job, JobState, Scope
from tests.api.polls import AT_ONCE, Poll, beat, looked, registered
from tests.api.server import Server, until
from tests.playground import Assigned


def test_a_job_that_is_queued_later_reaches_the_waiting_runner_at_once(world, server):
    runner, token = registered(world)
    seen = looked(runner)
    poll = Poll(server, token)
    until(seen, what="the first look")
    run = world.run()
    payload = poll.result(AT_ONCE).json()
    assert payload["job"]["run_id"] == run.pk
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
        assigned = Assigned(runner, poll.result(AT_ONCE).json())
        assigned.heartbeat()
        assigned.complete()


def test_a_poll_ends_empty_when_its_time_is_up(world, server):
    _, token = registered(world)
    began = time.monotonic()
    answer = Poll(server, token, wait=0.4).result(AT_ONCE)
    assert (answer.status_code, answer.content) == (204, b"")
    assert time.monotonic() - began >= 0.19  # half of what was asked for at the least: polls shall not come in step


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
    """All have the label; only one serves the repository."""
    other = world.make_repository(name="other")
    tokens = [registered(world, name=f"other-{n}", scope=Scope(repository=other)) for n in range(5)]
    fitting = registered(world, name="fitting", scope=Scope(repository=world.repository))
    runners = [*tokens, fitting]
    seen = [looked(runner) for runner, _ in runners]
    polls = [Poll(server, token) for _, token in runners]
    until(lambda: all(check() for check in seen), what="all looks")
    world.run()
    payload = polls[-1].result(AT_ONCE).json()
    assert payload["job"]["name"] == "build"
    assert [poll.waits for poll in polls[:-1]] == [True] * 5
    server.terminate()
    assert [poll.result().status_code for poll in polls[:-1]] == [204] * 5


def test_who_was_paused_while_it_waited_passes_the_job_on(world, server):
    """It waits longest, so it is woken first; that it takes no job is known only once it looks."""
    (paused, paused_token), (_, token) = registered(world, name="paused"), registered(world, name="ready")
    seen = looked(paused)
    waiting = Poll(server, paused_token)
    until(seen, what="the paused one's look")
    ready = Poll(server, token)
    registration.pause_runner(runner_id=paused.pk, paused=True, actor=world.operator)
    run = world.run()
    assert ready.result(AT_ONCE).json()["job"]["run_id"] == run.pk
    assert waiting.waits
    registration.remove_runner(runner_id=paused.pk)
    world.run()
    assert waiting.result().status_code == 401


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


def test_a_removed_runner_is_told_so_when_it_is_woken(world, server):
    runner, token = registered(world)
    seen = looked(runner)
    poll = Poll(server, token)
    until(seen, what="the first look")
    registration.remove_runner(runner_id=runner.pk)
    world.run()
    assert poll.result(AT_ONCE).json()["code"] == "unauthenticated"


def test_the_hub_survives_the_loss_of_its_connection(world, server):
    runner, token = registered(world)
    seen = looked(runner)
    poll = Poll(server, token)
    until(seen, what="the first look")
    kill = (
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
        # Servers that other tests of this session keep on the same database have hubs of their own.
        " WHERE application_name = 'forge hub' AND datname = current_database()"
    )
    with connection.cursor() as cursor:
        cursor.execute(kill)
        assert cursor.fetchone() >= (1,)
    world.run()
    assert poll.result(AT_ONCE).status_code == 200


def test_a_notification_that_was_lost_is_made_up_for(world, tmp_path):
    """Queued behind the hub's back: the sweep finds it."""
    with Server(tmp_path / "log") as sweeping:
        _find_what_was_queued_behind_the_hubs_back(world, sweeping)


def _find_what_was_queued_behind_the_hubs_back(world, server):
    runner, token = registered(world)
    world.run()
    job = Job.objects.get()
    Job.objects.filter(pk=job.pk).update(state=JobState.BLOCKED, hold="run", queued_at=None)
    seen = looked(runner)
    poll = Poll(server, token)
    until(seen, what="the first look")
    with psycopg.connect(**{k: v for k, v in connection.get_connection_params().items() if k in KEYS}) as other:
        other.execute("UPDATE ci_job SET state = 'queued', hold = '', queued_at = now() WHERE id = %s", [job.pk])
    assert poll.result(AT_ONCE).status_code == 200


KEYS = ("dbname", "user", "password", "host", "port")
