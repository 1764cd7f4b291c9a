"""What does a page that follows a log get, and is the raw log what the runner sent?"""

import re
from html import unescape

import pytest
from django.test import Client
from django.utils import timezone

from ci.lifecycle import transitions
from ci.models import Job
from ci.storage import logs
from ci.web import log
from tests.playground import Assigned, Playground
from tests.web.test_job import began, job_page


def next_address(text: str) -> str | None:
    match = re.search(r'id="log-cursor"[^>]* hx-get="([^"]+)"', text)
    return unescape(match[1]) if match else None


def follow(client: Client, address: str | None) -> tuple[str, str | None]:
    assert address
    response = client.get(address)
    text = response.content.decode()
    assert "<html" not in text
    assert response.status_code == (200 if next_address(text) else 286)
    return text, next_address(text)


def first_look(client: Client, assigned: Assigned) -> str:
    address = next_address(client.get(job_page(assigned)).content.decode())
    assert address
    return address


def add(assigned: Assigned, *texts: str) -> None:
    assigned.log(*texts, offset=logs.length(assigned.id))


def test_it_brings_each_line_once(alice: Client, playground: Playground) -> None:
    assigned = began(playground, "one", "two")
    address: str | None = first_look(alice, assigned)
    seen: list[str] = []
    for batch in (["three"], [], ["four", "five"]):
        if batch:
            add(assigned, *batch)
        text, address = follow(alice, address)
        seen += re.findall(r"</a>(\w+)</li>", text)
    assert seen == ["three", "four", "five"]
    assert "every 500ms" in alice.get(job_page(assigned)).content.decode()


def test_lines_go_into_the_step_that_writes_them(alice: Client, playground: Playground) -> None:
    assigned = began(playground, "one")
    address = first_look(alice, assigned)
    assigned.steps(
        {"number": 2, "name": "x", "state": "ended", "conclusion": "success", "first_line": 0, "line_count": 2},
        {"number": 3, "name": "Run tests", "state": "running", "first_line": 2},
    )
    add(assigned, "two", "three")
    text, _ = follow(alice, address)
    assert '<ol hx-swap-oob="beforeend:#step-2-lines"><li id="L2">' in text
    assert '<ol hx-swap-oob="beforeend:#step-3-lines"><li id="L3">' in text
    assert re.search(r'beforeend:#steps">\s*<details class="step" id="step-3" open', text)
    assert "innerHTML:#step-2-head" in text


def test_a_step_that_begins_opens(alice: Client, playground: Playground) -> None:
    assigned = began(playground)
    assigned.steps({"number": 3, "name": "Later", "state": "pending"})
    address = first_look(alice, assigned)
    assigned.steps({"number": 3, "name": "Later", "state": "running", "first_line": 0})
    text, address = follow(alice, address)
    assert '<details class="step" id="step-3" open hx-swap-oob="true">' in text
    again, _ = follow(alice, address)
    assert 'id="step-3"' not in again


def test_an_open_group_goes_on(alice: Client, playground: Playground) -> None:
    assigned = began(playground, "##[group]Install", "one")
    address: str | None = first_look(alice, assigned)
    add(assigned, "two")
    text, address = follow(alice, address)
    assert '<ol hx-swap-oob="beforeend:#fold-1"><li id="L3">' in text
    add(assigned, "##[endgroup]", "after")
    text, _ = follow(alice, address)
    assert '<ol hx-swap-oob="beforeend:#step-2-lines"><li id="L5">' in text
    assert "fold-1" not in text


def test_a_colour_goes_on(alice: Client, playground: Playground) -> None:
    assigned = began(playground, "\x1b[1;31mred")
    address: str | None = first_look(alice, assigned)
    add(assigned, "still red\x1b[0m")
    text, address = follow(alice, address)
    assert '<span class="f-1 bold">still red</span>' in text
    add(assigned, "plain")
    text, _ = follow(alice, address)
    assert "</a>plain</li>" in text


def test_it_stops_when_the_log_is_sealed_and_not_before(alice: Client, playground: Playground) -> None:
    assigned = began(playground, "one")
    address: str | None = first_look(alice, assigned)
    assigned.complete("success")
    Job.objects.filter(pk=assigned.id).update(ended_at=timezone.now())
    text, address = follow(alice, address)
    assert address
    assert "is success." in text
    assert "Re-run this job" in text
    add(assigned, "late words")
    logs.seal(assigned.id)
    text, address = follow(alice, address)
    assert "late words" in text
    assert address is None


def test_a_reader_far_behind_gets_it_in_pieces(alice: Client, playground: Playground) -> None:
    assigned = began(playground)
    address: str | None = first_look(alice, assigned)
    add(assigned, *[f"n{number}." for number in range(2500)])
    seen: list[str] = []
    for _ in range(3):
        text, address = follow(alice, address)
        seen += re.findall(r"</a>(n\d+)\.</li>", text)
    assert seen == [f"n{number}" for number in range(2500)]
    assert "every 500ms" in text


def test_a_page_that_has_grown_too_long_stops(alice: Client, playground: Playground) -> None:
    assigned = began(playground, "one")
    response = alice.get(job_page(assigned, f"log/?after=0&shown={log.MOST_FOLLOWED}"))
    assert response.status_code == 286
    assert "Show the latest lines" in response.content.decode()


def test_a_job_that_went_back_to_the_queue_loads_the_page_anew(alice: Client, playground: Playground) -> None:
    playground.run()
    assigned = playground.assigned()
    assigned.heartbeat()
    assigned.steps({"number": 1, "name": "Set up job", "state": "pending"})
    address = first_look(alice, assigned)
    transitions.requeue_job(job_id=assigned.id, actor=playground.operator)
    assert alice.get(address)["HX-Refresh"] == "true"


@pytest.mark.parametrize(
    "query",
    [
        "after=-1", "after=x", "after=999999999999999999999", "after=2000000000", "style=%22%3E%3Cscript%3E",
        "fold=x&step=-1", "states=<script>", "states=" + "r" * 5000, "version=x&shown=y", "fold=99&after=0&step=2",
    ],
)  # fmt: skip
def test_a_forged_cursor_does_no_harm(alice: Client, playground: Playground, query: str) -> None:
    assigned = began(playground, "one")
    response = alice.get(job_page(assigned, f"log/?{query}"))
    assert response.status_code == 200
    assert "<script" not in response.content.decode()


def test_the_raw_log_is_what_was_sent(alice: Client, playground: Playground) -> None:
    assigned = began(playground, "\x1b[31mred\x1b[0m", "<b>", "", "ünï")
    response = alice.get(job_page(assigned, "log/raw/"))
    assert b"".join(response) == "\x1b[31mred\x1b[0m\n<b>\n\nünï\n".encode()
    assert response["Content-Type"] == "text/plain; charset=utf-8"
    assert response["Content-Disposition"].startswith("attachment; filename=")
    assert response["X-Content-Type-Options"] == "nosniff"


def test_the_raw_log_of_a_job_that_never_ran_is_empty(alice: Client, playground: Playground) -> None:
    run = playground.run()
    response = alice.get(f"/alice/widgets/actions/runs/{run.pk}/jobs/{run.jobs.get().pk}/log/raw/")
    assert (response.status_code, b"".join(response)) == (200, b"")


def test_the_raw_log_has_times_on_demand(alice: Client, playground: Playground) -> None:
    response = alice.get(job_page(began(playground, "one"), "log/raw/?timestamps=1"))
    assert b"".join(response) == b"2026-01-01T00:00:00.000Z one\n"
