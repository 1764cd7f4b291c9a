"""Does the template of a set with local processes get its mistakes told?"""

from __future__ import annotations

from typing import Any

import pytest

from ci.scaling import launchers
from ci.scaling.launchers.local_template import check_template


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        ({"image": "busybox", "Nice": 1}, "'image' is no key for local processes"),
        ({"nice": 20}, "nice must be a whole number from 0 to 19"),
        ({"nice": True}, "nice must be"),
        ({"memory_mib": 3}, "memory_mib must be a whole number from 64"),
        ({"work": "builds"}, "work must be the full path"),
        ({"work": "/srv/../etc"}, "work must be the full path"),
        ({"environment": ["A=1"]}, "environment must be a mapping"),
        ({"environment": {"A B": "1"}}, "'A B' is no name of a variable"),
        ({"environment": {"PORT": 80}}, "PORT must be a text"),
        ({"environment": {"FORGE_RUNNER_TOKEN": "x"}}, "FORGE_RUNNER_TOKEN belongs to the forge"),
        ("nice: 1", "The template must be a mapping"),
    ],
)
def test_a_template_is_told_what_is_wrong_with_it(template: Any, problem: str) -> None:
    problems = check_template(template)
    assert any(problem in line for line in problems), problems
    assert launchers.check_template("local", template) == problems


def test_a_right_template_has_no_problems() -> None:
    template = {"environment": {"LANG": "C"}, "work": "/var/work", "nice": 10, "memory_mib": 2048}
    assert check_template(template) == [] and check_template({}) == []
