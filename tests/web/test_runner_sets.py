"""Who sees, makes, changes and deletes which runner sets?"""

import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from ci.lifecycle.runner_sets import save_runner_set
from ci.models import RunnerSet, Scope
from tests.playground import Playground
from tests.scaling.world import World

REPOSITORY, OWNER, INSTANCE = "/alice/widgets/settings/runners/sets/", "/settings/runners/sets/", "/runners/sets/"
GIVEN = {"name": "pool", "labels": "Linux, gpu", "minimum": "1", "maximum": "4", "launcher": "docker"}
IMAGE = '{"image": "debian:12"}'
NASTY = "<script>alert(1)</script>"


def make(playground: Playground, name: str = "pool", scope: Scope | None = None, **fields: Any) -> RunnerSet:
    scope = scope or Scope(repository=playground.repository)
    given = {"name": name, "labels": ["linux"], "maximum": 4, "owner": scope.owner, "repository": scope.repository}
    return save_runner_set(runner_set_id=None, fields=given | fields, version=None, actor=playground.operator)


@pytest.fixture
def operator(playground: Playground, browser: Any) -> Client:
    client: Client = browser(playground.operator)
    return client


def test_each_place_lists_its_own(alice: Client, operator: Client, playground: Playground) -> None:
    make(playground, "of-the-repository")
    make(playground, "of-the-owner", Scope(owner=playground.alice))
    make(playground, "of-the-instance", Scope())
    for client, address, name in (
        (alice, REPOSITORY, "of-the-repository"),
        (alice, OWNER, "of-the-owner"),
        (operator, INSTANCE, "of-the-instance"),
    ):
        text = client.get(address).content.decode()
        assert set(re.findall(r"of-the-\w+", text)) == {name}
        assert 'aria-current="page">Runner sets' in text


def test_an_empty_list_says_what_a_set_is(alice: Client, operator: Client, playground: Playground) -> None:
    assert playground.repository
    for client, address in ((alice, REPOSITORY), (alice, OWNER), (operator, INSTANCE)):
        assert "No runner sets yet" in client.get(address).content.decode()


def test_the_list_counts_the_runners_of_each(alice: Client, playground: Playground) -> None:
    world = World(playground)
    world.make_set(repository=playground.repository, minimum=1)
    world.queue(2)
    world.scale()
    world.poll(world.runners[0])
    world.poll_all()
    make(playground, "another")
    text = re.sub(r"\s+", " ", alice.get(REPOSITORY).content.decode())
    numbers = {
        name: re.findall(r'<td class="number">(\d+)', row)
        for name, row in re.findall(r'/sets/\d+/">([\w-]+)</a>(.*?)</tr>', text)
    }
    assert numbers == {"another": ["0", "0", "0", "0", "4"], "pool": ["3", "2", "1", "0", "10"]}


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({}, "Running"),
        ({"phase": "outdated", "parked_at": "2026-01-01T00:00:00Z"}, "Parked"),
        ({"phase": "deleting", "deleting_at": "2026-01-01T00:00:00Z"}, "Deleting"),
        ({"troubled_until": "2999-01-01T00:00:00Z", "trouble": "no such image"}, "Troubled"),
    ],
)
def test_every_state_has_its_word(alice: Client, playground: Playground, fields: dict[str, str], word: str) -> None:
    pool = make(playground)
    RunnerSet.objects.update(**fields)
    for address in (REPOSITORY, f"{REPOSITORY}{pool.pk}/"):
        assert f"</svg>{word}</span>" in alice.get(address).content.decode()


def test_the_list_is_paged_and_asks_as_much_for_many_as_for_one(alice: Client, playground: Playground) -> None:
    make(playground, "a")
    with CaptureQueriesContext(
        connection,
    ) as few:
        alice.get(REPOSITORY)
    RunnerSet.objects.bulk_create(
        RunnerSet(name=f"set-{number:04}", labels=["x"], repository=playground.repository) for number in range(200)
    )
    with CaptureQueriesContext(connection) as many:
        text = alice.get(REPOSITORY).content.decode()
    assert len(many) == len(few)
    assert "Page 1 of 7" in text
    assert "set-0199" in alice.get(f"{REPOSITORY}?page=7").content.decode()


def test_a_set_is_made_and_the_lists_of_its_form_are_read(alice: Client, playground: Playground) -> None:
    other = playground.make_repository(name="other")
    given = {**GIVEN, "template": IMAGE, "maximum_per_repository": "2", "repositories": "alice/widgets\nOTHER"}
    assert playground.repository
    response = alice.post(f"{OWNER}new/", given)
    made = RunnerSet.objects.get()
    assert response.headers["Location"] == f"{OWNER}{made.pk}/"
    assert made.scope == Scope(owner=playground.alice)
    assert (made.name, made.labels, made.minimum, made.maximum) == ("pool", ["gpu", "linux"], 1, 4)
    assert (made.launcher, made.template, made.maximum_per_repository) == ("docker", {"image": "debian:12"}, 2)
    assert set(made.repositories.all()) == {playground.repository, other}
    text = alice.get(f"{OWNER}{made.pk}/edit/").content.decode()
    for part in ('value="gpu, linux"', "&quot;debian:12&quot;", "alice/other\nalice/widgets", 'value="0"'):
        assert part in text


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("minimum", "5", "The minimum is above the maximum."),
        ("maximum", "10001", "less than or equal to 10000"),
        ("maximum", "", "This field is required."),
        ("maximum_per_repository", "0", "greater than or equal to 1"),
        ("labels", " , ", "Name at least one label"),
        ("labels", ",".join(f"l{n}" for n in range(60)), "At most 50 labels."),
        ("labels", "x" * 101, "100 characters"),
        ("name", "x" * 101, "at most 100 characters"),
        ("template", "{", "This is not JSON: Expecting property name enclosed in double quotes, line 1, column 2."),
        ("template", "[1]", "This must be a JSON object"),
        ("template", "", "&#x27;image&#x27; is missing"),
        ("template", '{"image": "x", "memory": NaN}', "NaN is no number of JSON"),
        ("template", '{"image": "x", "colour": "\\u0000"}', "This cannot be kept"),
        ("template", "[" * 40_000, "nested too deep"),
        ("template", '{"image": "x", "privileged": true}', "privileged container"),
        (
            "template",
            '{"image": "x", "mounts": [{"type": "bind", "source": "/", "target": "/h"}]}',
            "mount of type bind",
        ),
        ("launcher", "rocket", "Select a valid choice"),
        ("launcher", "local", "Only an administrator of the instance"),
        ("repositories", "bob/secret", "There is no repository bob/secret here."),
        ("repositories", NASTY, "There is no repository &lt;script&gt;"),
    ],
)
def test_what_is_wrong_is_said_at_its_field(
    alice: Client, playground: Playground, field: str, value: str, said: str
) -> None:
    assert playground.repository
    given = {**GIVEN, "template": IMAGE} | {field: value}
    if field == "launcher":
        given["template"] = "{}"
    response = alice.post(f"{OWNER}new/", given)
    assert response.status_code == 422
    error = re.search(f'id="id_{field}_error">(.*?)</div>', response.content.decode(), re.DOTALL)
    assert error
    assert said in error[1]
    assert NASTY not in response.content.decode()
    assert not RunnerSet.objects.exists()


def test_a_name_is_used_once_in_a_place(alice: Client, playground: Playground) -> None:
    make(playground)
    response = alice.post(f"{REPOSITORY}new/", {**GIVEN, "template": IMAGE})
    assert response.status_code == 422
    assert "There is a runner set of this name already." in response.content.decode()
    assert RunnerSet.objects.count() == 1


def test_local_processes_are_shown_as_not_available_and_why(
    alice: Client, operator: Client, playground: Playground
) -> None:
    assert playground.repository
    text = alice.get(f"{REPOSITORY}new/").content.decode()
    assert re.search(r'<option value="local"[^>]*disabled[^>]*>Local process \(not available\)', text)
    assert "their jobs run as the server&#x27;s own user" in text
    text = operator.get(f"{INSTANCE}new/").content.decode()
    assert re.search(r'<option value="local"[^>]*selected[^>]*>Local process<', text)
    operator.post(f"{INSTANCE}new/", {**GIVEN, "launcher": "local"})
    assert RunnerSet.objects.get().launcher == "local"


def test_an_owner_changes_the_numbers_of_a_local_set_that_an_administrator_made(
    alice: Client, playground: Playground
) -> None:
    pool = make(playground, template={"nice": 5})
    page = f"{REPOSITORY}{pool.pk}/edit/"
    given = {**GIVEN, "launcher": "local", "template": '{"nice": 5}', "version": "0"}
    assert alice.post(page, {**given, "maximum": "2"}).status_code == 302
    pool.refresh_from_db()
    assert (pool.maximum, pool.launcher) == (2, "local")
    response = alice.post(page, {**given, "template": '{"nice": 0}', "version": str(pool.version)})
    assert response.status_code == 422
    assert "Only an administrator of the instance" in response.content.decode()
    pool.refresh_from_db()
    assert pool.template == {"nice": 5}


def test_an_old_page_changes_nothing_and_says_so(alice: Client, playground: Playground) -> None:
    pool = make(playground, launcher="docker", template={"image": "debian:12"})
    page = f"{REPOSITORY}{pool.pk}/edit/"
    assert 'name="version" value="0"' in alice.get(page).content.decode()
    save_runner_set(runner_set_id=pool.pk, fields={"maximum": 9}, version=0, actor=playground.alice)
    for _ in range(2):  # sending it once more is no way around
        response = alice.post(page, {**GIVEN, "template": IMAGE, "version": "0"})
        assert response.status_code == 409
        text = response.content.decode()
        assert "Nothing is saved. pool has changed meanwhile" in text
        assert 'name="version" value="0"' in text
        assert 'value="Linux, gpu"' in text  # what was written is still there
    pool.refresh_from_db()
    assert (pool.maximum, pool.minimum) == (9, 0)


@pytest.mark.parametrize("version", [None, "x", "-1"])
def test_a_form_without_its_version_is_a_bad_request(
    alice: Client, playground: Playground, version: str | None
) -> None:
    pool = make(playground)
    given = GIVEN if version is None else {**GIVEN, "version": version}
    for verb in ("edit", "delete", "recover"):
        assert alice.post(f"{REPOSITORY}{pool.pk}/{verb}/", given).status_code == 400
    pool.refresh_from_db()
    assert (pool.version, pool.phase) == (0, "running")


def test_a_set_is_deleted_after_it_was_asked_for(alice: Client, playground: Playground) -> None:
    pool = make(playground)
    page = f"{REPOSITORY}{pool.pk}/delete/"
    text = alice.get(page).content.decode()
    assert "Delete the runner set pool?" in text
    assert "None of its runners has a job." in text
    response = alice.post(page, {"version": "0"}, follow=True)
    text = response.content.decode()
    assert "being deleted: its busy runners end their jobs first" in text
    pool.refresh_from_db()
    assert pool.phase == "deleting"
    text = alice.post(page, {"version": str(pool.version)}, follow=True).content.decode()
    assert "pool is being deleted already." in text


def test_a_set_is_deleted_by_force(alice: Client, playground: Playground) -> None:
    world = World(playground)
    world.make_set(repository=playground.repository)
    world.busy()
    page = f"{REPOSITORY}{world.set.pk}/delete/"
    assert "1 of its runners has a job: it may end it first" in alice.get(page).content.decode()
    given = {"version": str(world.refreshed().version), "force": "on"}
    assert "its jobs have lost their runners" in alice.post(page, given, follow=True).content.decode()
    assert world.assigned.job.state != "running"


def test_an_old_page_deletes_and_recovers_nothing(alice: Client, playground: Playground) -> None:
    pool = make(playground)
    RunnerSet.objects.update(phase="outdated", parked_at="2026-01-01T00:00:00Z", version=3)
    for verb in ("delete", "recover"):
        text = alice.post(f"{REPOSITORY}{pool.pk}/{verb}/", {"version": "2"}, follow=True).content.decode()
        assert "has changed meanwhile" in text
    pool.refresh_from_db()
    assert (pool.phase, pool.version) == ("outdated", 3)


ENDS = ["", "new/", "{}/", "{}/status/", "{}/edit/", "{}/delete/"]


@pytest.mark.parametrize("end", ENDS)
def test_strangers_see_no_set_and_readers_may_not(playground: Playground, browser: Any, end: str) -> None:
    pool = make(playground)
    address = REPOSITORY + end.format(pool.pk)
    for who, status in (
        (None, 404),
        (playground.mallory, 404),
        (playground.bob, 403),
        (playground.carol, 403),
        (playground.alice, 200),
    ):
        assert browser(who).get(address).status_code == status


def test_only_operators_see_the_instances_sets(alice: Client, playground: Playground, browser: Any) -> None:
    pool = make(playground, scope=Scope())
    for end in ENDS:
        address = INSTANCE + end.format(pool.pk)
        assert alice.get(address).status_code == 403
        assert browser(None).get(address).headers["Location"] == f"/login/?next={address}"
    assert browser(None).get(OWNER).headers["Location"].startswith("/login/")


def test_verbs_are_for_those_who_administer_the_place(playground: Playground, browser: Any) -> None:
    pool = make(playground)
    RunnerSet.objects.update(phase="outdated", parked_at="2026-01-01T00:00:00Z")
    for who, status in ((playground.mallory, 404), (playground.bob, 403)):
        for verb in ("edit", "delete", "recover"):
            given = {**GIVEN, "template": IMAGE, "version": "0"}
            assert browser(who).post(f"{REPOSITORY}{pool.pk}/{verb}/", given).status_code == status
        assert browser(who).post(f"{REPOSITORY}new/", {**GIVEN, "template": IMAGE}).status_code == status
    pool.refresh_from_db()
    assert (pool.phase, pool.version) == ("outdated", 0)
    assert RunnerSet.objects.count() == 1


def test_a_set_is_reached_only_in_its_own_place(alice: Client, operator: Client, playground: Playground) -> None:
    here, mine, everywhere = (
        make(playground, "a"),
        make(playground, "b", Scope(owner=playground.alice)),
        make(playground, "c", Scope()),
    )
    wrong = [(alice, REPOSITORY, mine), (alice, OWNER, here), (alice, OWNER, everywhere), (operator, INSTANCE, here)]
    for client, address, one in wrong:
        for end in ENDS[2:]:
            assert client.get(address + end.format(one.pk)).status_code == 404
        assert client.post(f"{address}{one.pk}/delete/", {"version": "0"}).status_code == 404
    assert alice.get(f"{REPOSITORY}{10**30}/").status_code == 404
    assert set(RunnerSet.objects.values_list("phase", flat=True)) == {"running"}
