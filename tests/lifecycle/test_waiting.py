"""why: one sentence for the person who waits."""

from datetime import timedelta

from django.utils import timezone

from ci.lifecycle import registration
from ci.lifecycle.waiting import why
from ci.models import Runner
from tests.playground import Playground, jobs_of

GPU = "on: push\njobs: {train: {runs-on: [linux, gpu], steps: [{run: echo}]}}"


def test_no_runner_at_all(playground: Playground) -> None:
    job = jobs_of(playground.run())["build"]
    assert why(job) == "There is no runner for this repository: register one."


def test_a_missing_label_is_named(playground: Playground) -> None:
    playground.runner("linux")
    assert why(jobs_of(playground.run(GPU))["train"]) == "No runner has the label gpu."


def test_labels_spread_over_runners_are_named(playground: Playground) -> None:
    playground.runner("linux")
    playground.runner("gpu", name="beta")
    assert why(jobs_of(playground.run(GPU))["train"]) == "No runner has all of the labels gpu, linux."


def test_busy_runners_are_counted(playground: Playground) -> None:
    for name in ("one", "two"):
        playground.run()
        playground.assigned(playground.runner(name=name))
    assert why(jobs_of(playground.run())["build"]) == "2 runners fit, both are busy."


def test_offline_and_paused_are_said(playground: Playground) -> None:
    runner = playground.runner()
    job = jobs_of(playground.run())["build"]
    registration.pause_runner(runner_id=runner.pk, paused=True, actor=playground.operator)
    assert why(job) == "1 runner fits, it is paused."
    Runner.objects.update(last_seen_at=timezone.now() - timedelta(hours=1))
    assert why(job) == "1 runner fits, none is online."


def test_needs_are_named(playground: Playground) -> None:
    run = playground.run("""
        on: push
        jobs:
          a: {runs-on: linux, steps: [{run: echo}]}
          b: {needs: a, runs-on: linux, steps: [{run: echo}]}
    """)
    assert why(jobs_of(run)["b"]) == "Waits for a."


def test_a_running_job_waits_for_nothing(playground: Playground) -> None:
    playground.run()
    assert why(playground.assigned().begin().job) == ""
