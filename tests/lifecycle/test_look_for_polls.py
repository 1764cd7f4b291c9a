"""What are many runners told that poll together? Whether a look of their own is worth it, and nothing that is stale."""

import json

import pytest
from django.db import connection
from django.utils import timezone

from ci.lifecycle import polls, registration
from ci.lifecycle.matching import label_set_of
from ci.lifecycle.polls import Poller, Word, identify, look_for, still_queued
from ci.models import Job, JobState, Runner
from forge.tokens import hash_token

MANY = 3000


def poller(runner: Runner) -> Poller:
    return Poller.of(Runner.objects.get(pk=runner.pk))


def test_there_is_nothing_without_a_queued_job(playground):
    assert look_for([poller(playground.runner())]) == [Word.NOTHING]


def test_a_queued_job_is_worth_a_look_to_those_who_have_its_labels(playground):
    linux, other = playground.runner("linux", "x64"), playground.runner("mac", name="other")
    playground.run()
    assert look_for([poller(other), poller(linux)]) == [Word.NOTHING, Word.PERHAPS]


def test_labels_are_compared_as_a_claim_compares_them(playground):
    runner = playground.runner("Linux")
    playground.run()
    assert look_for([poller(runner)]) == [Word.PERHAPS]


def test_an_assignment_that_its_runner_may_not_have_heard_of_is_worth_a_look(playground):
    playground.run()
    assigned = playground.assigned()
    assert look_for([poller(assigned.runner)]) == [Word.PERHAPS]


def test_a_paused_runner_has_nothing_to_look_for(playground):
    runner = playground.runner()
    playground.run()
    registration.pause_runner(runner_id=runner.pk, paused=True, actor=playground.operator)
    assert look_for([poller(runner)]) == [Word.NOTHING]


@pytest.mark.parametrize(
    "changed",
    [{"labels": ["other"]}, {"paused": True}, {"token_hash": "0" * 64}, {"agent_version": "9"}, {"used_job_id": 7}],
)
def test_what_is_known_of_a_runner_is_compared_with_its_row(playground, changed):
    runner = playground.runner()
    known = poller(runner)
    Runner.objects.filter(pk=runner.pk).update(**changed)
    assert look_for([known]) == [Word.CHANGED]


def test_a_runner_that_is_gone_has_changed(playground):
    runner, other = playground.runner(), playground.runner(name="other")
    known = [poller(runner), poller(other)]
    registration.remove_runner(runner_id=runner.pk)
    assert look_for(known) == [Word.CHANGED, Word.NOTHING]


def test_who_asks_was_seen(playground):
    runner, silent = playground.runner(), playground.runner(name="silent")
    Runner.objects.update(last_seen_at=None)
    look_for([poller(runner)])
    assert Runner.objects.get(pk=runner.pk).is_online
    assert Runner.objects.get(pk=silent.pk).last_seen_at is None


def test_tokens_are_told_apart(playground):
    runner = playground.runner()
    token_hash = hash_token(playground.runner_token)
    assert identify(["0" * 64, token_hash]) == [None, poller(runner)]


def test_only_what_is_queued_is_still_queued(playground):
    playground.run()
    job = Job.objects.get()
    assert still_queued([job.label_set_id, job.label_set_id + 1]) == {job.label_set_id}
    playground.runner()
    Job.objects.update(state=JobState.BLOCKED, hold="run", queued_at=None)
    assert still_queued([job.label_set_id]) == set()
    assert still_queued([]) == set()


@pytest.fixture
def many(playground):
    """Runners, jobs that have ended, and queued ones that nobody here fits."""
    run = playground.run()
    Job.objects.filter(run=run).delete()
    Runner.objects.bulk_create(
        Runner(name=f"runner-{number}", labels=["linux"], token_hash=hash_token(str(number))) for number in range(MANY)
    )
    label_set, now = label_set_of(["gpu"]), timezone.now()
    scope = {"queue_repository": run.repository_id, "queue_owner": run.repository.owner_id}
    queued = {"state": JobState.QUEUED, "queued_at": now, "expanded": True, **scope}
    ended = {"state": JobState.ENDED, "conclusion": "success", "ended_at": now}
    Job.objects.bulk_create(
        Job(run=run, key=f"job-{number}", label_set=label_set, **(queued if number % 2 else ended))
        for number in range(MANY)
    )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE ci_runner, ci_job, ci_labelset")


@pytest.mark.parametrize(
    ("statement", "values"),
    [
        (polls.POLLING, {"hashes": [hash_token("1"), hash_token("2")], "seen_every": 20}),
        (polls.FITTING, {"labels": json.dumps([["linux"], ["gpu", "linux"]])}),
        (polls.QUEUED, {"label_sets": [1, 2, 3]}),
    ],
    ids=["polling", "fitting", "queued"],
)
def test_it_goes_by_indexes_only(many, statement, values):
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (FORMAT JSON) {statement}", values)
        nodes = [cursor.fetchone()[0][0]["Plan"]]
    for node in nodes:
        nodes += node.get("Plans", [])
    assert [node for node in nodes if node["Node Type"] == "Seq Scan" and node["Relation Name"] != "ci_labelset"] == []
    names = {node["Index Name"] for node in nodes if "Index Name" in node}
    if statement == polls.POLLING:
        assert any(name.startswith("ci_runner_token_hash") for name in names)
        assert names & {"job_one_at_a_time_for_a_runner", "job_one_ever_for_a_single_use_runner"} or any(
            name.startswith("ci_job_runner_id") for name in names
        )
    else:
        assert "job_queue" in names
