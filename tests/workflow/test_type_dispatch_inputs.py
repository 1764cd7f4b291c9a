"""Which typed values does a manual start get?"""

from typing import Any

import pytest

from ci.workflow import InputErrors
from ci.workflow.inputs import payload
from ci.workflow.triggers import dispatch_inputs

from .support import only_problem, with_trigger

WORKFLOW = with_trigger(
    """
  workflow_dispatch:
    inputs:
      text: {default: hello}
      flag: {type: boolean, default: true}
      count: {type: number}
      level: {type: choice, options: [low, high], default: low}
      where: {type: environment}
      must: {required: true}
"""
)


def test_defaults_fill_what_is_not_given() -> None:
    assert dispatch_inputs(WORKFLOW, {"must": "x"}) == {
        "text": "hello",
        "flag": True,
        "count": 0,
        "level": "low",
        "where": "",
        "must": "x",
    }


def test_values_get_their_types() -> None:
    given = {"MUST": 1, "flag": "false", "count": "2.5", "level": "high", "where": "prod", "text": True}
    found = dispatch_inputs(WORKFLOW, given)
    assert found == {"text": "true", "flag": False, "count": 2.5, "level": "high", "where": "prod", "must": "1"}
    assert payload(found)["flag"] == "false"
    assert payload(found)["count"] == "2.5"


@pytest.mark.parametrize(
    ("given", "name", "message"),
    [
        ({}, "must", "A value is required"),
        ({"must": ""}, "must", "A value is required"),
        ({"must": "x", "other": 1}, "other", "Unexpected input"),
        ({"must": "x", "flag": "yes"}, "flag", "Write true or false"),
        ({"must": "x", "count": "many"}, "count", "Write a number"),
        ({"must": "x", "count": "nan"}, "count", "Write a number"),
        ({"must": "x", "count": "1_0"}, "count", "Write a number"),
        ({"must": "x", "level": "middle"}, "level", "Choose one of: low, high"),
        ({"must": ["x"]}, "must", "Give a text"),
        ({"must": "x" * 70_000}, "", "The inputs are too long: at most 65535 characters"),
    ],
)
def test_what_does_not_fit_is_named(given: dict[str, Any], name: str, message: str) -> None:
    with pytest.raises(InputErrors) as refused:
        dispatch_inputs(WORKFLOW, given)
    assert refused.value.errors[name].startswith(message)


def test_all_errors_come_at_once() -> None:
    with pytest.raises(InputErrors) as refused:
        dispatch_inputs(WORKFLOW, {"flag": "x", "count": "y"})
    assert set(refused.value.errors) == {"flag", "count", "must"}


def test_a_workflow_has_at_most_25_inputs() -> None:
    inputs = "".join(f"      i{number}: {{}}\n" for number in range(26))
    text = f"on:\n  workflow_dispatch:\n    inputs:\n{inputs}jobs: {{a: {{runs-on: x}}}}\n"
    assert only_problem(text).message.startswith("workflow_dispatch has more than 25 inputs")
