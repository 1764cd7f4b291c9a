"""Which expressions and workflows does the differential test make up?"""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

# Contexts whose values meet each kind, case and coercion.
CONTEXTS: dict[str, Any] = {
    "github": {
        "ref": "refs/heads/main",
        "event": {"number": 7, "draft": False, "labels": [{"name": "Bug"}, {"name": "ci"}, {"other": 1}]},
        "sha": "0a1b",
        "empty": "",
    },
    "env": {"ONE": "1", "TRUE": "true", "False": "false", "hex": "0xff", "space": " 2 ", "ÄÖ": "äö", "q": "it's"},
    "matrix": {"n": 3, "f": 0.5, "yes": True, "none": None, "list": [1, "two", None, [3]], "map": {"a": {"b": "c"}}},
    "needs": {
        "a": {"result": "success", "outputs": {"json": '{"k": [1, 2]}', "text": "x"}},
        "b": {"result": "skipped"},
    },
    "inputs": {},
}
FUNCTIONS = {"success": True, "failure": False, "always": True, "cancelled": False}

_WORDS = [
    "",
    "a",
    "A",
    "main",
    "refs/heads/main",
    "true",
    "1",
    "0xff",
    " 2 ",
    "it''s",
    "{0}",
    "{{}}",
    "Bug",
    "ß",
    "äö",
    "[1,2]",
]
_literals = st.one_of(
    st.sampled_from(["null", "true", "false", "TRUE", "Null", "NaN", "Infinity", "-Infinity"]),
    st.integers(-20, 20).map(str),
    st.sampled_from(["0.5", "-1.25", "1e3", "0x1F", "0o17", "+3", ".5", "1.", "1e-2", "00", "0x", "1.2.3", "--1"]),
    st.sampled_from(_WORDS).map(lambda word: f"'{word}'"),
)
_paths = st.sampled_from(
    [
        *("github", "github.ref", "GITHUB.Event.number", "github.event.labels", "github.event.labels.*.name"),
        *("github.event.labels[0].name", "github['ref']", "github.missing.deeper", "github.*", "github.empty"),
        *(
            "env.ONE",
            "env.one",
            "env.hex",
            "env.space",
            "env['ÄÖ']",
            "env.*",
            "env.q",
            "matrix.n",
            "matrix.f",
            "matrix.yes",
        ),
        *(
            "matrix.none",
            "matrix.list",
            "matrix.list[1]",
            "matrix.list[9]",
            "matrix.list.*",
            "matrix.map",
            "matrix.map.a",
        ),
        *("matrix.map['A'].b", "matrix.map.*.b", "needs.*.result", "needs.a.outputs.json", "needs.b.outputs.text"),
        *("inputs", "inputs.x", "secrets.X", "steps", "github.", "matrix.list[", "matrix.list[-1]", "matrix.list['1']"),
    ]
)


def _call(arguments: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    names = ["contains", "startsWith", "endsWith", "format", "join", "toJSON", "fromJSON", "case", "success", "Failure"]
    return st.tuples(st.sampled_from([*names, "unknown"]), st.lists(arguments, max_size=4)).map(
        lambda made: f"{made[0]}({', '.join(made[1])})"
    )


def _compound(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    operators = st.sampled_from(["==", "!=", "<", "<=", ">", ">=", "&&", "||"])
    spaces = st.sampled_from([" ", " ", "", "  ", "\n"])
    return st.one_of(
        st.tuples(inner, spaces, operators, spaces, inner).map("".join),
        inner.map(lambda text: f"({text})"),
        inner.map(lambda text: f"!{text}"),
        st.tuples(inner, inner).map(lambda made: f"{made[0]}[{made[1]}]"),
        inner.map(lambda text: f"{text}.*"),
        inner.map(lambda text: f"{text}.name"),
        _call(inner),
    )


expressions = st.one_of(
    st.recursive(st.one_of(_literals, _paths), _compound, max_leaves=8),
    st.text(alphabet="ab.'()[]!=<>&|*,-0x1 \t\"$", max_size=12),
)


# --- workflows --------------------------------------------------------------------------------------------------------
def _mostly(good: st.SearchStrategy[Any], bad: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """A file of many parts must still have a chance to be sound."""
    return st.integers(0, 39).flatmap(lambda number: bad if number == 39 else good)


_scalars = st.one_of(
    st.sampled_from(["x", "", "yes", "a b", "1", "${{ github.ref }}", "v${{ matrix.v }}", "${{ 'text' }}"]),
    st.sampled_from([True, False, None, 0, 1, 5, 1.5, -3, 10**20]),
)
_broken = st.sampled_from(
    ["${{ secrets.X }}", "${{ steps.a }}", "${{ nothing }}", "${{ github.ref", "${{ }}", "${{ a b }}", "${{ f() }}"]
)
_texts = _mostly(_scalars, _broken)
_conditions = _mostly(
    st.sampled_from(
        [
            *(
                "always()",
                "success()",
                "${{ failure() }}",
                "github.ref == 'x'",
                "${{ github.ref }}",
                "true",
                False,
                1,
                "",
            ),
            *(None, "!cancelled()", "needs.a.result", "${{ 'success()' }}", "a ${{ github.ref }}", "${{ always() }} "),
            *("'always()'", "true || 'failure()'", " ${{github.ref}}", "${{ always() }}-${{ github.ref }}"),
        ]
    ),
    st.sampled_from(["matrix.v", "env.A", "failure('a')", "hashFiles('x')", "secrets.X", "x =", "${{ 'x =' }}", "${{"]),
)
_names = _mostly(
    st.sampled_from(["A", "b", "c-d", "e_f", "9g"]), st.sampled_from(["${{ github.ref }}", "${{ insert }}"])
)
_env = _mostly(st.dictionaries(_names, _texts, max_size=3), st.one_of(_texts, st.just([])))
_flags = _mostly(st.sampled_from([True, False, "${{ github.x }}", "${{ true }}"]), st.sampled_from(["true", 1, None]))
_numbers = _mostly(st.sampled_from([1, 0, 2.5, "${{ matrix.v }}"]), st.sampled_from(["3", "x", None]))
_matrix = st.fixed_dictionaries(
    {"v": _mostly(st.lists(_texts, min_size=1, max_size=3), _texts)},
    optional={
        "include": _mostly(st.lists(st.fixed_dictionaries({"v": _texts}, optional={"w": _texts}), max_size=2), _texts),
        "exclude": _mostly(st.lists(st.fixed_dictionaries({"v": _texts}), max_size=2), _texts),
    },
)
_strategy = _mostly(
    st.fixed_dictionaries(
        {}, optional={"matrix": _mostly(_matrix, _texts), "fail-fast": _flags, "max-parallel": _numbers}
    ),
    st.sampled_from([{"other": 1}, "${{ github.x }}", "x", []]),
)
# No two differ by case alone: the TypeScript takes such for two, the C# engine for one.
_ids = _mostly(st.sampled_from(["a", "B", "_c", "d-1", "run"]), st.sampled_from(["9", "__x", "a b", ""]))
_actions = _mostly(
    st.sampled_from(["actions/checkout@v4", "Actions/Checkout@v4", "./local", "docker://alpine:3", "$/x", "a/b/c@v1"]),
    # The TypeScript takes any text for an action, the C# engine does not: `a/b` is left out.
    st.sampled_from(["", "${{ github.ref }}"]),
)
_any_step: dict[str, st.SearchStrategy[Any]] = {
    "id": _ids,
    "name": _texts,
    "if": _conditions,
    "env": _env,
    "continue-on-error": _flags,
    "timeout-minutes": _numbers,
}
_steps = st.one_of(
    st.fixed_dictionaries({"run": _texts}, optional={**_any_step, "shell": _texts, "working-directory": _texts}),
    st.fixed_dictionaries({"uses": _actions}, optional={**_any_step, "with": _env}),
    st.fixed_dictionaries({"run": _texts}, optional=_any_step),
    st.fixed_dictionaries({"uses": _actions}, optional=_any_step),
)
_bad_steps = st.fixed_dictionaries({}, optional={**_any_step, "run": _texts, "uses": _actions, "what": _texts})
_concurrency = _mostly(
    st.one_of(st.just("g"), st.fixed_dictionaries({"group": _texts}, optional={"cancel-in-progress": _flags})),
    st.fixed_dictionaries({}, optional={"group": _texts, "queue": st.sampled_from(["max", "x"])}),
)
_container = _mostly(
    st.one_of(
        st.sampled_from(["alpine", "docker://alpine", "${{ matrix.v }}"]),
        st.fixed_dictionaries({"image": st.just("x")}, optional={"env": _env, "ports": st.lists(st.integers(1, 9))}),
    ),
    # An empty image is left out: the TypeScript's schema refuses it a stage earlier than the C# engine does.
    st.sampled_from(["docker://", {"options": "x"}]),
)
_environment = _mostly(
    st.one_of(_texts, st.fixed_dictionaries({"name": _texts}, optional={"url": _texts})),
    st.fixed_dictionaries({}, optional={"url": _texts, "deployment": _flags}),
)
_any_job: dict[str, st.SearchStrategy[Any]] = {
    "name": _texts,
    "if": _conditions,
    "strategy": _strategy,
    "concurrency": _concurrency,
    "permissions": _mostly(
        st.sampled_from(["read-all", "write-all", {}, {"contents": "read"}]),
        st.sampled_from(["all", {"contents": "all"}, {"x": "read"}]),
    ),
}
_runs_on = _mostly(
    st.sampled_from(["ubuntu-latest", "${{ matrix.v }}", ["a", "b"], ["a", "${{ matrix.v }}"], {"labels": "a"}]),
    st.sampled_from([[], "", {"x": 1}]),
)
_jobs = st.one_of(
    st.fixed_dictionaries(
        {"runs-on": _runs_on},
        optional={
            **_any_job,
            "steps": st.lists(_mostly(_steps, _bad_steps), max_size=3),
            "env": _env,
            "outputs": _env,
            "container": _container,
            "services": st.dictionaries(st.sampled_from(["db", "web"]), _container, max_size=2),
            "environment": _environment,
            "timeout-minutes": _numbers,
            "continue-on-error": _flags,
            "defaults": st.fixed_dictionaries(
                {}, optional={"run": st.fixed_dictionaries({}, optional={"shell": _texts})}
            ),
        },
    ),
    st.fixed_dictionaries(
        {"uses": st.sampled_from(["./.github/workflows/x.yml", "o/r/.github/workflows/x.yml@v1"])},
        optional={**_any_job, "with": _env, "secrets": st.one_of(st.just("inherit"), _env)},
    ),
)


@st.composite
def workflows(draw: st.DrawFn) -> str:
    """The text of a workflow, as JSON, which is YAML: mostly sound, often with one fault or two."""
    keys = draw(st.lists(st.sampled_from(["a", "b", "c", "d_1", "E"]), min_size=1, max_size=3, unique=True))
    jobs: dict[str, Any] = {}
    for key in keys:
        job = draw(_jobs)
        if jobs and draw(st.booleans()):
            before = st.lists(st.sampled_from(list(jobs)), min_size=1, max_size=2)
            job = {**job, "needs": draw(_mostly(before, st.sampled_from([*keys, "x", []])))}
        jobs[key] = job
    root: dict[str, Any] = {
        "on": draw(st.sampled_from(["push", ["push", "pull_request"], {"push": {"branches": "x"}}]))
    }
    optional = draw(st.fixed_dictionaries({}, optional={"env": _env, "concurrency": _concurrency, "name": _texts}))
    return json.dumps({**root, **optional, "jobs": jobs}, indent=1, ensure_ascii=False)
