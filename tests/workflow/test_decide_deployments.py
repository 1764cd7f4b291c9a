"""Is a job a deployment to the environment that it names?"""

from __future__ import annotations

import pytest

from ci.workflow import PlanError, WorkflowErrors, load
from ci.workflow.deployments import deploys

CONTEXTS = {
    "github": {"ref_name": "main"},
    "matrix": {"deploy": False, "name": "staging", "all": {"name": "x", "deployment": False}},
    "vars": {},
}
FILE = """
on: push
jobs:
  a:
    runs-on: linux
    environment:
      name: production
      deployment: VALUE
    steps: [{run: echo}]
"""


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        (None, False),
        ("", False),
        ("production", True),
        ("${{ matrix.name }}", True),
        ("${{ matrix.missing }}", False),
        ("${{ matrix.all }}", False),
        ({"name": "production"}, True),
        ({"name": "${{ matrix.missing }}", "deployment": True}, False),
        ({"name": "production", "deployment": True}, True),
        ({"name": "production", "deployment": False}, False),
        ({"name": "production", "deployment": "${{ github.ref_name == 'main' }}"}, True),
        ({"name": "production", "deployment": "${{ github.ref_name != 'main' }}"}, False),
        ({"name": "production", "deployment": "${{ matrix.deploy }}"}, False),
        ({"name": "production", "deployment": "${{ 'FALSE' }}"}, False),
        ({"name": "production", "deployment": "${{ vars.missing }}"}, True),
    ],
)
def test_it_is_unless_it_says_false(environment: object, expected: bool) -> None:
    assert deploys(environment, CONTEXTS) is expected


def test_what_is_neither_true_nor_false_is_refused() -> None:
    with pytest.raises(PlanError, match=r"environment\.deployment must be true or false, not 'staging'"):
        deploys({"name": "production", "deployment": "${{ matrix.name }}"}, CONTEXTS)


@pytest.mark.parametrize("value", ["true", "false", "${{ github.ref_name == 'main' }}"])
def test_a_file_may_say_it_as_a_boolean_or_an_expression(value: str) -> None:
    assert load("ci.yml", {"ci.yml": FILE.replace("VALUE", value)}).jobs["a"]["environment"]["name"] == "production"


@pytest.mark.parametrize("value", ["'no'", "1", "[true]", "${{ secrets.X }}"])
def test_a_file_may_not_say_anything_else(value: str) -> None:
    with pytest.raises(WorkflowErrors):
        load("ci.yml", {"ci.yml": FILE.replace("VALUE", value)})
