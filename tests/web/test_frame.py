"""What holds for every page: who is signed in, no script but the server's own files, errors that say what to do?"""

import re
from typing import Any

import pytest
from django.template.loader import render_to_string
from django.test import Client

from tests.playground import Playground
from tests.web.test_job import began, job_page


def test_signing_in_and_out(playground: Playground) -> None:
    assert playground.alice
    client = Client()
    assert "Sign in" in client.get("/").content.decode()
    wrong = client.post("/login/", {"username": "alice", "password": "wrong"})
    assert "correct username and password" in wrong.content.decode()
    response = client.post("/login/?next=/settings/runners/", {"username": "alice", "password": "alice-password"})
    assert response["Location"] == "/settings/runners/"
    assert "Sign out" in client.get("/").content.decode()
    client.post("/logout/")
    assert "Sign out" not in client.get("/").content.decode()


def test_too_many_wrong_passwords_close_the_door(playground: Playground, settings: Any) -> None:
    settings.AXES_FAILURE_LIMIT = 3
    assert playground.alice
    client = Client()
    for _ in range(3):
        response = client.post("/login/", {"username": "alice", "password": "wrong"})
    assert response.status_code == 429
    assert "Too many attempts" in response.content.decode()
    assert client.post("/login/", {"username": "alice", "password": "alice-password"}).status_code == 429


def addresses(playground: Playground) -> list[str]:
    assigned = began(playground, "\x1b[38;2;1;2;3mone")
    actions = "/alice/widgets/actions/"
    run = f"{actions}runs/{assigned.job.run_id}/"
    settings = [f"/alice/widgets/settings/{page}/" for page in ("runners", "secrets", "variables")]
    return [
        actions,
        f"{actions}workflows/ci.yml/",
        run,
        f"{run}events/",
        job_page(assigned),
        *settings,
        "/login/",
        "/no/",
    ]


def test_no_page_needs_inline_script_or_style(alice: Client, playground: Playground) -> None:
    for address in addresses(playground):
        response = alice.get(address)
        text = response.content.decode()
        policy = response["Content-Security-Policy"]
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        assert "<style" not in text
        assert not re.search(r"<[^>]*\s(style|on\w+|hx-on[^=]*)=", text), address
        assert all("src=" in tag for tag in re.findall(r"<script[^>]*>", text))
        assert not re.search(r'(src|href)="(https?:)?//', text.replace("http://127.0.0.1:8000", "")), address


def test_every_page_has_a_title_a_language_and_a_way_past_the_header(alice: Client, playground: Playground) -> None:
    for address in addresses(playground):
        text = alice.get(address).content.decode()
        assert '<html lang="en">' in text
        assert '<a class="skip" href="#content">' in text
        assert 'id="content"' in text
        assert re.search(r"<title>\S.* · Forge CI</title>", text), address
        named = re.findall(r'\sid="([^"]+)"', text)
        assert len(named) == len(set(named)), address


@pytest.mark.parametrize("code", ["400", "403", "403_csrf", "404", "500"])
def test_an_error_page_needs_nothing_around_it(code: str) -> None:
    assert "<h1>" in render_to_string(f"{code}.html")


def test_a_missing_page_says_so(playground: Playground, browser: Any) -> None:
    assert playground.repository
    text = browser(playground.mallory).get("/alice/widgets/actions/").content.decode()
    assert "Not found" in text
    assert "widgets" not in text


def test_a_forbidden_page_says_what_to_ask_for(playground: Playground, browser: Any) -> None:
    assert playground.repository
    assert "role" in browser(playground.carol).get("/alice/widgets/settings/secrets/").content.decode()
