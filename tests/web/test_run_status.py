"""What does a page that follows a run get every few seconds?"""

import re

from django.test import Client

from tests.playground import Playground
from tests.web.test_run import page


def seen_by(text: str) -> str:
    match = re.search(r"\?seen=([0-9a-f]{8})", text)
    assert match
    return match[1]


def test_it_says_nothing_new_while_nothing_changes(alice: Client, playground: Playground) -> None:
    run = playground.run()
    seen = seen_by(alice.get(page(run)).content.decode())
    response = alice.get(page(run, f"status/?seen={seen}"))
    text = response.content.decode()
    assert response.status_code == 200
    assert seen_by(text) == seen
    assert "#announce" not in text
    assert "<html" not in text


def test_it_announces_a_change_and_brings_the_new_buttons(alice: Client, playground: Playground) -> None:
    run = playground.run()
    seen = seen_by(alice.get(page(run)).content.decode())
    playground.assigned().begin()
    text = alice.get(page(run, f"status/?seen={seen}")).content.decode()
    assert seen_by(text) != seen
    assert 'hx-swap-oob="innerHTML:#announce"' in text
    assert "is running: 0 of 1 jobs have ended" in text
    assert "Cancel run" in text
    assert f'name="version" value="{type(run).objects.get(pk=run.pk).version}"' in text


def test_it_stops_the_polling_once_the_run_has_ended(alice: Client, playground: Playground) -> None:
    run = playground.run()
    playground.work(playground.runner())
    response = alice.get(page(run, "status/?seen=00000000"))
    assert response.status_code == 286
    text = response.content.decode()
    assert "hx-get" not in text
    assert "Re-run all jobs" in text


def test_beside_a_job_it_keeps_that_job_marked(alice: Client, playground: Playground) -> None:
    run = playground.run()
    job = run.jobs.get()
    text = alice.get(page(run, f"status/?job={job.pk}")).content.decode()
    assert f"job={job.pk}" in text
    assert 'aria-current="page"' in text
    assert "#summary" not in text
