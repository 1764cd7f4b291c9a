"""Do people sign in and out, and is guessing slowed down?"""

import pytest
from django.test import Client


@pytest.fixture
def browser(alice):
    alice.set_password("alice's long password")
    alice.save()
    return Client()


def test_it_signs_in_and_out(browser):
    answer = browser.post("/login/", {"username": "alice", "password": "alice's long password"})
    assert answer["Location"] == "/"
    assert "Sign out" in browser.get("/").content.decode()
    assert browser.post("/logout/")["Location"] == "/"
    assert "Sign in" in browser.get("/").content.decode()


def test_it_returns_to_where_one_was_but_never_to_another_site(browser):
    fields = {"username": "alice", "password": "alice's long password"}
    assert browser.post("/login/", {**fields, "next": "/new/"})["Location"] == "/new/"
    assert browser.post("/login/", {**fields, "next": "https://evil.example/"})["Location"] == "/"


def test_signing_out_takes_a_post(browser):
    assert browser.get("/logout/").status_code == 405


def test_guessing_is_closed_after_the_limit_even_for_the_right_password(browser, settings):
    settings.AXES_FAILURE_LIMIT = 3
    for _ in range(3):
        last = browser.post("/login/", {"username": "alice", "password": "wrong"})
    assert last.status_code == 429
    assert "Too many attempts" in last.content.decode()
    right = browser.post("/login/", {"username": "alice", "password": "alice's long password"})
    assert right.status_code == 429
    assert "Sign in" in browser.get("/").content.decode()


def test_no_page_allows_inline_scripts(browser):
    policy = browser.get("/login/")["Content-Security-Policy"]
    assert "script-src 'self'" in policy
    assert "unsafe-inline" not in policy
    assert "<script>" not in browser.get("/login/").content.decode()
