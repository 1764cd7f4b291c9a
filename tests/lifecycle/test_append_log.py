"""append_log: each line once, in order, up to the limit."""

import pytest
from pytest_django.fixtures import Settings

from ci.lifecycle import transitions
from ci.lifecycle.errors import LogLimit, LogOffset, NotFound, Unauthenticated
from ci.models import Job
from ci.storage import logs
from tests.playground import Assigned, Playground


def texts(assigned: Assigned) -> list[str]:
    return [line.text for line in logs.lines(assigned.id, 0, 1000)]


def test_lines_are_appended(playground: Playground) -> None:
    playground.run()
    assigned = playground.assigned().begin()
    assert assigned.log("one", "two") == 2
    assert assigned.log("three", offset=2) == 3
    assert texts(assigned) == ["one", "two", "three"]


def test_repeats_are_clamped(playground: Playground) -> None:
    playground.run()
    assigned = playground.assigned().begin()
    assigned.log("one", "two")
    assert assigned.log("one", "two") == 2
    assert assigned.log("two", "three", offset=1) == 3
    assert texts(assigned) == ["one", "two", "three"]


def test_a_hole_is_refused(playground: Playground) -> None:
    playground.run()
    assigned = playground.assigned().begin()
    assigned.log("one")
    with pytest.raises(LogOffset) as refused:
        assigned.log("four", offset=3)
    assert refused.value.next_offset == 1
    assert texts(assigned) == ["one"]


def test_at_the_limit_what_fitted_is_kept_and_the_job_is_stopped(playground: Playground, settings: Settings) -> None:
    settings.LOG_LIMIT_LINES = 2
    playground.run()
    assigned = playground.assigned().begin()
    with pytest.raises(LogLimit) as full:
        assigned.log("one", "two", "three")
    assert full.value.next_offset == 2
    assert texts(assigned) == ["one", "two"]
    assert assigned.heartbeat().cancel == "log_limit"
    assert assigned.complete("failure").reason == "log_limit"


def test_a_wrong_token_writes_nothing(playground: Playground) -> None:
    playground.run()
    assigned = playground.assigned().begin()
    with pytest.raises(Unauthenticated):
        transitions.append_log(job_id=assigned.id, token="frj_no", offset=0, lines=[("", "x")])
    assert logs.length(assigned.id) == 0


def test_a_vanished_job_is_not_found(playground: Playground) -> None:
    playground.run()
    assigned = playground.assigned().begin()
    Job.objects.filter(pk=assigned.id).delete()
    with pytest.raises(NotFound):
        assigned.log("one")
