"""Who may cancel or re-run one job?"""

from typing import Any

import pytest
from django.test import Client

from tests.playground import Playground, states_of
from tests.web.test_job import began, job_page


def test_a_writer_asks_a_running_job_to_stop(playground: Playground, browser: Any) -> None:
    assigned = began(playground)
    client = browser(playground.bob)
    text = client.post(job_page(assigned, "cancel/"), {"version": assigned.job.version}, follow=True).content.decode()
    assert "The job has been asked to stop." in text
    assert "by bob" in text
    assert "Force cancel job" in text
    assert assigned.job.outcome == "cancelling"


def test_and_then_forces_it(alice: Client, playground: Playground) -> None:
    assigned = began(playground)
    alice.post(job_page(assigned, "cancel/"))
    text = alice.post(job_page(assigned, "cancel/"), {"force": "1"}, follow=True).content.decode()
    assert "The job is cancelled." in text
    assert assigned.job.conclusion == "cancelled"


def test_a_stale_form_changes_nothing(alice: Client, playground: Playground) -> None:
    assigned = began(playground)
    stale = assigned.job.version - 1
    text = alice.post(job_page(assigned, "cancel/"), {"version": stale}, follow=True).content.decode()
    assert "has changed meanwhile" in text
    assert assigned.job.outcome == "running"


def test_one_job_runs_again(alice: Client, playground: Playground) -> None:
    assigned = began(playground)
    assigned.complete("failure")
    run = assigned.job.run
    run.refresh_from_db()
    response = alice.post(job_page(assigned, "rerun/"), {"version": run.version}, follow=True)
    assert "Attempt 2 has started." in response.content.decode()
    assert states_of(run) == {"build": "queued"}


@pytest.mark.parametrize("verb", ["cancel/", "rerun/"])
def test_others_may_not(playground: Playground, browser: Any, verb: str) -> None:
    assigned = began(playground)
    assert browser(playground.carol).post(job_page(assigned, verb)).status_code == 403
    assert browser(playground.mallory).post(job_page(assigned, verb)).status_code == 404
    assert browser(playground.alice).get(job_page(assigned, verb)).status_code == 405
    assert assigned.job.outcome == "running"
