"""What does the page of a workflow show, and who starts it by hand?"""

from typing import Any

import pytest
from django.test import Client

from ci.models import Run, Schedule, Workflow
from tests.playground import ONE_JOB, Playground

RELEASE = """
    name: Release
    on:
      workflow_dispatch:
        inputs:
          version: {description: "Version <b>to release</b>", required: true, type: string}
          channel: {type: choice, options: [stable, beta], default: beta}
          dry-run: {type: boolean, default: true}
          count: {type: number, default: 3}
      schedule:
        - cron: '30 4 * * 1'
          timezone: Europe/Berlin
    jobs:
      release: {runs-on: linux, steps: [{run: make}]}
"""
FILE = ".github/workflows/release.yml"
PAGE = "/alice/widgets/actions/workflows/release.yml/"


def text_of(client: Client, address: str = PAGE) -> str:
    response = client.get(address)
    assert response.status_code == 200, response.status_code
    return response.content.decode()


def test_it_shows_schedules_with_their_next_time(alice: Client, playground: Playground) -> None:
    playground.push({FILE: RELEASE})
    text = text_of(alice)
    assert "<code>30 4 * * 1</code>" in text
    assert "Europe/Berlin" in text
    assert f"{Schedule.objects.get().next_at:%Y-%m-%d %H:%M} UTC" in text
    assert "This workflow has not run yet" in text
    assert "It runs on schedule, workflow_dispatch." in text


def test_it_shows_only_its_own_runs(alice: Client, playground: Playground) -> None:
    playground.push({FILE: RELEASE})
    playground.run(message="Only of CI")
    assert "Only of CI" not in text_of(alice)
    assert "Only of CI" in text_of(alice, "/alice/widgets/actions/workflows/ci.yml/")


def test_it_shows_what_is_wrong_with_the_file(alice: Client, playground: Playground) -> None:
    playground.push({FILE: "name: Release\non: push\njobs:\n  a:\n    runs-on: linux\n    stepz: <script>\n"})
    text = text_of(alice)
    assert "Problems in the file on main" in text
    assert "release.yml:6:5" in text
    assert '<li data-number="6" class="marked">    stepz: &lt;script&gt;</li>' in text


def test_it_shows_what_the_file_needs_of_its_runner(alice: Client, playground: Playground) -> None:
    playground.push({FILE: "name: Release\non: push\njobs:\n  a:\n    runs-on: linux\n    container: <node>\n"})
    text = text_of(alice)
    assert "What to know of the file on main" in text and "Problems in the file" not in text
    assert "The bundled runner cannot start containers: this job needs a runner that has Docker" in text
    assert "release.yml:6:5" in text
    assert '<li data-number="6" class="marked">    container: &lt;node&gt;</li>' in text
    playground.push({FILE: RELEASE})
    assert "What to know of the file" not in text_of(alice)


def test_its_form_has_a_field_for_each_input(alice: Client, playground: Playground) -> None:
    playground.push({FILE: RELEASE})
    text = text_of(alice)
    assert "Version &lt;b&gt;to release" in text
    assert '<option value="beta" selected>' in text
    assert 'type="checkbox"' in text
    assert 'type="number"' in text


def test_a_writer_starts_it(playground: Playground, browser: Any) -> None:
    playground.push({FILE: RELEASE})
    given = {"ref": "main", "input_0": "1.2.3", "input_1": "stable", "input_3": "0.5"}
    response = browser(playground.bob).post(f"{PAGE}dispatch/", given, follow=True)
    run = Run.objects.get(event="workflow_dispatch")
    assert run.inputs == {"version": "1.2.3", "channel": "stable", "dry-run": False, "count": 0.5}
    assert run.actor_name == "bob"
    assert response.redirect_chain[-1][0] == run.get_absolute_url()


def test_inputs_that_do_not_fit_are_said_beside_their_field(alice: Client, playground: Playground) -> None:
    playground.push({FILE: RELEASE})
    response = alice.post(f"{PAGE}dispatch/", {"ref": "main", "input_1": "gamma", "input_3": "many"})
    text = response.content.decode()
    assert response.status_code == 422
    for said in ("A value is required", "Choose one of: stable, beta", "Write a number"):
        assert said in text
    assert 'value="many"' in text
    assert not Run.objects.filter(event="workflow_dispatch").exists()


@pytest.mark.parametrize(
    ("ref", "said"), [("nowhere", "no branch or tag nowhere"), ("--all", "no branch or tag --all")]
)
def test_a_ref_that_is_none_is_said(alice: Client, playground: Playground, ref: str, said: str) -> None:
    playground.push({FILE: RELEASE})
    assert said in text_of(alice, f"{PAGE}?ref={ref}")
    assert said in alice.post(f"{PAGE}dispatch/", {"ref": ref}, follow=True).content.decode()


def test_a_branch_without_the_trigger_says_so(alice: Client, playground: Playground) -> None:
    playground.push({FILE: RELEASE})
    playground.push({FILE: ONE_JOB}, branch="topic")
    assert "no workflow_dispatch trigger" in text_of(alice, f"{PAGE}?ref=topic")


def test_a_reader_gets_no_form_and_may_not_start_it(playground: Playground, browser: Any) -> None:
    playground.push({FILE: RELEASE})
    carol = browser(playground.carol)
    assert "Run this workflow by hand" not in text_of(carol)
    assert carol.post(f"{PAGE}dispatch/", {"input_0": "1"}).status_code == 403
    assert browser(playground.mallory).post(f"{PAGE}dispatch/").status_code == 404
    assert browser(playground.mallory).get(PAGE).status_code == 404
    assert not Run.objects.exists()


@pytest.mark.parametrize("file", ["none.yml", "%00", "x" * 300, "%", "_"])
def test_an_unknown_workflow_is_not_found(alice: Client, playground: Playground, file: str) -> None:
    playground.push({FILE: RELEASE})
    assert alice.get(f"/alice/widgets/actions/workflows/{file}/").status_code == 404


BROKEN_CALLEE = "on: workflow_call\njobs:\n  a:\n    runs-on: linux\n    stepz: <script>\n"
CALLED = ".github/workflows/called.yml"


def test_a_problem_in_a_called_file_is_shown_in_both_files(alice: Client, playground: Playground) -> None:
    caller = f"name: Release\non: push\njobs:\n  call:\n    uses: ./{CALLED}\n"
    playground.push({FILE: caller, CALLED: BROKEN_CALLEE})
    run = Run.objects.get(workflow_path=FILE)
    assert run.conclusion == "startup_failure"
    for address in (PAGE, f"/alice/widgets/actions/runs/{run.pk}/"):
        text = text_of(alice, address)
        assert "release.yml:5:11" in text
        assert "called.yml:5:5" in text
        assert f'<li data-number="5" class="marked">    uses: ./{CALLED}</li>' in text
        assert '<li data-number="5" class="marked">    stepz: &lt;script&gt;</li>' in text


def test_what_a_broken_file_of_another_repository_says_is_not_shown(alice: Client, playground: Playground) -> None:
    other = playground.make_repository(name="shared")
    playground.push({CALLED: BROKEN_CALLEE}, repository=other)
    playground.push({FILE: f"on: push\njobs:\n  call:\n    uses: alice/shared/{CALLED}@main\n"})
    text = text_of(alice)
    assert "Error from called workflow alice/shared" in text
    assert "release.yml:4:11" in text
    assert "script&gt;" not in text


def test_problems_go_when_the_file_is_mended(alice: Client, playground: Playground) -> None:
    playground.push({FILE: RELEASE.replace("runs-on", "runz-on")})
    assert "Problems in the file on main" in text_of(alice)
    playground.push({FILE: RELEASE})
    assert "Problems in the file" not in text_of(alice)


UNFIRED = RELEASE.replace("schedule:", "pull_request:\n      release:\n      schedule:")


def test_events_that_this_server_never_fires_are_named(alice: Client, playground: Playground) -> None:
    playground.push({FILE: UNFIRED, ".github/workflows/ci.yml": ONE_JOB})
    assert "This server does not fire pull_request, release yet" in text_of(alice)
    listed = " ".join(text_of(alice, "/alice/widgets/actions/").split())
    assert f'<li><a href="{PAGE}">Release</a>: pull_request, release</li>' in listed
    assert listed.count(": pull_request") == 1
    assert "does not fire" not in text_of(alice, "/alice/widgets/actions/workflows/ci.yml/")


def test_a_writer_disables_and_enables_it(alice: Client, playground: Playground, browser: Any) -> None:
    playground.push({FILE: RELEASE})
    bob = browser(playground.bob)
    said = bob.post(f"{PAGE}switch/", {"enabled": "0"}, follow=True).content.decode()
    assert "Release is disabled" in said
    assert "Enable workflow" in said
    assert "Run this workflow by hand" not in said
    assert '<span class="muted small">disabled</span>' in text_of(alice, "/alice/widgets/actions/")
    assert "disabled already" in bob.post(f"{PAGE}switch/", {"enabled": "0"}, follow=True).content.decode()
    said = bob.post(f"{PAGE}switch/", {"enabled": "1"}, follow=True).content.decode()
    assert "Release is enabled." in said
    assert "Run this workflow by hand" in said
    assert bob.post(f"{PAGE}switch/", {}).status_code == 400


def test_a_reader_may_not_disable_it(playground: Playground, browser: Any) -> None:
    playground.push({FILE: RELEASE})
    carol = browser(playground.carol)
    assert "Disable workflow" not in text_of(carol)
    for person, status in ((playground.carol, 403), (playground.mallory, 404), (None, 404)):
        assert browser(person).post(f"{PAGE}switch/", {"enabled": "0"}).status_code == status
    assert Workflow.objects.get(path=FILE).enabled
