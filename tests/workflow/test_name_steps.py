"""Which ids do steps get that have none?"""

from typing import Any

import pytest

from ci.workflow.names import step_ids


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        ({"run": "a"}, "__run"),
        ({"uses": "actions/checkout@v4"}, "__actions_checkout"),
        ({"uses": "Actions/Capitalized/sub@v4"}, "__Actions_Capitalized"),
        ({"uses": "org with space/repo with space@v1"}, "__org_with_space_repo_with_space"),
        ({"uses": "./local"}, "__self"),
        ({"uses": "$/local"}, "__self"),
        ({"uses": "docker://alpine:latest"}, "__alpine_latest"),
        ({"uses": "nonsense"}, "__run"),
        ({"wait-all": None}, "__wait-all"),
        ({"id": "mine", "run": "a"}, "mine"),
    ],
)
def test_an_id_says_what_the_step_does(step: dict[str, Any], expected: str) -> None:
    assert step_ids([step]) == [expected]


def test_collisions_are_counted() -> None:
    assert step_ids([{"run": "a"}, {"run": "b"}, {"run": "c"}]) == ["__run", "__run_2", "__run_3"]


def test_an_id_has_at_most_100_characters() -> None:
    uses = f"{'o' * 80}/{'r' * 80}@v1"
    first, second = step_ids([{"uses": uses}, {"uses": uses}])
    assert (len(first), len(second)) == (100, 100)
    assert second.endswith("_2")
    assert first != second
