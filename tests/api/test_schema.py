"""Is the OpenAPI document true of the server: valid, complete, and no call that it allows makes the server fail?"""

from __future__ import annotations

import contextlib
import warnings
from typing import Any

import pytest
import schemathesis
from django.core.signals import request_finished, request_started
from django.db import close_old_connections, transaction
from django.urls import URLPattern, URLResolver, get_resolver
from django.utils import timezone
from drf_spectacular.validation import validate_schema
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import NonInteractiveExampleWarning, Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import (
    content_type_conformance,
    not_a_server_error,
    response_schema_conformance,
    status_code_conformance,
)

from ci.interop import urls as interop
from ci.lifecycle import registration, settings_values
from ci.lifecycle.environments import create_environment
from ci.lifecycle.runner_sets import save_runner_set
from ci.models import Job, RegistrationToken, RunnerSet, Scope
from forge.access_tokens import create_access_token
from forge.wsgi import application
from tests.api.calls import call, lines
from tests.lifecycle.artifact_making import keep, keep_folder
from tests.lifecycle.caching import job_of, save

EXAMPLES = 3  # of each kind for each operation
TURNS = 3  # for each good one: with other rows
TRUTHS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
BY_HAND = """
on: [push, workflow_dispatch]
permissions: {id-token: write, contents: read}
jobs:
  a: {runs-on: linux, environment: staging, steps: [{run: echo}]}
"""


# What the document cannot say in full: that a time is a time, that a step has a conclusion once it has ended.
BODIES = {
    "POST /api/runner/v1/jobs/{job_id}/log": {"offset": 2, "lines": lines("three")},
    "PATCH /api/runner/v1/jobs/{job_id}/steps": {"steps": [{"number": 3, "name": "x", "state": "running"}]},
    "POST /api/runner/v1/runners": {"name": "delta", "labels": ["linux"]},
    "PATCH /api/v1/instance/runners/{runner_id}": {"paused": True},
    "PATCH /api/v1/user/runners/{runner_id}": {"paused": True},
    "PATCH /api/v1/repositories/{owner}/{repository}/runners/{runner_id}": {"paused": True},
    **{
        f"{method} /api/v1/{scope}/runner-sets{rest}": body
        for scope in ("instance", "user", "repositories/{owner}/{repository}")
        for method, rest, body in (
            ("POST", "", {"name": "new", "labels": ["x"], "launcher": "local"}),
            ("PATCH", "/{set_id}", {"maximum": 5}),
            ("POST", "/{set_id}/recover", {}),
        )
    },
    "POST /api/v1/repositories": {"name": "new"},
    "PATCH /api/v1/repositories/{owner}/{repository}": {"description": "new"},
    "PATCH /api/v1/repositories/{owner}/{repository}/workflows/{file}": {"enabled": True},
    "POST /api/v1/repositories/{owner}/{repository}/workflows/{file}/dispatches": {"ref": "main"},
    **{
        f"POST /api/v1/repositories/{{owner}}/{{repository}}/{what}": {}
        for what in ("runs/{run_id}/cancel", "runs/{run_id}/force-cancel", "jobs/{job_id}/cancel")
    },
}
# What a call cannot do without.
QUERIES = {"DELETE /api/v1/repos/{owner}/{repository}/actions/caches": {"key": "deps"}}


def document():
    return call("GET", "/api/schema/?format=json").json()


def parked_set(scope, actor):
    fields = {"name": "parked", "labels": ["x"], "owner": scope.owner, "repository": scope.repository}
    made = save_runner_set(runner_set_id=None, fields=fields, version=None, actor=actor)
    RunnerSet.objects.filter(pk=made.pk).update(phase=RunnerSet.Phase.OUTDATED, parked_at=timezone.now())
    return made.pk


class World:
    """Rows that exist, and who may touch them: calls that only ever find nothing would prove little."""

    def __init__(self, playground):
        scope = Scope(repository=playground.repository)
        playground.push({"README.md": "x"})
        run = playground.run(BY_HAND)
        ended = playground.run()
        runner = playground.runner()
        self.running = playground.assigned(runner).begin()
        self.running.log("one", "two")
        playground.work(playground.runner(name="other"))
        production = create_environment(repository=playground.repository, name="production", actor=None)
        in_production = Scope(repository=playground.repository, environment=production)
        for one in (scope, in_production, Scope(owner=playground.operator), Scope()):
            settings_values.set_secret(scope=one, name="KEY", value="x", actor=playground.alice)
            settings_values.set_variable(scope=one, name="KEY", value="x", actor=playground.alice)
        playground.make_repository(name="spare")
        token, text = registration.create_registration_token(scope=Scope(), created_by=playground.operator)
        scopes = [scope, Scope(owner=playground.operator)]
        others = [playground.runner(name="scoped", scope=one) for one in scopes]
        tokens = RegistrationToken.objects.exclude(pk=token.pk).values_list("pk", flat=True)
        self.values = {
            "owner": ["alice"],
            "repository": ["widgets"],
            "username": ["bob", "carol", "alice", "nobody"],
            "file": ["ci.yml"],
            "environment": ["production"],
            "key": ["KEY", "OTHER"],
            "run_id": [run.pk, ended.pk],
            "job_id": list(Job.objects.values_list("pk", flat=True)),
            # One is a zip itself, and one is a folder that becomes one.
            "artifact_id": [
                keep_folder(job_of(self.running), "folder", file=b"x").pk,
                keep(job_of(self.running), "zip").pk,
            ],
            "cache_id": [save(job_of(self.running), key).pk for key in ("deps", "other")],
            "runner_id": [runner.pk, *(one.pk for one in others)],
            "token_id": [token.pk, *tokens],
            "set_id": [parked_set(one, playground.operator) for one in (Scope(), *scopes)],
        }
        self.tokens = {
            "registrationToken": text,
            "runnerToken": registration.register_runner(token=text, name="gamma", labels=["gpu"])[1],
            "jobToken": self.running.token,
            "idTokenRequest": self.running.payload["id_token"]["request_token"],
            "accessToken": create_access_token(user=playground.operator, name="fuzz")[1],
        }

    def aim(self, case: Any, turn: int) -> None:
        """Let the case meet rows that exist, each of them in some turn."""
        for name, values in self.values.items():
            if name in (case.path_parameters or {}):
                case.path_parameters[name] = values[turn % len(values)]
        if case.path.startswith("/api/runner/") and "job_id" in (case.path_parameters or {}):
            case.path_parameters["job_id"] = self.running.id
        # What deleting a repository does on disk is not rolled back.
        if case.method == "DELETE" and case.path.endswith("{repository}"):
            case.path_parameters["repository"] = "spare"

    def sign(self, case: Any) -> None:
        for security in case.operation.definition.raw.get("security", []):
            for scheme in security.keys() & self.tokens.keys():
                case.headers = {**(case.headers or {}), "Authorization": f"Bearer {self.tokens[scheme]}"}


@pytest.fixture
def one_connection(db):
    """What the application does around each request would close the connection that holds the test's transaction."""
    signals = (request_started, request_finished)
    for signal in signals:
        signal.disconnect(close_old_connections)
    yield
    for signal in signals:
        signal.connect(close_old_connections)


def test_no_call_that_the_document_allows_or_forbids_makes_the_server_fail(playground, one_connection):
    world = World(playground)
    schema = schemathesis.openapi.from_wsgi("/api/schema/?format=json", application)
    met: dict[str, set[int]] = {}
    for found in schema.get_all_operations():
        operation = found.ok()
        if operation.path.startswith("/api/"):
            for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
                met.setdefault(operation.label, set()).update(explore(world, operation, mode))
    # Blind calls would pass too: nearly every operation must have been answered with success at least once.
    blind = [label for label, statuses in met.items() if not any(status < 400 for status in statuses)]
    assert len(met) > 60
    assert len(blind) <= 3, blind


def explore(world: World, operation: Any, mode: GenerationMode) -> set[int]:
    """The statuses that this operation answered."""
    positive = mode == GenerationMode.POSITIVE
    statuses = set()

    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def meet(case: Any) -> None:
        world.sign(case)
        for turn in range(TURNS if positive else 1):
            if positive:
                world.aim(case, turn)
            if positive and turn == 0:
                # Once as plainly as can be: what is made up depends on every constant in the code.
                case.query = dict(QUERIES.get(operation.label, {}))
                case.body = BODIES.get(operation.label, case.body)
            with transaction.atomic():
                response = case.call()
                case.validate_response(response, checks=TRUTHS)
                transaction.set_rollback(True)
            statuses.add(response.status_code)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NonInteractiveExampleWarning)
        # A call that takes nothing and needs no token cannot be called wrongly.
        with contextlib.suppress(*([] if positive else [Unsatisfiable])):
            meet()
    return statuses


def test_the_document_is_valid_openapi(db):
    validate_schema(document())


def test_every_address_below_api_is_in_the_document(db):
    described = {path.replace("{", "<").replace("}", ">") for path in document()["paths"]}
    # The protocols of runners and clients that exist already are theirs to describe.
    theirs = set(addresses(interop.urlpatterns))
    for address in addresses(get_resolver().url_patterns):
        if address.startswith("/api/") and address not in ("/api/", "/api/schema/", "/api/docs/", *theirs):
            assert address in described


def addresses(patterns, prefix="/"):
    for pattern in patterns:
        route = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from addresses(pattern.url_patterns, route)
        elif isinstance(pattern, URLPattern):
            yield "".join(part if "<" not in part else "<" + part.partition(":")[2] for part in split(route))


def split(route):
    start = 0
    while (end := route.find("<", start)) >= 0:
        yield route[start:end]
        start = route.index(">", end) + 1
        yield route[end:start]
    yield route[start:]


def test_every_operation_has_a_summary_a_scheme_and_its_errors(db):
    shown = document()
    schemes = set(shown["components"]["securitySchemes"])
    assert schemes >= {"registrationToken", "runnerToken", "jobToken", "accessToken", "gitPassword"}
    for path, methods in shown["paths"].items():
        for method, operation in methods.items():
            assert operation["summary"], (method, path)
            assert operation["security"], (method, path)
            assert "401" in operation["responses"] or operation["security"] == [{}], (method, path)


@pytest.mark.parametrize("service", ["git-upload-pack", "git-receive-pack"])
def test_git_over_http_is_described(db, service):
    paths = document()["paths"]
    assert "post" in paths[f"/{{owner}}/{{repository}}.git/{service}"]
    assert "get" in paths["/{owner}/{repository}.git/info/refs"]


def test_the_docs_page_has_no_inline_script(db):
    page = call("GET", "/api/docs/")
    assert page.status_code == 200
    assert "script-src 'self'" in page["Content-Security-Policy"]
    for piece in page.content.decode().split("<script")[1:]:
        tag, _, rest = piece.partition(">")
        assert "src=" in tag
        assert rest.startswith("</script>")
    script = call("GET", "/api/docs/?script=")
    assert script["Content-Type"].startswith("application/javascript")
    assert b"SwaggerUIBundle" in script.content
