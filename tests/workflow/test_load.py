"""What does a good file load as?"""

import json

from ci.workflow import load, trees
from ci.workflow.document.nodes import Mapping, Sequence

from .support import PATH, loaded

FULL = """
name: CI
run-name: Build ${{ github.ref }}
on:
  push:
    branches: main
    tags: [v1, v2]
  schedule:
    - cron: '0 6 * * 1'
      timezone: Europe/London
    - cron: 30 1 * * *
  workflow_dispatch:
    inputs:
      level: {type: choice, options: [low, high], default: low, required: true, description: How much}
      plain:
env: {A: 1, B: true, C: 1.10, D: null, E: 0x10, F: on}
defaults: {run: {shell: bash}}
permissions: {contents: read}
concurrency: {group: g, cancel-in-progress: true}
jobs:
  build:
    runs-on: [self-hosted, linux]
    strategy:
      fail-fast: false
      matrix: {v: [1, '2', true]}
    if: github.ref == 'refs/heads/main'
    timeout-minutes: 5
    outputs: {o: '${{ steps.s.outputs.o }}'}
    steps:
      - uses: actions/checkout@v4
        with: {fetch-depth: 0, clean: false}
      - run: echo hi
      - run: echo ho
      - id: s
        run: echo
  test:
    needs: build
    runs-on: x
"""


def test_it_keeps_every_key_under_githubs_name_and_as_json() -> None:
    workflow = loaded(FULL)
    assert (workflow.path, workflow.name, workflow.run_name) == (PATH, "CI", "Build ${{ github.ref }}")
    assert workflow.on["push"] == {"branches": ["main"], "tags": ["v1", "v2"]}
    assert workflow.schedules == (("0 6 * * 1", "Europe/London"), ("30 1 * * *", None))
    assert workflow.permissions == {"contents": "read"}
    assert workflow.concurrency == {"group": "g", "cancel-in-progress": True}
    assert workflow.defaults == {"run": {"shell": "bash"}}
    build = workflow.jobs["build"]
    assert build["runs-on"] == ["self-hosted", "linux"]
    assert build["strategy"] == {"fail-fast": False, "matrix": {"v": [1, "2", True]}}
    assert build["timeout-minutes"] == 5
    assert build["needs"] == []
    assert workflow.jobs["test"]["needs"] == ["build"]
    assert json.loads(json.dumps(workflow.jobs, allow_nan=False)) == workflow.jobs


def test_it_turns_values_of_texts_into_githubs_text() -> None:
    assert loaded(FULL).env == {"A": "1", "B": "true", "C": "1.1", "D": "", "E": "16", "F": "on"}
    assert loaded(FULL).jobs["build"]["steps"][0]["with"] == {"fetch-depth": "0", "clean": "false"}


def test_it_gives_every_step_an_id() -> None:
    ids = [step["id"] for step in loaded(FULL).jobs["build"]["steps"]]
    assert ids == ["__actions_checkout", "__run", "__run_2", "s"]


def test_it_completes_dispatch_inputs() -> None:
    assert loaded(FULL).dispatch_inputs == {
        "level": {
            "description": "How much",
            "required": True,
            "default": "low",
            "type": "choice",
            "options": ["low", "high"],
        },
        "plain": {"description": "", "required": False, "default": None, "type": "string", "options": []},
    }


def test_a_workflow_without_a_name_is_called_by_its_path() -> None:
    assert loaded("on: push\njobs: {a: {runs-on: x}}").name == PATH


def test_the_forms_of_on_mean_the_same() -> None:
    for on in ("push", "[push]", "{push: }", "{push: {}}"):
        assert dict(loaded(f"on: {on}\njobs: {{a: {{runs-on: x}}}}").on) == {"push": {}}


def test_source_positions_stay_within_reach() -> None:
    source = loaded(FULL).source
    assert (source.line, source.column) == (2, 1)
    jobs = source.get("jobs")
    assert isinstance(jobs, Mapping)
    build = jobs.get("build")
    assert isinstance(build, Mapping)
    steps = build.get("steps")
    assert isinstance(steps, Sequence)
    first, second = (
        FULL.split("\n").index(text) + 1 for text in ("      - uses: actions/checkout@v4", "      - run: echo hi")
    )
    assert (steps.line, steps.column) == (first, 7)
    assert (steps.items[1].line, steps.items[1].column) == (second, 9)


def test_anchors_and_aliases_work_across_jobs() -> None:
    workflow = loaded(
        """
        on: push
        jobs:
          a: {runs-on: x, env: &common {A: b}}
          b: {runs-on: x, env: *common}
        """
    )
    assert workflow.jobs["b"]["env"] == {"A": "b"}


def test_a_tab_inside_a_plain_scalar_is_accepted() -> None:
    workflow = loaded("on: push\njobs:\n  a:\n    runs-on: x\n    if: github.ref\t== 'x'\n")
    assert workflow.jobs["a"]["if"] == "github.ref\t== 'x'"


def test_bytes_with_a_byte_order_mark_and_windows_line_ends_are_accepted() -> None:
    text = b"\xef\xbb\xbfon: push\r\njobs:\r\n  a:\r\n    runs-on: x\r\n"
    assert load(PATH, {PATH: text}).jobs["a"]["runs-on"] == "x"


def test_numbers_follow_yaml_1_2_and_doubles() -> None:
    env = "{a: 12_345, b: 1345678912345678912, c: 0o17, d: 1e3, e: '1', f: .5, g: 017, h: yes, i: 1e999, j: -0}"
    expected = ["12_345", "1.34567891234568E+18", "15", "1000", "1", "0.5", "17", "yes", "Infinity", "0"]
    assert list(loaded(f"on: push\nenv: {env}\njobs: {{a: {{runs-on: x}}}}").env.values()) == expected


def test_containers_services_and_environments_are_kept() -> None:
    job = loaded(
        """
        on: push
        jobs:
          a:
            runs-on: x
            container: {image: 'node:20', env: {A: 1}, ports: [80]}
            services: {db: {image: postgres, ports: ['5432:5432']}}
            environment: {name: prod, url: 'https://x/${{ steps.a.outputs.b }}'}
        """
    ).jobs["a"]
    assert job["container"] == {"image": "node:20", "env": {"A": "1"}, "ports": ["80"]}
    assert job["services"] == {"db": {"image": "postgres", "ports": ["5432:5432"]}}
    assert job["environment"]["name"] == "prod"


def test_a_job_that_calls_a_workflow_is_kept_whole() -> None:
    job = loaded(
        """
        on: push
        jobs:
          a:
            uses: o/r/.github/workflows/w.yml@v1
            with: {n: 1, s: x, b: true}
            secrets: inherit
        """
    ).jobs["a"]
    assert job == {
        "uses": "o/r/.github/workflows/w.yml@v1",
        "with": {"n": 1, "s": "x", "b": True},
        "secrets": "inherit",
        "needs": [],
    }


def test_an_expression_for_a_whole_mapping_stays_a_mapping() -> None:
    workflow = loaded(
        """
        on: push
        env: ${{ fromJSON(vars.e) }}
        jobs: {a: {runs-on: x, env: '${{ fromJSON(vars.e) }}', steps: [{run: x, env: '${{ fromJSON(vars.e) }}'}]}}
        """
    )
    expected = {"${{ insert }}": "${{ fromJSON(vars.e) }}"}
    job = workflow.jobs["a"]
    assert workflow.env == job["env"] == job["steps"][0]["env"] == expected
    assert trees.render_texts(expected, {"vars": {"e": '{"A": 1}'}}) == {"A": "1"}


def test_a_lone_text_in_an_expression_is_that_text() -> None:
    text = "on: push\ndefaults: {run: {shell: \"${{ 'it''s {0}' }}\"}}\njobs: {a: {runs-on: x}}"
    assert loaded(text).defaults == {"run": {"shell": "it's {0}"}}
