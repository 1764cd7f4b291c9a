"""What do `::commands::` in a step's output do?"""

from __future__ import annotations

from typing import Any

import pytest

from ci.runner.commands import Interpreter, parse


class Page:
    """A step that remembers what happened to it."""

    def __init__(self, *, debug: bool = False) -> None:
        self.debug = debug
        self.lines: list[str] = []
        self.annotations: list[dict[str, Any]] = []
        self.masked: list[str] = []
        self.outputs: dict[str, str] = {}
        self.states: dict[str, str] = {}
        self.failures: list[str] = []

    def print(self, text: str) -> None:
        self.lines.append(text)

    def annotate(self, annotation: dict[str, Any]) -> None:
        self.annotations.append(annotation)

    def mask(self, value: str) -> None:
        self.masked.append(value)

    def set_output(self, name: str, value: str) -> None:
        self.outputs[name] = value

    def save_state(self, name: str, value: str) -> None:
        self.states[name] = value

    def fail(self, message: str) -> None:
        self.failures.append(message)


def obey(*lines: str, debug: bool = False) -> Page:
    page = Page(debug=debug)
    interpreter = Interpreter(page, workspace="/w/octo/hello")
    for line in lines:
        interpreter.line(line)
    return page


def test_messages_become_annotations_and_marked_lines() -> None:
    page = obey(
        "::warning file=/w/octo/hello/src/a.py,line=3,endLine=4,col=5,endColumn=6,title=A%3AB%2CC::one%0Atwo%25"
    )
    assert page.lines == ["##[warning]one", "two%"]
    assert page.annotations == [
        {
            "level": "warning", "message": "one\ntwo%", "title": "A:B,C", "path": "src/a.py",
            "line": 3, "end_line": 4, "column": 5, "end_column": 6,
        }
    ]  # fmt: skip


@pytest.mark.parametrize(
    "line", ["::error line=-1::x", "::error line=abc::x", "::error line=99999999999::x", "::error line=٣::x"]
)
def test_line_numbers_that_are_none_are_left_out(line: str) -> None:
    assert obey(line).annotations == [{"level": "error", "message": "x"}]


def test_groups_are_translated_and_markers_pass() -> None:
    page = obey("::group::Install", "inside", "::endgroup::", "##[group]Raw", "##[endgroup]")
    assert page.lines == ["##[group]Install", "inside", "##[endgroup]", "##[group]Raw", "##[endgroup]"]


def test_what_is_no_command_is_printed_as_it_is() -> None:
    lines = ["std::vector<int>::iterator", "::unknown::x", "::", "a ::error::x", "::error", "\x1b[1m::group::"]
    assert obey(*lines).lines == lines
    assert parse("  ::notice::leading space is allowed") is not None


def test_debug_shows_only_when_debugging() -> None:
    assert obey("::debug::d").lines == []
    assert obey("::debug::d", debug=True).lines == ["##[debug]d"]


def test_masks_are_taken_and_not_echoed() -> None:
    page = obey("::add-mask::top secret", "::add-mask::")
    assert page.masked == ["top secret"]
    assert page.lines == ["##[warning]Can't add secret mask for empty string in ##[add-mask] command."]


def test_stopped_commands_are_inert_until_the_token_comes() -> None:
    page = obey("::stop-commands::tok-1", "::add-mask::x", "::error::no", "::wrong::", "::tok-1::", "::add-mask::y")
    assert page.masked == ["y"] and page.annotations == []
    assert page.lines == ["::stop-commands::tok-1", "::add-mask::x", "::error::no", "::wrong::", "::tok-1::"]


@pytest.mark.parametrize("token", ["", "  ", "error", "Add-Mask", "pause-logging"])
def test_a_stop_token_that_could_be_a_command_is_refused(token: str) -> None:
    page = obey(f"::stop-commands::{token}", "::add-mask::still works")
    assert page.failures and page.masked == ["still works"]


def test_echo_shows_commands_from_then_on() -> None:
    page = obey("::echo::on", "::add-mask::x", "::echo::off", "::add-mask::y", "::echo::maybe")
    assert page.lines == ["::echo::on", "::add-mask::x"]
    assert page.failures


def test_the_old_output_commands_work_with_a_warning_once() -> None:
    page = obey("::set-output name=a::1%0A2", "::set-output name=b::3", "::save-state name=s::4", "::set-output ::5")
    assert page.outputs == {"a": "1\n2", "b": "3"} and page.states == {"s": "4"}
    assert [annotation["level"] for annotation in page.annotations] == ["warning", "warning"]
    assert page.failures == ["Required field 'name' is missing in ##[set-output] command."]


@pytest.mark.parametrize("line", ["::set-env name=PATH::/evil", "::add-path::/evil"])
def test_the_commands_that_let_output_change_the_environment_are_refused(line: str) -> None:
    assert "is disabled" in obey(line).failures[0]
