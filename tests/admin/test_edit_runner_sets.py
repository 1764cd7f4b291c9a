"""Can the operator describe runner sets, without undoing what another did meanwhile?"""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection

from ci.lifecycle.errors import Conflict, InvalidInput, NotFound
from ci.lifecycle.runner_sets import delete_runner_set, save_runner_set
from ci.models import Event, Runner, RunnerSet
from tests.admin.conftest import told

FIELDS = {"name": "pool", "labels": "Linux, x64", "minimum": "0", "maximum": "3", "launcher": "local", "template": "{}"}
ADD = "/admin/ci/runnerset/add/"


@pytest.fixture
def pool(playground):
    fields = {"name": "pool", "labels": ["linux"], "minimum": 0, "maximum": 3}
    return save_runner_set(runner_set_id=None, fields=fields, version=None, actor=playground.operator)


def _form(operator, runner_set):
    page = operator.opened(runner_set)
    form = page.context["adminform"].form
    events = page.context["inline_admin_formsets"][0].formset.management_form
    fields = {name: form[name].value() for name in form.fields}
    fields["labels"] = ",".join(runner_set.labels)
    return {**fields, **{events.add_prefix(name): events[name].value() for name in events.fields}}


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


def test_it_is_deleted_only_once_its_runners_are_gone(playground, pool):
    runner = playground.runner(ephemeral=True)
    Runner.objects.filter(pk=runner.pk).update(runner_set=pool)
    with pytest.raises(Conflict):
        delete_runner_set(runner_set_id=pool.pk, version=None, actor=playground.operator)
    Runner.objects.all().delete()
    with pytest.raises(Conflict):
        delete_runner_set(runner_set_id=pool.pk, version=pool.version + 1, actor=playground.operator)
    delete_runner_set(runner_set_id=pool.pk, version=pool.version, actor=playground.operator)
    assert not RunnerSet.objects.exists()
    assert Event.objects.filter(kind="runner_set_deleted", detail="pool").exists()
    with pytest.raises(NotFound):
        delete_runner_set(runner_set_id=pool.pk, version=None, actor=playground.operator)


def test_the_admin_deletes_through_the_same_function(operator, pool):
    operator.post(f"/admin/ci/runnerset/{pool.pk}/delete/", {"post": "yes"})
    assert not RunnerSet.objects.exists()
    assert Event.objects.filter(kind="runner_set_deleted").exists()


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
