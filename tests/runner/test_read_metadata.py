"""Which action.yml is taken, and what is said of a wrong one?"""

from __future__ import annotations

from pathlib import Path

import pytest

from ci.runner.actions import Reference
from ci.runner.environment import input_variable
from ci.runner.git import safe_ref
from ci.runner.metadata import MetadataError, load, with_ids
from ci.runner.session import StepFailure


def write(folder: Path, text: str) -> Path:
    (folder / "action.yml").write_text(text)
    return folder


def test_words_of_yaml_1_1_stay_texts(tmp_path: Path) -> None:
    action = load(
        write(
            tmp_path,
            "inputs: {a: {default: yes}, b: {default: 2026-11-30}, c: {default: true}}\n"
            "runs: {using: composite, steps: []}",
        ),
        label="x",
    )
    assert [item["default"] for item in action.inputs.values()] == ["yes", "2026-11-30", True]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("runs: {using: docker, image: Dockerfile}", "container action"),
        ("runs: {using: node20}", "has no 'runs.main'"),
        ("runs: {using: perl}", "not supported"),
        ("name: x", "has no 'runs.using'"),
        ("- a", "must be a mapping"),
        ("a: [", "cannot be read"),
        ("[" * 5000, "nested too deeply"),
        ("runs: {using: composite, steps: [{name: x}]}", "either 'run' or 'uses'"),
        ("runs: {using: composite}", "must have a list"),
        ("x: " + "y" * 1_100_000, "larger than"),
        ("a: \xff\x00", "cannot be read"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "action.yml").write_bytes(text.encode("latin-1"))
    with pytest.raises(MetadataError, match=message):
        load(tmp_path, label="octo/x@v1")


def test_steps_get_githubs_generated_ids() -> None:
    steps = [{"run": "a"}, {"run": "b"}, {"uses": "actions/checkout@v4"}, {"uses": "./x"}, {"id": "own", "run": "c"}]
    assert [step["id"] for step in with_ids(steps)] == ["__run", "__run_2", "__actions_checkout", "__self", "own"]


def test_references_are_taken_apart() -> None:
    assert Reference.read("o/r/a/b@refs/heads/x") == Reference("o/r", "a/b", "refs/heads/x")


@pytest.mark.parametrize(
    "uses", ["o/r", "o@v1", "o/r@", "o/r@-x", "o/r@a..b", "o/r/../x@v1", "https://x/o/r@v1", "o/r@v 1"]
)
def test_other_references_are_refused(uses: str) -> None:
    with pytest.raises(StepFailure, match="Expected format"):
        Reference.read(uses)


@pytest.mark.parametrize(
    ("ref", "safe"), [("main", True), ("a/b.c-d", True), ("-f", False), ("a:b", False), ("a\n", False), ("", False)]
)
def test_refs_that_git_could_misread_are_unsafe(ref: str, safe: bool) -> None:
    assert safe_ref(ref) is safe


def test_inputs_become_variables_as_on_github() -> None:
    assert input_variable("fetch-depth two") == "INPUT_FETCH-DEPTH_TWO"
