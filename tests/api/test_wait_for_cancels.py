"""Does a waiting heartbeat bring a cancel at once, and keep its job alive?"""

import threading
from datetime import timedelta

from django.utils import timezone

from ci.lifecycle import transitions
from ci.models import Job
from tests.api.polls import AT_ONCE, WAIT, Poll, beat, looked, registered
from tests.api.server import until


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
    began = timezone.now()
    answer = beat(server, assigned, 2)
    assert (answer.status_code, answer.json()["cancel"]) == (200, None)
    assert Job.objects.get().heartbeat.at - began >= timedelta(seconds=1.9)


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
    assert poll.result(AT_ONCE).status_code == 204
    thread.join(AT_ONCE)
    assert [answer.status_code for answer in answers] == [200]
    server.process.wait(60)
