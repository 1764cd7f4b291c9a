"""Does a real browser see a run happen, without loading a page anew?"""

import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection
from playwright.sync_api import Page, expect, sync_playwright

from tests.playground import Assigned, Playground

CHROMIUM = shutil.which("chromium")
pytestmark = [pytest.mark.browser, pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's chromium")]
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
expect.set_options(timeout=60_000)
Beside = Callable[[Callable[[], Any]], Any]


@pytest.fixture
def beside() -> Iterator[Beside]:
    """Runs what uses the database in a thread of its own: Playwright's loop runs in this one."""
    with ThreadPoolExecutor(max_workers=1) as pool:

        def run(act: Callable[[], Any]) -> Any:
            return pool.submit(act).result(timeout=120)

        yield run
        run(lambda: connection.close())  # the thread's own connection


@pytest.fixture
def page(live_server: Any) -> Iterator[Page]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_context(base_url=live_server.url, viewport={"width": 1280, "height": 700}).new_page()
        page.set_default_timeout(60_000)
        complaints: list[str] = []
        page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        yield page
        browser.close()
        assert complaints == []


@pytest.fixture
def world(live_server: Any, beside: Beside) -> Playground:
    world = Playground()
    beside(lambda: (world.repository, world.operator))
    return world


def sign_in(page: Page) -> None:
    page.goto("/login/")
    page.get_by_label("Username").fill("alice")
    page.get_by_label("Password").fill("alice-password")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("button", name="Sign out")).to_be_visible()


def begin(world: Playground) -> Assigned:
    world.run(message="Watch me")
    return world.assigned().begin()


def test_a_log_is_followed_and_a_job_cancelled(page: Page, world: Playground, beside: Beside) -> None:
    assigned = beside(lambda: begin(world))
    sign_in(page)
    page.goto("/alice/widgets/actions/")
    page.get_by_role("link", name="Watch me").click()
    page.get_by_role("link", name="build").click()
    page.evaluate("window.sameDocument = true")

    beside(lambda: assigned.log("\x1b[32mgreen words\x1b[0m", "##[group]Folded", "inside"))
    expect(page.get_by_text("green words")).to_be_visible()
    expect(page.get_by_text("inside")).to_be_hidden()
    page.get_by_text("Folded").click()
    expect(page.get_by_text("inside")).to_be_visible()
    beside(lambda: assigned.log("still inside", "##[endgroup]", "outside", offset=3))
    expect(page.get_by_text("still inside")).to_be_visible()
    assert page.locator("#fold-2 > li").count() == 2
    expect(page.locator("#step-2-lines > #L6")).to_contain_text("outside")

    page.get_by_role("button", name="Cancel job").click()
    expect(page.locator("#job-notes")).to_contain_text("by alice")
    page.evaluate("window.sameDocument = true")
    beside(lambda: assigned.complete("cancelled"))
    expect(page.get_by_role("button", name="Re-run this job")).to_be_visible()
    expect(page.locator("#job-state")).to_contain_text("Cancelled")
    expect(page.locator("#run-state")).to_contain_text("Cancelled")
    expect(page.locator("#announce")).not_to_be_empty()
    assert page.evaluate("window.sameDocument")

    page.get_by_role("button", name="Re-run failed jobs").click()
    expect(page.get_by_text("Attempt 2 has started.")).to_be_visible()


def test_the_page_stays_at_the_end_only_while_its_reader_is_there(
    page: Page, world: Playground, beside: Beside
) -> None:
    assigned = beside(lambda: begin(world))
    sign_in(page)
    page.goto(beside(lambda: assigned.job.get_absolute_url()))
    beside(lambda: assigned.log(*[f"line {number}." for number in range(200)]))
    expect(page.get_by_text("line 199.")).to_be_in_viewport()
    page.evaluate("scrollTo(0, 0)")
    page.wait_for_function("scrollY === 0")
    beside(lambda: assigned.log(*[f"line {number}." for number in range(200, 300)], offset=200))
    expect(page.get_by_text("line 299.")).to_be_attached()
    expect(page.get_by_text("line 299.")).not_to_be_in_viewport()
    assert page.evaluate("scrollY") == 0


def test_the_line_of_a_link_is_opened_wherever_it_is(page: Page, world: Playground, beside: Beside) -> None:
    assigned = beside(lambda: begin(world))
    lines = ["##[group]Early", *[f"line {number}." for number in range(5000)]]
    beside(lambda: (assigned.log(*lines), assigned.complete("success")))
    address = beside(lambda: assigned.job.get_absolute_url())
    sign_in(page)
    page.goto(f"{address}#L42")
    expect(page.get_by_text("line 40.", exact=True)).to_be_in_viewport()
    assert page.url.endswith("?line=42#L42")


def test_a_server_that_is_away_for_a_moment_loses_no_line(live_server: Any, world: Playground, beside: Beside) -> None:
    assigned = beside(lambda: begin(world))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_context(base_url=live_server.url).new_page()
        page.set_default_timeout(60_000)
        sign_in(page)
        address = beside(lambda: assigned.job.get_absolute_url())
        page.route("**/log/?*", lambda route: route.abort(), times=1)
        with page.expect_event("requestfailed"):
            page.goto(address)
        with page.expect_event("response", lambda response: response.status == 502):
            page.route("**/log/?*", lambda route: route.fulfill(status=502, body="away"), times=1)
        beside(lambda: assigned.log("here again"))
        expect(page.get_by_text("here again")).to_be_visible()
        assert page.get_by_text("here again").count() == 1
        browser.close()


def test_everything_is_there_without_scripts(live_server: Any, world: Playground, beside: Beside) -> None:
    assigned = beside(lambda: begin(world))
    beside(lambda: assigned.log("first words"))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_context(base_url=live_server.url, java_script_enabled=False).new_page()
        page.set_default_timeout(60_000)
        sign_in(page)
        page.goto(beside(lambda: assigned.job.get_absolute_url()))
        expect(page.get_by_text("first words")).to_be_visible()
        beside(lambda: assigned.log("later words", offset=1))
        expect(page.get_by_text("later words")).to_be_visible()  # the page loads itself anew
        page.get_by_role("button", name="Cancel run").click()
        expect(page.get_by_role("button", name="Force cancel", exact=True)).to_be_visible()
        browser.close()
