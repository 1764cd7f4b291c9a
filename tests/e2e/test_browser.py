"""Can a person do the main job in a real browser: watch, cancel, run again; with a keyboard, and without JavaScript?"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Response, expect, sync_playwright

from tests.e2e.conftest import NewProject
from tests.e2e.people import Person
from tests.e2e.product import Product
from tests.e2e.projects import Project, Run

CHROMIUM = shutil.which("chromium")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PATIENCE = 120_000  # milliseconds; the demo's run may still be waiting for a busy machine
LIVE = """
name: Live
on: workflow_dispatch
jobs:
  ticking:
    runs-on: ubuntu-latest
    steps:
      - name: tick
        run: |
          for i in $(seq 1 6000); do echo "tick $i at $(date +%s%3N)"; sleep 0.2; done
      - name: tidy up
        if: always()
        run: echo "tidied up"
"""
FLAKY = """
name: Flaky
on: workflow_dispatch
jobs:
  solid:
    runs-on: ubuntu-latest
    steps:
      - run: echo solid
  flaky:
    runs-on: ubuntu-latest
    steps:
      - run: echo "attempt $GITHUB_RUN_ATTEMPT" && test "$GITHUB_RUN_ATTEMPT" -gt 1
"""

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed (Debian's package of that name)"),
]


@pytest.fixture(scope="module")
def chromium(product: Product) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def project(new_project: NewProject) -> Project:
    made = new_project("watched")
    made.start({".github/workflows/live.yml": LIVE, ".github/workflows/flaky.yml": FLAKY, "README.md": "# Watched\n"})
    return made


class Complaints:
    """What the browser complains about while it shows our pages: scripts, policies, missing or broken answers."""

    def __init__(self) -> None:
        self.all: list[str] = []

    def listen(self, page: Page) -> None:
        page.on("console", self._said)
        page.on("pageerror", lambda error: self.all.append(f"{page.url}: {error}"))
        page.on("response", self._answered)

    def _said(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.all.append(f"{message.page.url if message.page else ''}: {message.text}")

    def _answered(self, response: Response) -> None:
        if response.status >= 400:
            self.all.append(f"{response.status} {response.url}")


Open = Callable[..., Page]


@pytest.fixture
def open_page(chromium: Browser, product: Product) -> Iterator[Open]:
    """A new browser with one page, signed in by the form as the person given. Nothing may be complained about."""
    contexts: list[BrowserContext] = []
    complaints = Complaints()

    def start(person: Person | None = None, path: str = "/", **options: object) -> Page:
        context = chromium.new_context(base_url=product.url, **options)  # type: ignore[arg-type]
        context.set_default_timeout(PATIENCE)
        contexts.append(context)
        page = context.new_page()
        complaints.listen(page)
        if person is None:
            page.goto(path)
            return page
        page.goto(f"/login/?next={path}")
        page.get_by_label("Username").fill(person.name)
        page.get_by_label("Password").fill(person.password)
        page.get_by_role("main").get_by_role("button", name="Sign in").click()
        page.wait_for_url(f"**{path}")
        return page

    expect.set_options(timeout=PATIENCE)
    yield start
    for context in contexts:
        context.close()
    assert complaints.all == []


def job_path(run: Run, name: str) -> str:
    return f"{run.path}jobs/{run.jobs()[name]['id']}/"


def newest_tick(page: Page) -> int:
    return max(map(int, re.findall(r"tick (\d+) at", page.locator("#steps").inner_text())), default=0)


def test_the_administrator_signs_in_with_the_printed_password_and_opens_the_demo_run(
    open_page: Open, admin: Person
) -> None:
    page = open_page(admin)
    page.get_by_role("main").get_by_role("link", name=re.compile("demo")).first.click()
    page.get_by_role("link", name="Actions", exact=True).click()
    page.get_by_role("main").get_by_role("link", name="Greet people in three languages").first.click()
    expect(page.locator("#run-state")).to_contain_text("Success")
    page.locator("#jobs").get_by_role("link").nth(1).click()
    expect(page.locator("#job-state")).to_contain_text("Success")
    expect(page.locator("#steps")).to_contain_text("Set up job")
    expect(page).to_have_title(re.compile("demo"))


def test_lines_arrive_live_and_a_cancel_ends_the_job_in_the_persons_name(
    open_page: Open, alice: Person, project: Project
) -> None:
    run = project.dispatch("live.yml")
    run.wait_for_job("ticking", "running")
    page = open_page(alice, job_path(run, "ticking"))
    page.evaluate("window.neverLoadedAgain = true")
    expect(page.locator("#steps")).to_contain_text("tick 5 at")
    first = newest_tick(page)
    expect(page.locator("#steps")).to_contain_text(f"tick {first + 10} at")
    assert best_delay(page, enough=2000) < 2000, "no line was on the page within two seconds"
    assert run.jobs()["ticking"]["state"] == "running"
    page.get_by_role("button", name="Cancel job").click()
    expect(page.locator("#job-notes")).to_contain_text(re.compile("Asked to stop .* by alice|Cancelled by alice"))
    page.evaluate("window.neverLoadedAgain = true")
    expect(page.locator("#job-notes")).to_contain_text("Cancelled by alice.")
    expect(page.locator("#job-state")).to_contain_text("Cancelled")
    expect(page.locator("#steps")).to_contain_text("tidied up")
    expect(page.locator("#run-state")).to_contain_text("Cancelled")
    assert page.evaluate("window.neverLoadedAgain"), "the page was loaded again"
    run.wait("cancelled")


def best_delay(page: Page, *, enough: float) -> float:
    """Milliseconds from writing a line to showing it, of the first that takes less than `enough`; while the machine is
    busy others take longer. After a minute without one, of the best."""
    return page.evaluate(
        """enough => new Promise(resolve => {
          const delays = [];
          const look = new MutationObserver(changes => {
            for (const change of changes) for (const node of change.addedNodes) {
              const found = [...(node.textContent || '').matchAll(/tick \\d+ at (\\d{13})/g)].pop();
              if (found) delays.push(Date.now() - Number(found[1]));
            }
            if (Math.min(...delays) < enough) { look.disconnect(); resolve(Math.min(...delays)); }
          });
          look.observe(document.getElementById('steps'), {childList: true, subtree: true});
          setTimeout(() => resolve(Math.min(1e9, ...delays)), 60000);
        })""",
        enough,
    )


def test_a_run_is_cancelled_from_its_page(open_page: Open, alice: Person, project: Project) -> None:
    run = project.dispatch("live.yml")
    run.wait_for_line("ticking", "\ntick 1 at")
    page = open_page(alice, run.path)
    page.get_by_role("button", name="Cancel run").click()
    expect(page.locator("#run-state")).to_contain_text(re.compile("Cancell(ing|ed)"))
    page.evaluate("window.neverLoadedAgain = true")
    expect(page.locator("#run-state")).to_contain_text("Cancelled")
    expect(page.locator("#summary").get_by_text("Cancelled by alice.").first).to_be_visible()
    assert page.evaluate("window.neverLoadedAgain"), "the page was loaded again"


def test_failed_jobs_run_again_and_the_others_do_not(open_page: Open, alice: Person, project: Project) -> None:
    run = project.dispatch("flaky.yml").wait("failure")
    page = open_page(alice, run.path)
    expect(page.get_by_role("region", name="Failed jobs")).to_contain_text("flaky")
    page.get_by_role("button", name="Re-run failed jobs").click()
    expect(page.locator("#run-state")).to_contain_text("attempt 2 by alice")
    expect(page.locator("#run-state")).to_contain_text("Success")
    page.locator("#jobs").get_by_role("link", name="solid").click()
    expect(page.get_by_role("link", name="ran in attempt 1")).to_be_visible()
    page.get_by_role("navigation", name="Attempts").get_by_role("link", name="1").click()
    expect(page.locator("#run-state")).to_contain_text("Failure")
    assert run.state()["attempt"] == 2


def test_without_javascript_the_log_is_there_and_cancel_works(open_page: Open, alice: Person, project: Project) -> None:
    run = project.dispatch("live.yml")
    run.wait_for_line("ticking", "\ntick 1 at")
    page = open_page(alice, job_path(run, "ticking"), java_script_enabled=False)
    expect(page.locator("#steps")).to_contain_text("tick 1 at")
    page.get_by_role("button", name="Cancel job").click()
    run.wait("cancelled")
    page.goto(job_path(run, "ticking"))
    expect(page.get_by_text("Cancelled by alice.")).to_be_visible()
    page.goto(f"{run.path}")
    page.get_by_role("button", name="Re-run all jobs").click()
    expect(page.locator("#run-state")).to_contain_text("attempt 2")
    run.cancel()
    run.wait("cancelled")


def test_the_keyboard_reaches_the_content_first_and_opens_steps(
    open_page: Open, alice: Person, project: Project
) -> None:
    run = project.dispatch("flaky.yml").wait("failure")
    page = open_page(alice, job_path(run, "solid"))
    page.keyboard.press("Tab")
    skip = page.get_by_role("link", name="Skip to content")
    expect(skip).to_be_focused()
    expect(skip).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(page.locator("main#content")).to_be_focused()
    summary = page.locator("#step-1 > summary")
    for _ in range(60):
        page.keyboard.press("Tab")
        if summary.evaluate("element => element === document.activeElement"):
            break
    expect(summary).to_be_focused()
    assert page.locator("#step-1").get_attribute("open") is None
    outline = summary.evaluate(
        "element => { const s = getComputedStyle(element); return s.outlineStyle + s.boxShadow }"
    )
    assert outline != "nonenone", "the focus cannot be seen"
    page.keyboard.press("Enter")
    expect(page.locator("#step-1-lines")).to_be_visible()


def test_no_page_makes_the_browser_complain(open_page: Open, admin: Person, project: Project) -> None:
    run = project.dispatch("flaky.yml").wait("failure")
    page = open_page(admin, "/")
    demo = f"/{admin.name}/demo"
    repository = f"/{project.name}"
    sha = project.tree.git("rev-parse", "HEAD")
    paths = [
        *("/", "/new/", "/settings/tokens/", "/settings/runners/", "/settings/secrets/", "/settings/variables/"),
        *(
            "/runners/",
            f"/{admin.name}/",
            "/api/docs/",
            "/admin/",
            "/admin/ci/run/",
            "/admin/ci/job/",
            "/admin/ci/runner/",
        ),
        *(f"/admin/ci/run/{run.id}/change/", f"/admin/ci/job/{run.jobs()['flaky']['id']}/change/"),
        *(
            f"{repository}/{rest}"
            for rest in ("", "tree/main/.github", "blob/main/README.md", "commits/main", "branches/")
        ),
        *(f"{repository}/{rest}" for rest in (f"commit/{sha}/", "settings/", "settings/members/", "settings/runners/")),
        *(f"{repository}/settings/{rest}/" for rest in ("secrets", "variables")),
        *(f"{repository}/actions/{rest}" for rest in ("", "workflows/live.yml/", "workflows/flaky.yml/badge.svg")),
        *(run.path, f"{run.path}events/", job_path(run, "flaky"), f"{job_path(run, 'flaky')}?timestamps=1"),
        *(f"{demo}/", f"{demo}/actions/"),
    ]
    for path in paths:
        answer = page.goto(path)
        assert answer is not None and answer.ok, f"{path}: {answer and answer.status}"
        # What is too wide for a phone scrolls in its own box.
        if not path.startswith(("/admin/", "/api/")):
            page.set_viewport_size({"width": 390, "height": 800})
            assert page.evaluate("document.documentElement.scrollWidth") <= 390, f"{path} is too wide for a phone"
            page.set_viewport_size({"width": 1280, "height": 800})
    page.goto("/api/docs/")
    expect(page.get_by_text("/api/runner/v1/jobs/fetch").first).to_be_visible()
