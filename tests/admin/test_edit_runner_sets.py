"""Can the operator describe runner sets, without undoing what another did meanwhile?"""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.utils import timezone

from ci.lifecycle.errors import Conflict, InvalidInput
from ci.lifecycle.runner_sets import save_runner_set
from ci.models import Event, Job, RunnerSet
from ci.scaling.launchers.protocol import TransientLaunchError
from tests.admin.conftest import Operator, told
from tests.scaling.world import World

FIELDS = {"name": "pool", "labels": "Linux, x64", "minimum": "0", "maximum": "3", "launcher": "local", "template": "{}"}
ADD = "/admin/ci/runnerset/add/"


@pytest.fixture
def pool(playground):
    fields = {"name": "pool", "labels": ["linux"], "minimum": 0, "maximum": 3}
    return save_runner_set(runner_set_id=None, fields=fields, version=None, actor=playground.operator)


@pytest.fixture
def world(playground):
    return World(playground)


def _form(operator, runner_set):
    page = operator.opened(runner_set)
    form = page.context["adminform"].form
    fields = {name: form[name].value() for name in form.fields}
    fields = {name: "" if value is None else value for name, value in fields.items()}
    fields["labels"] = ",".join(runner_set.labels)
    fields["repositories"] = ",".join(str(row.pk) for row in runner_set.repositories.order_by("pk"))
    for inline in page.context["inline_admin_formsets"]:
        rows = inline.formset.management_form
        fields |= {rows.add_prefix(name): rows[name].value() for name in rows.fields}
    return fields


def _change(operator, runner_set, fields):
    return operator.post(f"/admin/ci/runnerset/{runner_set.pk}/change/", fields, follow=True)


def test_it_is_made_with_an_event(playground, operator):
    assert operator.post(ADD, FIELDS).status_code == 302
    made = RunnerSet.objects.get()
    assert (made.name, made.labels, made.maximum, made.spec_revision) == ("pool", ["linux", "x64"], 3, 1)
    event = Event.objects.get(runner_set=made)
    assert (event.kind, event.actor) == ("runner_set_created", playground.operator)


@pytest.mark.parametrize(
    "wrong",
    [
        {"labels": ""},
        {"name": ""},
        {"minimum": "4"},
        {"minimum": "-1"},
        {"maximum": "10001"},
        {"template": "[1]"},
        {"template": "{"},
        {"launcher": "rocket"},
        {"labels": "x" * 101},
    ],
)
def test_wrong_input_makes_nothing(playground, operator, wrong):
    answer = operator.post(ADD, {**FIELDS, **wrong}, follow=True)
    assert answer.status_code == 200
    assert "errornote" in answer.content.decode() or "Nothing was changed" in answer.content.decode()
    assert not RunnerSet.objects.exists()


def test_a_change_counts_the_version_and_of_the_spec_the_revision(operator, pool):
    _change(operator, pool, {**_form(operator, pool), "maximum": "5"})
    pool.refresh_from_db()
    assert (pool.maximum, pool.version, pool.spec_revision) == (5, 1, 1)
    _change(operator, pool, {**_form(operator, pool), "labels": "linux,gpu"})
    pool.refresh_from_db()
    assert (pool.labels, pool.version, pool.spec_revision) == (["gpu", "linux"], 2, 2)
    assert Event.objects.filter(runner_set=pool, detail="Changed: labels.").exists()


def test_saving_without_a_change_writes_nothing(operator, pool):
    _change(operator, pool, _form(operator, pool))
    pool.refresh_from_db()
    assert pool.version == 0
    assert Event.objects.filter(runner_set=pool).count() == 1


def test_a_form_filled_on_an_older_version_changes_nothing_and_says_so(operator, pool):
    old = _form(operator, pool)
    _change(operator, pool, {**old, "maximum": "5"})
    answer = _change(operator, pool, {**old, "maximum": "9"})
    assert told(answer) == ["Nothing was changed. pool has changed meanwhile: look again, then decide."]
    pool.refresh_from_db()
    assert pool.maximum == 5
    assert Event.objects.filter(runner_set=pool, kind="runner_set_changed").count() == 1


def test_a_form_without_its_version_changes_nothing(operator, pool):
    fields = _form(operator, pool)
    del fields["version"]
    assert "Nothing was changed" in told(_change(operator, pool, {**fields, "maximum": "9"}))[0]
    pool.refresh_from_db()
    assert pool.maximum == 3


def test_of_many_who_save_the_same_version_at_once_one_wins(committing_playground):
    operator = committing_playground.operator
    fields = {"name": "pool", "labels": ["linux"], "maximum": 3}
    pool = save_runner_set(runner_set_id=None, fields=fields, version=None, actor=operator)
    together = threading.Barrier(8)

    def save(maximum: int) -> bool:
        try:
            together.wait(timeout=60)
            save_runner_set(runner_set_id=pool.pk, fields={"maximum": maximum}, version=0, actor=operator)
        except Conflict:
            return False
        finally:
            connection.close()
        return True

    with ThreadPoolExecutor(8) as threads:
        won = list(threads.map(save, range(10, 18)))
    assert won.count(True) == 1
    pool.refresh_from_db()
    assert (pool.maximum, pool.version) == (10 + won.index(True), 1)
    assert Event.objects.filter(runner_set=pool, kind="runner_set_changed").count() == 1


def test_only_the_actions_delete_a_set(operator, pool):
    """Its runners go first; the admin's own deletion would not wait for them."""
    assert operator.post(f"/admin/ci/runnerset/{pool.pk}/delete/", {"post": "yes"}).status_code == 403
    assert "delete_selected" not in operator.listed(RunnerSet).content.decode()
    assert RunnerSet.objects.get().phase == "running"


def test_a_set_is_deleted_in_order_and_by_force(operator, world):
    world.make_set(maximum=2)
    world.busy()
    assert operator.act("delete_in_order", world.set) == ["pool: its runners are being ended, then it is deleted"]
    assert operator.act("delete_in_order", world.set) == ["pool: is being deleted already."]
    world.scale()
    assert Job.objects.get().state == "running"
    assert operator.act("delete_by_force", world.set) == ["pool: its runners are being ended, then it is deleted"]
    assert Job.objects.get().conclusion == "failure"
    world.look(2)
    assert not RunnerSet.objects.exists()
    assert Event.objects.get(kind="runner_set_deleting").actor_name == "operator"


@pytest.mark.parametrize("action", ["delete_in_order", "delete_by_force", "recover"])
def test_an_action_chosen_on_an_older_page_changes_nothing(operator, world, action):
    world.make_set()
    RunnerSet.objects.update(phase="outdated", parked_at=timezone.now())
    page = operator.listed(RunnerSet)
    world.edit(maximum=5)
    assert operator.act(action, world.set, page=page) == ["pool: has changed meanwhile: look again, then decide."]
    assert RunnerSet.objects.get().phase == "outdated"


def test_a_parked_set_is_recovered(operator, world):
    world.make_set()
    assert operator.act("recover", world.set) == ["pool: is not parked."]
    RunnerSet.objects.update(phase="outdated", parked_at=timezone.now())
    assert operator.act("recover", world.set) == ["pool: starts runners again"]
    assert (world.refreshed().phase, world.set.spec_revision) == ("running", 2)


def test_the_list_says_what_each_set_does(operator, world):
    world.make_set(minimum=1, maximum=3)
    world.queue(1)
    world.scale()
    world.poll_all()
    row = operator.listed(RunnerSet).context["cl"].result_list[0]
    assert (row.desired, row.assigned, row.busy, row.idle, row.starting, row.leaving) == (2, 1, 1, 1, 0, 0)
    assert operator.listed(RunnerSet, trouble="yes").context["cl"].result_count == 0
    RunnerSet.objects.update(trouble="no such image", troubled_until=timezone.now())
    assert "no such image" in operator.listed(RunnerSet, trouble="yes").content.decode()
    assert [operator.listed(RunnerSet, trouble=one).context["cl"].result_count for one in ("slow", "no")] == [1, 0]
    assert [operator.listed(RunnerSet, phase=one).context["cl"].result_count for one in ("running", "deleting")] == [
        1,
        0,
    ]


def test_a_set_shows_its_runners_and_a_runner_each_attempt(operator, world):
    world.make_set(minimum=1, maximum=1)
    world.launcher.refusals = [TransientLaunchError("the engine is away")]
    world.scale(2)
    world.pass_time(10)
    world.scale()
    (runner,) = world.runners
    text = operator.opened(world.refreshed()).content.decode()
    assert f'<a href="/admin/ci/runner/{runner.pk}/change/">{runner.name}</a>' in text
    text = operator.opened(runner).content.decode()
    assert "the engine is away" in text
    assert world.handle(runner) in text


def test_what_the_form_names_wrongly_is_told_beside_the_field(operator, pool):
    sent = {**_form(operator, pool), "minimum": "9", "template": '{"image": "x"}'}
    errors = _change(operator, pool, sent).context["adminform"].form.errors
    assert set(errors) == {"minimum", "template"}
    pool.refresh_from_db()
    assert (pool.minimum, pool.version) == (0, 0)


def test_repositories_are_saved_under_the_version_too(playground, operator, pool):
    repository, old = playground.repository, _form(operator, pool)
    _change(operator, pool, {**old, "repositories": str(repository.pk)})
    assert list(pool.repositories.all()) == [repository]
    _change(operator, pool, {**old, "repositories": "", "maximum": "9"})
    assert list(pool.repositories.all()) == [repository]
    pool.refresh_from_db()
    assert (pool.maximum, pool.version) == (3, 1)


def test_who_is_staff_but_no_administrator_cannot_choose_local_processes(playground, pool):
    clerk = playground.bob
    clerk.is_staff = True
    clerk.save()
    clerk.user_permissions.add(*Permission.objects.filter(codename__in=["add_runnerset", "change_runnerset"]))
    browser = Operator()
    browser.force_login(clerk, "django.contrib.auth.backends.ModelBackend")
    answer = browser.post(ADD, {**FIELDS, "name": "theirs"})
    assert list(answer.context["adminform"].form.errors) == ["launcher"]
    docker = {**FIELDS, "name": "theirs", "launcher": "docker", "template": '{"image": "x"}'}
    assert browser.post(ADD, docker).status_code == 302
    assert RunnerSet.objects.get(name="theirs").launcher == "docker"


@pytest.mark.parametrize("fields", [{"phase": "deleting"}, {"version": 7}, {"desired": 3}, {"owner": "alice"}])
def test_what_the_lifecycle_owns_cannot_be_set(playground, pool, fields):
    given = {name: playground.alice if value == "alice" else value for name, value in fields.items()}
    with pytest.raises(InvalidInput):
        save_runner_set(runner_set_id=pool.pk, fields=given, version=0, actor=playground.operator)


def test_a_name_is_used_once_a_scope(playground, pool):
    fields = {"name": "pool", "labels": ["linux"]}
    with pytest.raises(InvalidInput):
        save_runner_set(runner_set_id=None, fields=fields, version=None, actor=playground.operator)
    made = save_runner_set(
        runner_set_id=None, fields={**fields, "owner": playground.alice}, version=None, actor=playground.operator
    )
    with pytest.raises(InvalidInput):
        save_runner_set(runner_set_id=made.pk, fields={"labels": []}, version=0, actor=playground.operator)
