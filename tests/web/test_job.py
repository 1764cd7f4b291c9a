"""What does the page of a job show of its steps and its log?"""

import re
from typing import Any

import pytest
from django.test import Client

from ci.lifecycle import transitions
from tests.playground import Assigned, Playground


def job_page(assigned: Assigned, more: str = "") -> str:
    job = assigned.job
    return f"/alice/widgets/actions/runs/{job.run_id}/jobs/{job.pk}/{more}"


def began(playground: Playground, *lines: str) -> Assigned:
    playground.run()
    assigned = playground.assigned().begin()
    if lines:
        assigned.log(*lines)
    return assigned


def text_of(client: Client, address: str) -> str:
    response = client.get(address)
    assert response.status_code == 200, response.status_code
    return response.content.decode()


def test_steps_are_folds_with_the_failed_one_open(alice: Client, playground: Playground) -> None:
    assigned = began(playground, "one", "two", "three")
    assigned.steps(
        {
            "number": 2, "name": "Run make", "state": "ended", "conclusion": "failure",
            "first_line": 1, "line_count": 2,
            "started_at": "2026-01-01T00:00:00Z", "ended_at": "2026-01-01T00:01:03Z",
        },
        {"number": 3, "name": "Post checkout", "state": "ended", "conclusion": "skipped"},
    )  # fmt: skip
    assigned.complete("failure")
    text = text_of(alice, job_page(assigned))
    assert re.search(r'<details class="step" id="step-2" open', text)
    assert re.search(r'<details class="step" id="step-1">', text)
    assert "1m 3s" in text
    assert "This step was skipped." in text


def test_lines_have_anchors_from_one_on(alice: Client, playground: Playground) -> None:
    text = text_of(alice, job_page(began(playground, "first", "second")))
    assert '<li id="L1"><a class="ln" href="#L1"' in text
    assert "</a>second</li>" in text
    assert 'role="log" aria-live="off"' in text


@pytest.mark.parametrize(
    "line",
    [
        "<script>alert(1)</script>",
        "\x1b[31m<script>alert(1)</script>",
        "##[group]<script>alert(1)</script>",
        "##[error]<script>alert(1)</script>",
        "##[bogus]<script>alert(1)</script>",
        "</li></ol><script>alert(1)</script>",
        "x\r<script>alert(1)</script>",
        '\x1b]8;;javascript:alert(1)\x07<script>alert(1)</script>"\x1b]8;;\x07',
    ],
)
def test_a_log_can_never_become_markup(alice: Client, playground: Playground, line: str) -> None:
    assigned = began(playground, line)
    for more in ("", "?timestamps=1", "log/?after=0"):
        text = text_of(alice, job_page(assigned, more))
        assert "<script>alert" not in text
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text


def test_names_and_times_are_text_too(alice: Client, playground: Playground) -> None:
    evil = "</summary><script>alert(1)</script>"
    playground.run(
        """
        name: "<script>alert(1)</script>"
        on: push
        jobs:
          a: {name: "<script>alert(1)</script>", runs-on: linux, steps: [{run: x}]}
        """
    )
    assigned = playground.assigned(playground.runner(name="<script>alert(1)"))
    assigned.heartbeat()
    assigned.steps({"number": 1, "name": evil, "state": "running"})
    transitions.append_log(job_id=assigned.id, token=assigned.token, offset=0, lines=[('"><script>alert(1)', "line")])
    assigned.complete("success", outputs={"<script>alert(1)": "<script>alert(2)</script>"})
    for more in ("", "?timestamps=1"):
        assert "<script>alert" not in text_of(alice, job_page(assigned, more))


def test_groups_nest_and_levels_are_coloured(alice: Client, playground: Playground) -> None:
    assigned = began(
        playground, "##[group]Install", "inside", "##[endgroup]", "##[error]bad", "##[warning]hm", "##[notice]fyi"
    )
    text = text_of(alice, job_page(assigned))
    assert re.search(
        r'<li class="fold"><details><summary id="L1">.*Install</summary><ol class="log-lines" id="fold-1">', text
    )
    assert re.search(r"inside</li></ol></details></li><li", text)
    assert '<li id="L4" class="line-error">' in text
    assert '<span class="level">Warning: </span>hm' in text
    assert '<li id="L6" class="line-notice">' in text
    assert "endgroup" not in text


def test_a_group_left_open_ends_with_its_step(alice: Client, playground: Playground) -> None:
    text = text_of(alice, job_page(began(playground, "##[group]Open", "inside")))
    start, end = text.index('id="steps"'), text.index('id="log-cursor"')
    steps = text[start:end]
    assert steps.count("<ol") == steps.count("</ol>")
    assert steps.count("<details") == steps.count("</details>")


def test_timestamps_come_on_demand(alice: Client, playground: Playground) -> None:
    assigned = began(playground, "line")
    plain, stamped = text_of(alice, job_page(assigned)), text_of(alice, job_page(assigned, "?timestamps=1"))
    assert "00:00:00.000</time>" not in plain
    assert '<time title="2026-01-01T00:00:00.000Z">00:00:00.000</time>' in stamped
    assert "?timestamps=1" in plain
    assert "Hide timestamps" in stamped


def test_of_a_long_log_the_end_comes_first(alice: Client, playground: Playground) -> None:
    assigned = began(playground)
    assigned.log(*[f"line number {number}." for number in range(5000)])
    text = text_of(alice, job_page(assigned))
    assert "Lines 3001 to 5000 of 5000" in text
    assert "line number 4999." in text
    assert "line number 3000." in text
    assert "line number 2999." not in text
    assert "?first=1000" in text
    earlier = text_of(alice, job_page(assigned, "?first=1000"))
    assert "line number 1000." in earlier
    assert "line number 3000." not in earlier
    assert 'id="log-cursor" class="muted small">' in earlier
    assert "first=3000" in earlier


def test_the_line_of_a_link_is_found_wherever_it_is(alice: Client, playground: Playground) -> None:
    assigned = began(playground)
    assigned.log(*[f"line number {number}." for number in range(5000)])
    text = text_of(alice, job_page(assigned, "?line=42"))
    assert 'id="L42"' in text
    assert '<details class="step" id="step-2" open' in text


@pytest.mark.parametrize("query", ["first=-1", "first=x", "first=99999999999999999999", "line=0", "line=x", "first="])
def test_a_window_that_makes_no_sense_is_the_end(alice: Client, playground: Playground, query: str) -> None:
    assert "</a>one</li>" in text_of(alice, job_page(began(playground, "one"), f"?{query}"))


def test_a_page_of_long_lines_stays_bounded(alice: Client, playground: Playground) -> None:
    assigned = began(playground)
    assigned.log(*["x" * 60_000 for _ in range(100)])
    text = text_of(alice, job_page(assigned))
    assert len(text) < 300_000
    assert "more characters in the raw log" in text


def test_lines_of_a_step_that_was_cut_short_are_shown(alice: Client, playground: Playground) -> None:
    assigned = began(playground, "the last words")
    transitions.cancel_run(run_id=assigned.job.run_id, actor=playground.bob, force=True)
    text = text_of(alice, job_page(assigned))
    assert "</a>the last words</li>" in text
    assert "Ended by force by bob." in text


def test_it_says_why_a_job_waits(alice: Client, playground: Playground) -> None:
    run = playground.run("name: CI\non: push\njobs:\n  a:\n    runs-on: gpu\n    steps: [{run: x}]\n")
    playground.runner()
    job = run.jobs.get()
    assert "No runner has the label gpu." in text_of(alice, f"/alice/widgets/actions/runs/{run.pk}/jobs/{job.pk}/")


def test_it_shows_outputs(alice: Client, playground: Playground) -> None:
    assigned = began(playground)
    assigned.complete("success", outputs={"version": "1.2.3"})
    text = text_of(alice, job_page(assigned))
    assert "1 output" in text
    assert "1.2.3" in text


def test_a_job_carried_over_shows_the_log_of_the_attempt_it_ran_in(alice: Client, playground: Playground) -> None:
    run = playground.run(
        """
        name: CI
        on: push
        jobs:
          a: {runs-on: linux, steps: [{run: x}]}
          b: {runs-on: linux, steps: [{run: x}]}
        """
    )
    runner = playground.runner()
    first = playground.assigned(runner).begin()
    first.log("words of the first attempt")
    first.complete("success")
    playground.work(runner, {"b": "failure"})
    transitions.rerun(run_id=run.pk, actor=playground.alice, mode="failed")
    carried = run.jobs.get(attempt=2, carried_from__isnull=False)
    text = text_of(alice, f"/alice/widgets/actions/runs/{run.pk}/jobs/{carried.pk}/")
    assert "words of the first attempt" in text
    assert "ran in attempt 1" in text


def test_a_job_costs_a_fixed_number_of_queries(
    alice: Client, playground: Playground, django_assert_max_num_queries: Any
) -> None:
    assigned = began(playground, *["line"] * 500)
    assigned.steps(*[{"number": number, "name": "x", "state": "pending"} for number in range(3, 200)])
    with django_assert_max_num_queries(13):
        assert alice.get(job_page(assigned)).status_code == 200
    with django_assert_max_num_queries(12):
        assert alice.get(job_page(assigned, "log/?after=0")).status_code == 200


@pytest.mark.parametrize("more", ["", "log/", "log/raw/"])
def test_a_private_job_is_hidden_from_strangers(playground: Playground, browser: Any, more: str) -> None:
    assigned = began(playground, "secret words")
    for person in (playground.mallory, None):
        assert browser(person).get(job_page(assigned, more)).status_code == 404
    assert browser(playground.carol).get(job_page(assigned, more)).status_code in (200, 286)


def test_a_job_of_another_run_is_not_found(alice: Client, playground: Playground) -> None:
    assigned, other = began(playground), playground.run()
    assert alice.get(f"/alice/widgets/actions/runs/{other.pk}/jobs/{assigned.id}/").status_code == 404
    assert alice.get(f"/alice/widgets/actions/runs/{other.pk}/jobs/{10**30}/").status_code == 404
