"""Which keys does a workflow file know, what may their values be, and what may expressions there name?

One table, after GitHub's published schema (workflow-v1.0). Where GitHub's own server is known to accept more than that
schema, the table does too."""

from __future__ import annotations

from ci.workflow.document.events import EVENTS, EventFacts
from ci.workflow.document.rules import (
    Anything,
    Either,
    Flag,
    Key,
    List,
    Nothing,
    Number,
    Place,
    Rule,
    Table,
    Text,
    keys,
    unhonoured,
)

# --- places -----------------------------------------------------------------------------------------------------------
_MANY = 255
_G = frozenset({"github", "inputs", "vars"})
_LEG = _G | {"needs", "strategy", "matrix"}
_RUNNER = _LEG | {"steps", "job", "runner", "env"}
_JOB_STATUS = {"always": (0, 0), "failure": (0, _MANY), "cancelled": (0, 0), "success": (0, _MANY)}
_STEP_STATUS = {"always": (0, 0), "failure": (0, 0), "cancelled": (0, 0), "success": (0, 0)}
_HASH = {"hashFiles": (1, _MANY)}

RUN = Place(_G)
RUN_SECRETS = Place(_G | {"secrets"})
CALL_OUTPUT = Place(_G | {"jobs"})
JOB_IF = Place(_G | {"needs"}, _JOB_STATUS, condition=True)
STRATEGY = Place(_G | {"needs"})
LEG = Place(_LEG)
LEG_SECRETS = Place(_LEG | {"secrets"})
LEG_ENV = Place(_LEG | {"env"})
CREDENTIALS = Place(_LEG | {"secrets", "env"})
RUNNER = Place(_RUNNER)
RUNNER_SECRETS = Place(_RUNNER | {"secrets"})
STEP = Place(_RUNNER | {"secrets"}, _HASH)
STEP_IF = Place(_RUNNER, {**_STEP_STATUS, **_HASH}, condition=True)
SNAPSHOT_IF = Place(_LEG, condition=True)

# --- shared shapes ----------------------------------------------------------------------------------------------------
_TEXT = Text()
_FILLED = Text(filled=True)
_TEXTS = List(_FILLED)
_TEXT_OR_TEXTS = Either((_FILLED, _TEXTS))
_SCALAR = Either((Flag(), Number(), _TEXT))
_SHELL: dict[str, Rule] = {"shell": _FILLED, "working_directory": _FILLED}
_MINUTES = Number(least=0)


def _env(place: Place) -> Table:
    return Table(loose=_TEXT, place=place)


def _concurrency(place: Place, *, bare: Text) -> Either:
    table = keys({"group": _FILLED}, cancel_in_progress=Flag(), queue=Text(values=("single", "max")))
    return Either((bare, Table(table)), place=place)


_ANY_LEVEL = Text(values=("read", "write", "none"))
_READ_LEVEL = Text(values=("read", "none"))
_WRITE_LEVEL = Text(values=("write", "none"))
_PERMISSIONS = Either(
    (
        Text(values=("read-all", "write-all")),
        Table(
            keys(
                actions=_ANY_LEVEL,
                artifact_metadata=_ANY_LEVEL,
                attestations=_ANY_LEVEL,
                checks=_ANY_LEVEL,
                code_quality=_ANY_LEVEL,
                contents=_ANY_LEVEL,
                copilot_requests=_WRITE_LEVEL,
                deployments=_ANY_LEVEL,
                discussions=_ANY_LEVEL,
                drives=_ANY_LEVEL,
                id_token=_WRITE_LEVEL,
                issues=_ANY_LEVEL,
                models=_READ_LEVEL,
                packages=_ANY_LEVEL,
                pages=_ANY_LEVEL,
                pull_requests=_ANY_LEVEL,
                repository_projects=_ANY_LEVEL,
                security_events=_ANY_LEVEL,
                statuses=_ANY_LEVEL,
                vulnerability_alerts=_READ_LEVEL,
            )
        ),
    )
)

# --- on ---------------------------------------------------------------------------------------------------------------
_CALL_INPUT = Table(
    keys(
        {"type": Text(values=("string", "boolean", "number"))},
        description=_TEXT,
        required=Flag(),
        default=Either((Flag(), Number(), _TEXT), place=RUN),
    )
)
_WORKFLOW_CALL = Table(
    keys(
        inputs=Table(loose=_CALL_INPUT),
        secrets=Table(loose=Either((Nothing(), Table(keys(description=_TEXT, required=Flag()))))),
        outputs=Table(loose=Table(keys({"value": Text(place=CALL_OUTPUT)}, description=_TEXT))),
    )
)
_DISPATCH_INPUT = Table(
    keys(
        description=_TEXT,
        type=Text(values=("string", "boolean", "number", "environment", "choice")),
        required=Flag(),
        default=_SCALAR,
        options=List(_TEXT),
        deprecationMessage=_TEXT,
    )
)
_WORKFLOW_DISPATCH = Table(keys(inputs=Either((Nothing(), Table(loose=Either((Nothing(), _DISPATCH_INPUT)))))))
_SCHEDULE = List(Table(keys({"cron": _FILLED}, timezone=_FILLED)))
_SHAPES: dict[str, Rule] = {
    "workflow_call": Either((Nothing(), _WORKFLOW_CALL)),
    "workflow_dispatch": Either((Nothing(), _WORKFLOW_DISPATCH)),
    "repository_dispatch": Either((Nothing(), Table(keys(types=_TEXT_OR_TEXTS)))),
    "schedule": _SCHEDULE,
}


def _event(name: str, facts: EventFacts) -> Rule:
    if name in _SHAPES:
        return _SHAPES[name]
    known = {key: Key(_TEXT_OR_TEXTS) for key in facts.filters}
    if facts.types:
        activity = Text(values=facts.types)
        known["types"] = Key(Either((activity, List(activity))))
    return Either((Nothing(), Table(known)))


_EVENT_NAME = Text(values=tuple(EVENTS))
_ON = Either(
    (
        _EVENT_NAME,
        List(Either((_EVENT_NAME, Table(keys(repository_dispatch=_SHAPES["repository_dispatch"]))))),
        Table(
            {
                name: Key(_event(name, facts), own=False if name == "workflow_call" else None)
                for name, facts in EVENTS.items()
            }
        ),
    )
)

# --- steps ------------------------------------------------------------------------------------------------------------
_ANY_STEP: dict[str, Rule] = {"name": Text(place=STEP), "id": _FILLED, "continue_on_error": Flag(place=STEP)}
_WORK_STEP: dict[str, Rule] = {
    **_ANY_STEP,
    "if_": Text(place=STEP_IF),
    "timeout_minutes": Number(place=STEP, least=0),
    "env": _env(STEP),
}
_BACKGROUND = unhonoured(background=Flag())
_RUN_STEP = Table(
    keys({"run": Text(place=STEP)}, **_WORK_STEP, shell=_FILLED, working_directory=Text(place=STEP)) | _BACKGROUND
)
_USES_STEP = Table(keys({"uses": _FILLED}, **_WORK_STEP, with_=_env(STEP)) | _BACKGROUND)


def _later_step(key: str, rule: Rule) -> Table:
    return Table({**keys(**_ANY_STEP), key: Key(rule, required=True, honoured=False)})


_STEPS = List(
    Either(
        (
            _RUN_STEP,
            _USES_STEP,
            _later_step("wait", _TEXT_OR_TEXTS),
            _later_step("wait-all", Either((Nothing(), Flag()))),
            _later_step("cancel", _FILLED),
            Table({"parallel": Key(List(Anything(place=STEP)), required=True, honoured=False)}),
        )
    )
)

# --- jobs -------------------------------------------------------------------------------------------------------------
_CONTAINER: dict[str, Rule] = {
    "image": _TEXT,
    "options": _TEXT,
    "env": _env(RUNNER_SECRETS),
    "ports": _TEXTS,
    "volumes": _TEXTS,
    "credentials": Table(keys(username=_FILLED, password=_FILLED), place=CREDENTIALS),
}
_SERVICE = Either((_FILLED, Table(keys(**_CONTAINER, entrypoint=_TEXT, command=_TEXT))))
_FILTERS = List(Table(loose=Anything()))
_STRATEGY = Table(
    keys(
        fail_fast=Flag(),
        max_parallel=Number(least=1),
        matrix=Table(keys(include=_FILTERS, exclude=_FILTERS), loose=List(Anything())),
    ),
    place=STRATEGY,
)
_RUNS_ON_TABLE = Table(keys(labels=_TEXT_OR_TEXTS) | unhonoured(group=_FILLED))
_ENVIRONMENT = Table(keys({"name": Text(place=LEG)}, url=Text(place=RUNNER), deployment=Flag()))
_ANY_JOB: dict[str, Rule] = {
    "name": Text(place=LEG),
    "needs": _TEXT_OR_TEXTS,
    "if_": Text(place=JOB_IF),
    "permissions": _PERMISSIONS,
    "concurrency": _concurrency(LEG, bare=_FILLED),
    "strategy": _STRATEGY,
}
_SNAPSHOT = Either((_FILLED, Table(keys({"image-name": _FILLED}, if_=Text(place=SNAPSHOT_IF), version=_FILLED))))
_JOB = Table(
    keys(
        {"runs-on": Either((_FILLED, _TEXTS, _RUNS_ON_TABLE), place=LEG)},
        **_ANY_JOB,
        timeout_minutes=Number(place=LEG, least=0),
        cancel_timeout_minutes=Number(place=LEG, least=0),
        continue_on_error=Flag(place=LEG),
        container=Either((_TEXT, Table(keys(**_CONTAINER))), place=LEG),
        services=Table(loose=_SERVICE, place=LEG),
        env=_env(LEG_SECRETS),
        environment=Either((_TEXT, _ENVIRONMENT), place=LEG),
        outputs=Table(loose=Text(place=RUNNER_SECRETS)),
        defaults=Table(keys(run=Table(keys(**_SHELL), place=LEG_ENV))),
        steps=_STEPS,
    )
    | unhonoured(snapshot=_SNAPSHOT)
)
_REUSABLE_JOB = Table(
    keys(
        {"uses": _FILLED},
        **_ANY_JOB,
        with_=Table(loose=Either(_SCALAR.rules, place=LEG)),
        secrets=Either((Text(values=("inherit",)), Table(loose=Either(_SCALAR.rules, place=LEG_SECRETS)))),
    )
)

ROOT = Table(
    {"on": Key(_ON, required=True, own=True)}
    | keys(
        {"jobs": Table(loose=Either((_JOB, _REUSABLE_JOB)))},
        name=_TEXT,
        description=_TEXT,
        run_name=Text(place=RUN),
        defaults=Table(keys(run=Table(keys(**_SHELL)))),
        env=_env(RUN_SECRETS),
        permissions=_PERMISSIONS,
        concurrency=_concurrency(RUN, bare=_TEXT),
    )
)
