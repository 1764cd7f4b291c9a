"""Can every row be looked at, none be changed by form, and a thousand be listed as fast as one?"""

import uuid
from datetime import timedelta

import pytest
from django.contrib import admin
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from ci.admin.readonly import ReadOnly
from ci.lifecycle.environments import create_environment
from ci.lifecycle.settings_values import set_secret, set_variable
from ci.models import (
    Conclusion,
    Environment,
    Event,
    Job,
    JobState,
    Log,
    Run,
    Runner,
    RunnerSet,
    Schedule,
    Scope,
    Secret,
    Step,
    Variable,
    Workflow,
)
from forge.access_tokens import create_access_token
from forge.models import AccessToken, Member, Push, Repository

MODELS = [model for model in admin.site._registry if model._meta.app_label in ("ci", "forge")]


@pytest.fixture
def world(playground):
    run = playground.run()
    playground.runner(name="idle")
    done = playground.assigned().begin()
    done.log("hello")
    done.complete()
    scope = Scope(repository=playground.repository)
    set_secret(scope=scope, name="KEY", value="the-secret-value", actor=playground.alice)
    set_variable(scope=scope, name="COLOUR", value="green", actor=playground.alice)
    production = create_environment(repository=playground.repository, name="production", actor=playground.alice)
    narrow = Scope(repository=playground.repository, environment=production)
    set_variable(scope=narrow, name="SHADE", value="dark", actor=playground.alice)
    create_access_token(user=playground.alice, name="laptop")
    RunnerSet.objects.create(name="pool", labels=["linux"])
    Schedule.objects.create(workflow=run.workflow, cron="0 0 * * *", next_at=timezone.now())
    return run


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_every_list_and_every_row_opens(world, operator, model):
    listed = operator.listed(model, q="a")
    assert listed.status_code == 200
    operator.listed(model)
    for row in model.objects.all()[:3]:
        operator.opened(row)


@pytest.mark.parametrize(
    "model", [Run, Job, Step, Runner, RunnerSet, Event, Repository, Member, AccessToken, Push], ids=lambda m: m.__name__
)
def test_a_list_is_narrowed_by_date(world, operator, model):
    field = admin.site._registry[model].date_hierarchy
    everything = operator.listed(model).context["cl"].result_count
    assert operator.listed(model, **{f"{field}__year": 1999}).context["cl"].result_count == 0
    this_year = operator.listed(model, **{f"{field}__year": timezone.now().year}).context["cl"].result_count
    assert this_year == model.objects.filter(**{f"{field}__isnull": False}).count() <= everything


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_what_the_lifecycle_owns_has_no_form(world, operator, model):
    registered = admin.site._registry[model]
    if not isinstance(registered, ReadOnly):
        assert model in (Repository, Member, AccessToken, Push, RunnerSet)
        return
    row = model.objects.first()
    names = f"admin:{model._meta.app_label}_{model._meta.model_name}_"
    assert operator.get(reverse(names + "add")).status_code == 403
    if row is not None:
        change = reverse(names + "change", args=[row.pk])
        assert operator.post(change, {"state": "ended", "name": "x", "version": "99"}).status_code == 403
        assert operator.post(reverse(names + "delete", args=[row.pk]), {"post": "yes"}).status_code == 403
        assert model.objects.filter(pk=row.pk).exists()
        assert "delete_selected" not in operator.listed(model).content.decode()


def test_a_secret_has_a_name_and_no_value(world, operator):
    secret = Secret.objects.get()
    for page in (operator.listed(Secret), operator.opened(secret)):
        text = page.content.decode()
        assert "KEY" in text
        assert "the-secret-value" not in text
        assert secret.encrypted not in text
    assert "green" in operator.opened(Variable.objects.get(name="COLOUR")).content.decode()


def test_what_an_environment_has_says_so(world, operator):
    assert "production of alice/widgets" in operator.listed(Variable).content.decode()
    narrow = operator.opened(Variable.objects.get(name="SHADE")).content.decode()
    assert f'<a href="/admin/ci/environment/{Environment.objects.get().pk}/change/">production</a>' in narrow
    listed = operator.listed(Variable, environment__isempty="1").content.decode()
    assert "COLOUR" in listed
    assert "SHADE" not in listed


def test_a_call_and_its_jobs_lead_to_each_other(playground, operator):
    called = "on: workflow_call\njobs: {build: {runs-on: linux, steps: [{run: echo}]}}\n"
    caller = "on: [push, release]\njobs: {call: {uses: ./.github/workflows/called.yml}}\n"
    playground.push({".github/workflows/ci.yml": caller, ".github/workflows/called.yml": called})
    call, inner = Job.objects.get(key="call"), Job.objects.get(key="build")
    assert "./.github/workflows/called.yml" in operator.opened(call).content.decode()
    assert f'<a href="/admin/ci/job/{call.pk}/change/">call</a>' in operator.opened(inner).content.decode()
    workflow = " ".join(operator.opened(Workflow.objects.get(path__endswith="ci.yml")).content.decode().split())
    assert 'Events never fired here:</label> <div class="readonly">release</div>' in workflow


def test_an_access_token_has_no_hash_and_can_be_revoked(world, operator):
    token = AccessToken.objects.get()
    assert token.token_hash not in operator.opened(token).content.decode()
    assert operator.get("/admin/forge/accesstoken/add/").status_code == 403
    operator.post(f"/admin/forge/accesstoken/{token.pk}/delete/", {"post": "yes"})
    assert not AccessToken.objects.exists()


def test_a_state_has_a_sign_a_word_and_a_colour(world, operator):
    assert '<span class="state state-success">✓&nbsp;Success</span>' in operator.listed(Run).content.decode()


def test_a_run_shows_its_jobs_and_events(world, operator):
    page = operator.opened(world).content.decode()
    job = world.jobs.get()
    assert f'<a href="/admin/ci/job/{job.pk}/change/">build</a>' in page
    assert "run_ended" in page
    assert "are shown" not in page
    steps = operator.opened(job).content.decode()
    assert "Run echo hello" in steps
    assert "<td>acknowledged</td>" in steps or "<td>assigned</td>" in steps


def test_a_run_of_256_jobs_and_thousands_of_events_has_a_page(world, operator):
    Job.objects.bulk_create(_ended_job(world, f"leg-{number}", number) for number in range(1, 256))
    Event.objects.bulk_create(Event(kind="noise", run=world) for _ in range(3000))
    with CaptureQueriesContext(connection) as queries:
        page = operator.opened(world).content.decode()
    assert "leg-255" in page
    assert page.count("noise") <= 301
    assert f'Only 300 are shown. <a href="/admin/ci/event/?run__id__exact={world.pk}">' in page
    assert page.count("are shown") == 1
    assert len(queries) < 30
    assert operator.get(f"/admin/ci/event/?run__id__exact={world.pk}").status_code == 200


def _ended_job(run, name, index):
    return Job(
        run=run, key="matrix", name=name, matrix_index=index, state=JobState.ENDED,
        conclusion=Conclusion.SUCCESS, ended_at=timezone.now(), runs_on=["linux"], expanded=True,
    )  # fmt: skip


MANY = {
    Repository: lambda run, n: Repository(owner=run.repository.owner, name=f"r{n}"),
    Push: lambda run, n: Push(repository=run.repository, ref="refs/heads/x", before=f"{n:040}", after="f" * 40),
    Run: lambda run, n: Run(
        repository=run.repository, workflow=run.workflow, workflow_name="CI", number=n + 100, title="t", event="push",
        ref="refs/heads/main", sha=run.sha, actor=run.actor, actor_name="alice",
    ),
    Job: lambda run, n: _ended_job(run, f"job {n}", n + 1),
    Step: lambda run, n: Step(job=run.jobs.first(), number=n + 100, name="s"),
    Event: lambda run, n: Event(kind="noise", run=run, job=run.jobs.first(), runner=Runner.objects.first()),
    Runner: lambda run, n: Runner(
        name=f"r{n}", labels=["linux"], owner=run.repository.owner, token_hash=uuid.uuid4().hex
    ),
    RunnerSet: lambda run, n: RunnerSet(name=f"s{n}", labels=["linux"], repository=run.repository),
    Workflow: lambda run, n: Workflow(repository=run.repository, path=f"{n}.yml", name="w"),
    Schedule: lambda run, n: Schedule(
        workflow=run.workflow, cron=f"{n} * * * *", next_at=timezone.now() + timedelta(minutes=n)
    ),
    Environment: lambda run, n: Environment(repository=run.repository, name=f"e{n}"),
    Secret: lambda run, n: Secret(
        repository=run.repository, environment=Environment.objects.first(), name=f"S{n}", encrypted="x"
    ),
    Variable: lambda run, n: Variable(repository=run.repository, name=f"V{n}", value="x"),
}  # fmt: skip


@pytest.mark.parametrize("model", MANY, ids=lambda model: model.__name__)
def test_a_thousand_rows_take_as_many_queries_as_a_few(world, operator, model):
    made = [MANY[model](world, number) for number in range(1000)]
    model.objects.bulk_create(made[:3])
    with CaptureQueriesContext(connection) as few:
        operator.listed(model)
    model.objects.bulk_create(made[3:])
    with CaptureQueriesContext(connection) as many:
        operator.listed(model)
    assert len(many) <= len(few) + 1  # one more for the pages


def test_a_thousand_logs_take_as_many_queries_as_a_few(world, operator):
    jobs = Job.objects.bulk_create(_ended_job(world, f"job {number}", number + 1) for number in range(300))
    Log.objects.bulk_create(Log(job=job) for job in jobs[:3])
    with CaptureQueriesContext(connection) as few:
        operator.listed(Log)
    Log.objects.bulk_create(Log(job=job) for job in jobs[3:])
    with CaptureQueriesContext(connection) as many:
        operator.listed(Log)
    assert len(many) <= len(few) + 1
