"""Do the actions on runs call the transitions, row by row, and only on what the operator saw?"""

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from ci.lifecycle import transitions
from ci.models import Event, Run
from tests.playground import states_of

TWO_JOBS = """
    name: CI
    on: push
    jobs:
      build: {runs-on: linux, steps: [{run: a}]}
      lint: {runs-on: linux, steps: [{run: b}]}
"""


def test_cancel_ends_a_waiting_run_and_says_who(playground, operator):
    run = playground.run(TWO_JOBS)
    assert operator.act("cancel", run) == ["CI #1: cancelled (2 jobs)"]
    assert states_of(run) == {"build": "cancelled", "lint": "cancelled"}
    assert run.conclusion == "cancelled"
    assert Event.objects.filter(run=run, kind="cancelled", actor=playground.operator).count() == 2


def test_each_row_has_a_message_of_its_own(playground, operator):
    ended, waiting = playground.run(), playground.run()
    transitions.cancel_run(run_id=ended.pk, actor=playground.alice)
    messages = operator.act("cancel", ended, waiting)
    assert sorted(messages) == ["CI #1: had already ended with Cancelled.", "CI #2: cancelled (1 job)"]


def test_an_action_on_a_version_that_has_changed_meanwhile_changes_nothing(playground, operator):
    run = playground.run(TWO_JOBS)
    page = operator.listed(Run)
    runner = playground.runner()
    playground.assigned(runner).begin()
    before = states_of(run)
    assert operator.act("cancel", run, page=page) == ["CI #1: has changed meanwhile: look again, then decide."]
    assert states_of(run) == before
    assert operator.act("cancel", run) == ["CI #1: cancelled (2 jobs)"]


@pytest.mark.parametrize("version", ["", "x", "-1", "9" * 40, "1.0"])
def test_a_missing_or_garbled_version_changes_nothing(playground, operator, version):
    run = playground.run()
    assert "has changed meanwhile" in operator.act("cancel", run, **{f"version-{run.pk}": version})[0]
    assert states_of(run) == {"build": "queued"}


def test_a_row_that_has_left_the_filter_meanwhile_is_told_of(playground, operator):
    run = playground.run()
    page = operator.listed(Run, state__exact="queued")
    transitions.cancel_run(run_id=run.pk, actor=playground.alice)
    assert "has changed meanwhile" in operator.act("cancel", run, page=page)[0]


def test_a_row_that_is_gone_is_told_of(playground, operator):
    gone, other = playground.run(), playground.run()
    page = operator.listed(Run)
    key = gone.pk
    gone.delete()
    gone.pk = key
    assert sorted(operator.act("cancel", gone, other, page=page)) == [
        "CI #2: cancelled (1 job)",
        f"run {key}: is gone.",
    ]


def test_rows_that_are_not_ids_change_nothing(playground, operator):
    run = playground.run()
    run_page = operator.listed(Run)
    answer = operator.post(
        run_page.request["PATH_INFO"], {"action": "cancel", "index": "0", "_selected_action": "x"}, follow=True
    )
    assert "Nothing was changed" in answer.content.decode()
    assert states_of(run) == {"build": "queued"}


def test_force_cancel_ends_a_running_job_at_once(playground, operator):
    run = playground.run()
    playground.assigned().begin()
    assert operator.act("cancel", run) == ["CI #1: cancelled (1 job)"]
    assert states_of(run) == {"build": "cancelling"}
    assert operator.act("force_cancel", run) == ["CI #1: cancelled (1 job) by force"]
    assert states_of(run) == {"build": "cancelled"}


def test_rerun_starts_the_next_attempt_of_all_or_of_the_failed_jobs(playground, operator):
    run = playground.run(TWO_JOBS)
    runner = playground.runner()
    playground.work(runner, {"lint": "failure"})
    assert operator.act("rerun_failed", run) == ["CI #1: attempt 2 started"]
    assert states_of(run) == {"build": "success", "lint": "queued"}
    assert operator.act("rerun", run) == ["CI #1: has not ended yet: cancel it first, or wait."]
    playground.work(runner)
    assert operator.act("rerun", run) == ["CI #1: attempt 3 started"]
    assert states_of(run) == {"build": "queued", "lint": "queued"}


def test_a_run_that_waits_for_nobody_cannot_be_approved(playground, operator):
    run = playground.run()
    assert operator.act("approve", run)[0].startswith("CI #1: ")
    assert states_of(run) == {"build": "queued"}


def test_buttons_on_the_run_s_own_page_do_the_same(playground, operator):
    run = playground.run()
    page = operator.opened(run)
    assert '<button class="button" name="action" value="cancel">Cancel</button>' in page.content.decode()
    fields = {**_row_form(page, run), "action": "cancel"}
    answer = operator.post("/admin/ci/run/", fields, follow=True)
    assert answer.redirect_chain[-1][0] == f"/admin/ci/run/{run.pk}/change/"
    assert "cancelled (1 job)" in answer.content.decode()
    again = operator.post("/admin/ci/run/", fields, follow=True)
    assert "has changed meanwhile" in again.content.decode()


def _row_form(page, run):
    form = page.content.decode().split('<form class="row-actions"')[1].split("</form>")[0]
    names = ("_selected_action", f"version-{run.pk}", "from_change_form", "index")
    return {name: form.split(f'name="{name}" value="')[1].split('"')[0] for name in names}


def test_whoever_may_only_look_may_not_act(playground):
    run = playground.run()
    viewer = User.objects.create_user("viewer", is_staff=True)
    viewer.user_permissions.add(Permission.objects.get(codename="view_run"))
    browser = Client()
    browser.force_login(viewer, "django.contrib.auth.backends.ModelBackend")
    assert browser.get("/admin/ci/run/").status_code == 200
    page = browser.get(f"/admin/ci/run/{run.pk}/change/")
    assert "row-actions" not in page.content.decode()
    browser.post(
        "/admin/ci/run/",
        {"action": "cancel", "index": "0", "_selected_action": str(run.pk), f"version-{run.pk}": run.version},
    )
    assert states_of(run) == {"build": "queued"}


def test_owners_and_strangers_have_no_admin(playground):
    run = playground.run()
    for person in (playground.alice, playground.mallory):
        browser = Client()
        browser.force_login(person, "django.contrib.auth.backends.ModelBackend")
        assert browser.get("/admin/ci/run/").status_code == 302
        assert browser.post("/admin/ci/run/", {"action": "cancel", "_selected_action": run.pk}).status_code == 302
    assert states_of(run) == {"build": "queued"}


def test_more_rows_than_can_be_told_apart_are_refused_together(playground, operator):
    run = playground.run()
    copies = [
        Run(
            repository=run.repository, workflow=run.workflow, workflow_name="CI", number=number,
            title="t", event="push", ref="refs/heads/main", sha=run.sha,
        )
        for number in range(2, 205)
    ]  # fmt: skip
    Run.objects.bulk_create(copies)
    messages = operator.act("cancel", run, select_across="1")
    assert messages == ["Choose at most 200 rows. Nothing was changed."]
    assert states_of(run) == {"build": "queued"}
