"""Does the docs page draw itself in a real browser, under the site's own Content-Security-Policy?"""

import shutil

import pytest
from playwright.sync_api import sync_playwright

from tests.api.server import Server

CHROMIUM = shutil.which("chromium")


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's chromium")
def test_the_docs_page_draws_itself_and_breaks_no_policy(committing_playground, tmp_path):
    playground = committing_playground
    playground.repository  # noqa: B018 - something to show
    problems = []
    with Server(tmp_path / "log") as server, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        page.set_default_timeout(60_000)
        page.on("console", lambda said: problems.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto(f"{server.url}/api/docs/")
        page.get_by_text("Register a runner").wait_for()
        assert page.locator(".opblock").count() > 60
        fetch = page.locator("#operations-runner_API-fetch_job")
        fetch.click()
        fetch.locator(".opblock-body").get_by_text("poll_id").first.wait_for()
        page.screenshot(path=str(tmp_path / "docs.png"))
        browser.close()
    assert problems == []
