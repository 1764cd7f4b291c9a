"""What does the page of one runner set tell of it, and of its runners?"""

import re
from datetime import timedelta
from html.parser import HTMLParser
from typing import Any

import psycopg
import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from ci.lifecycle import set_waiting
from ci.lifecycle.leading import SCALER_LOCK
from ci.models import Job, LaunchAttempt, Runner, RunnerSet, RunnerSetSample
from ci.scaling.launchers.protocol import TransientLaunchError
from tests.playground import Playground
from tests.scaling.world import World

NASTY = "<script>alert('x')</script>"


@pytest.fixture
def world(playground: Playground) -> World:
    return World(playground)


@pytest.fixture
def led(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where a scaler runs; the one of these tests leads nothing."""
    monkeypatch.setattr(set_waiting, "has_leader", lambda lock: True)


def address(world: World, end: str = "") -> str:
    return f"/alice/widgets/settings/runners/sets/{world.set.pk}/{end}"


def make(world: World, **fields: Any) -> RunnerSet:
    return world.make_set(repository=world.playground.repository, **fields)


def text_of(client: Client, world: World, end: str = "") -> str:
    """The page's words without its tags, one space between them."""
    response = client.get(address(world, end))
    assert response.status_code == 200
    return re.sub(r"\s+", " ", re.sub("<[^>]*>", " ", response.content.decode()))


def why(client: Client, world: World) -> str:
    found = re.search(r"Now (?:Running|Troubled|Parked|Deleting) (.*?) Queued jobs", text_of(client, world))
    assert found
    return found[1]


def test_it_says_that_no_scaler_runs_until_one_leads(alice: Client, world: World) -> None:
    make(world)
    assert "No scaler is running" in why(alice, world)
    parameters = connection.get_connection_params()
    names = ("host", "port", "dbname", "user", "password")
    with psycopg.connect(**{name: parameters[name] for name in names if parameters.get(name)}) as leader:
        leader.execute("SELECT pg_advisory_lock(%s)", [SCALER_LOCK])
        assert why(alice, world) == "No job that fits it is waiting."


@pytest.mark.usefixtures("led")
def test_it_says_why_nothing_starts_or_what_does(alice: Client, world: World) -> None:
    make(world, maximum=1)
    assert why(alice, world) == "No job that fits it is waiting."
    world.queue(3)
    assert why(alice, world) == "3 jobs wait: runners for them are about to start."
    world.decide()
    assert why(alice, world) == "Its maximum of 1 runner is reached; 3 jobs wait."
    world.edit(maximum=2)
    world.decide()
    world.edit(maximum=5)
    assert why(alice, world) == "2 runners are starting for 3 waiting jobs."
    world.scale()
    world.poll_all()
    assert why(alice, world) == "Every job that fits it has a runner."
    world.edit(maximum=0)
    assert why(alice, world) == "Its maximum is 0, so it starts no runner."


@pytest.mark.usefixtures("led")
def test_it_names_the_limit_of_a_repository(alice: Client, world: World) -> None:
    make(world, maximum_per_repository=1)
    world.queue(3)
    world.scale()
    world.poll_all()
    assert why(alice, world) == "2 jobs wait because their repository may have only 1 at once here."


@pytest.mark.usefixtures("led")
def test_it_says_until_when_the_next_launch_waits(alice: Client, world: World) -> None:
    make(world)
    world.queue(1)
    world.scale()
    (runner,) = world.runners
    world.exit(runner, 3, "broken image")
    world.scale()
    runner.refresh_from_db()
    assert runner.next_attempt_at
    said = why(alice, world)
    assert said.startswith(f"The next launch waits until {timezone.localtime(runner.next_attempt_at):%H:%M:%S}")
    assert "broken image" in said
    assert "Waits to try again" in text_of(alice, world)


@pytest.mark.usefixtures("led")
def test_a_troubled_set_says_why_and_until_when(alice: Client, world: World) -> None:
    make(world)
    until = timezone.now() + timedelta(minutes=5)
    RunnerSet.objects.update(troubled_until=until, trouble=f"no such image {NASTY}")
    text = text_of(alice, world)
    assert f"This set is troubled. Its runners keep failing, so until {timezone.localtime(until):%H:%M:%S}" in text
    assert "tries one at a time. Last: no such image &lt;script&gt;" in text
    assert NASTY not in alice.get(address(world)).content.decode()


def test_a_parked_set_has_a_button_that_recovers_it(alice: Client, world: World) -> None:
    make(world)
    RunnerSet.objects.update(phase="outdated", parked_at=timezone.now())
    page = alice.get(address(world)).content.decode()
    assert "This set is parked" in page
    assert f'action="{address(world, "recover/")}"' in page
    said = alice.post(address(world, "recover/"), {"version": "0"}, follow=True).content.decode()
    assert "starts runners again" in said
    assert "This set is parked" not in said
    assert world.refreshed().phase == "running"


def test_a_set_that_is_deleted_says_what_it_waits_for(alice: Client, world: World) -> None:
    make(world, minimum=1)
    world.busy()
    world.scale()
    assert world.taking_room == 2
    alice.post(address(world, "delete/"), {"version": str(world.refreshed().version)})
    text = text_of(alice, world)
    assert "It waits for 1 runner with a job, then for 2 processes to end" in text
    assert "waits for 1 runner with a job and 1 process to end." in text
    assert "Delete by force" in text
    assert " Edit " not in text


def test_n_of_m_are_on_the_new_revision(alice: Client, world: World) -> None:
    make(world, minimum=1)
    world.busy()
    world.scale()
    world.poll_all()
    assert "on the new revision" not in text_of(alice, world)
    world.edit(labels=["linux", "big"])
    assert "0 of 2 on the new revision" in text_of(alice, world)
    world.scale()
    assert "1 of 2 on the new revision" in text_of(alice, world)


def test_each_runner_has_its_timeline(alice: Client, world: World) -> None:
    make(world)
    world.busy()
    page = text_of(alice, world)
    names = re.findall(r"(Queued|Made|Launched|Registered|Assigned|Started|Job ended|Ended) \d\d:\d\d:\d\d", page)
    assert names == ["Queued", "Made", "Launched", "Registered", "Assigned", "Started"]
    assert "Job ended – → Ended –" in page.replace(" Ended –", " → Ended –")
    world.assigned.complete()
    (runner,) = Runner.objects.all()
    world.exit(runner, 0)
    world.scale()
    page = text_of(alice, world)
    assert re.search(r"Job ended \d\d:\d\d:\d\d \+\d+s Ended \d\d:\d\d:\d\d", page)
    assert "Succeeded" in page
    assert "has ended. · exit code 0" in page
    assert Job.objects.get().get_absolute_url() in alice.get(address(world)).content.decode()


def test_moments_have_the_time_between_them(alice: Client, world: World) -> None:
    make(world)
    world.busy()
    now = timezone.now()
    ago = {name: now - timedelta(seconds=seconds) for name, seconds in (("queued", 100), ("made", 98), ("up", 35))}
    Job.objects.update(queued_at=ago["queued"], assigned_at=ago["up"], started_at=now)
    Runner.objects.update(created_at=ago["made"], launched_at=ago["made"], registered_at=ago["up"])
    found = re.findall(r"(\w+) \d\d:\d\d:\d\d \+([\dms ]+?) (?=[A-Z→])", text_of(alice, world) + " Z")
    assert found[:5] == [
        ("Made", "2s"),
        ("Launched", "0s"),
        ("Registered", "1m 3s"),
        ("Assigned", "0s"),
        ("Started", "35s"),
    ]


def test_each_attempt_has_its_exit_code_and_reason(alice: Client, world: World) -> None:
    make(world)
    world.queue(1)
    world.launcher.refusals = [TransientLaunchError(f"the registry is away {NASTY}")]
    world.scale()
    world.pass_time(60)
    world.scale()
    (runner,) = world.runners
    world.exit(runner, 137, "out of memory")
    world.scale()
    page = text_of(alice, world)
    assert re.search(r"Attempt 1: [\d:]+ to [\d:]+: the registry is away &lt;script&gt;", page)
    assert re.search(r"Attempt 2: [\d:]+ to [\d:]+, exit code 137: out of memory", page)


def samples(world: World) -> None:
    now = timezone.now()
    for minutes, queued, busy, starting in ((50, 0, 0, 0), (40, 20, 0, 4), (30, 16, 4, 0), (5, 0, 0, 0)):
        RunnerSetSample.objects.create(
            runner_set=world.set,
            at=now - timedelta(minutes=minutes),
            **{"queued": queued, "busy": busy, "starting": starting, "idle": 0, "desired": busy + starting},
        )


class Drawing(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.paths: dict[str, str] = {}
        self.svg: dict[str, str | None] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "svg" and given.get("role") == "img":
            self.svg = given
        elif tag == "path" and (given.get("class") or "").startswith("chart-"):
            self.paths[given["class"] or ""] = given["d"] or ""


def test_demand_and_capacity_are_drawn_and_told(alice: Client, world: World) -> None:
    make(world, maximum=4)
    samples(world)
    drawing = Drawing()
    page = alice.get(address(world)).content.decode()
    drawing.feed(page)
    assert drawing.svg["aria-labelledby"] == "chart-title chart-desc"
    assert "at most 20 jobs were queued or running and at most 4 runners were there" in page
    kinds = ["starting", "idle", "busy", "desired", "demand", "limit"]
    assert list(drawing.paths) == [f"chart-{kind}" for kind in kinds]
    busy = [float(y) for y in re.findall(r"V([\d.]+)", drawing.paths["chart-busy"])]
    # The queue is cut at three times the maximum: 12 are the whole height of 160, and 4 a third of it.
    assert busy == [160.0, 106.7, 160.0, 160.0, 160.0]
    assert "More jobs were queued than the chart shows." in page
    assert "style=" not in page
    assert page.count("<script") == page.count("<script src=")


def test_the_chart_is_a_table_too(alice: Client, world: World) -> None:
    make(world)
    samples(world)
    page = alice.get(address(world, "?view=table")).content.decode()
    rows = re.findall(r"<tr><th scope=\"row\">.*?</tr>", page)
    assert [re.findall(r">(\d+)</td>", row) for row in rows] == [
        ["0", "0", "0", "0", "0"],
        ["16", "4", "0", "0", "4"],
        ["20", "0", "0", "4", "4"],
        ["0", "0", "0", "0", "0"],
    ]
    assert "view=table&amp;" in page or "&amp;view=table" in page  # kept by what is loaded later


def test_a_chart_without_points_says_so(alice: Client, world: World) -> None:
    make(world)
    assert "Nothing was recorded in the last hour." in text_of(alice, world)
    assert "Nothing was recorded in the last 24 hours." in text_of(alice, world, "?hours=24")
    assert "Nothing was recorded in the last hour." in text_of(alice, world, "?hours=7&page=x&view=%00")


@pytest.mark.usefixtures("led")
def test_what_changes_is_loaded_anew_and_nothing_else(alice: Client, world: World) -> None:
    make(world)
    page = alice.get(address(world)).content.decode()
    found = re.search(r'hx-get="([^"]*)" hx-trigger="every 10s"', page)
    assert found
    for _ in range(2):
        response = alice.get(found[1].replace("&amp;", "&"))
        if response.status_code == 200:  # a minute is over just now
            found = re.search(r'hx-get="([^"]*)"', response.content.decode())
            assert found
    assert response.status_code == 204
    world.queue(1)
    world.scale()
    response = alice.get(found[1].replace("&amp;", "&"))
    text = response.content.decode()
    assert response.status_code == 200
    assert 'hx-trigger="every 3s"' in text
    assert 'hx-swap-oob="innerHTML:#announce"' in text
    assert "<html" not in text
    assert "seen=" not in re.sub(r'hx-get="[^"]*"', "", text)
    again = re.search(r'hx-get="([^"]*)"', text)
    assert again
    Runner.objects.update(reason="something")
    Runner.objects.update(version=9)
    response = alice.get(again[1].replace("&amp;", "&"))
    assert response.status_code == 200
    assert "announce" not in response.content.decode()  # the sentence is the same


def test_who_looks_at_a_set_that_goes_away_is_led_to_the_list(alice: Client, world: World) -> None:
    make(world)
    page = address(world, "status/")
    RunnerSet.objects.all().delete()
    response = alice.get(page, headers={"HX-Request": "true"})
    assert response.headers["HX-Redirect"] == "/alice/widgets/settings/runners/sets/"
    assert alice.get(page).status_code == 404


def test_without_javascript_it_is_loaded_anew_while_something_goes_on(alice: Client, world: World) -> None:
    make(world)
    refresh = '<noscript><meta http-equiv="refresh" content="5"></noscript>'
    assert refresh not in alice.get(address(world)).content.decode()
    world.queue(1)
    assert refresh in alice.get(address(world)).content.decode()


def test_a_thousand_runners_cost_as_many_queries_as_one(alice: Client, world: World) -> None:
    make(world)
    world.busy()
    with CaptureQueriesContext(connection) as few:
        alice.get(address(world))
    now = timezone.now()
    made = Runner.objects.bulk_create(
        Runner(
            name=f"more-{number:04}",
            labels=["linux"],
            runner_set=world.set,
            repository=world.playground.repository,
            ephemeral=True,
            ready=False,
            created_at=now,
            launched_at=now,
            attempts=1,
        )
        for number in range(1000)
    )
    LaunchAttempt.objects.bulk_create(LaunchAttempt(runner=runner, number=1) for runner in made)
    with CaptureQueriesContext(connection) as many:
        page = alice.get(address(world)).content.decode()
    assert len(many) == len(few) <= 30
    assert "Page 1 of 41" in page
    assert page.count('<li class="life">') == 25
    assert "more-0999" in page
    assert "more-0000" in alice.get(address(world, "?page=40")).content.decode()


def test_long_and_nasty_names_are_shown_as_they_are(alice: Client, world: World) -> None:
    name = (NASTY * 4)[:100]
    make(world, name=name, labels=["linux", NASTY])
    world.queue(1)
    world.scale()
    Runner.objects.update(reason=NASTY * 10)
    for end in ("", "edit/", "delete/", "?view=table", "status/"):
        page = alice.get(address(world, end)).content.decode()
        assert NASTY not in page
        assert "&lt;script&gt;alert(" in page
    assert NASTY not in alice.get("/alice/widgets/settings/runners/sets/").content.decode()
