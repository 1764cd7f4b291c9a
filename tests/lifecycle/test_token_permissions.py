"""What a job's token may do with its repository: what `permissions` of the job or its workflow say, else read."""

import pytest

from ci.lifecycle import tokens
from forge.access import can_read, can_write, readable_repositories
from tests.playground import ONE_JOB, Playground


def granted(playground: Playground, line: str) -> tuple[bool, bool]:
    playground.run(line + ONE_JOB.replace("\n    ", "\n"))
    actor = tokens.actor_of_job_token(playground.assigned().token)
    assert actor is not None
    listed = playground.repository in readable_repositories(actor)
    assert listed is can_read(actor, playground.repository)
    return listed, can_write(actor, playground.repository)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", (True, False)),
        ("permissions: read-all", (True, False)),
        ("permissions: write-all", (True, True)),
        ("permissions: {contents: write}", (True, True)),
        ("permissions: {contents: none}", (False, False)),
        ("permissions: {issues: write}", (False, False)),
        ("permissions: {}", (False, False)),
    ],
)
def test_the_token_of_a_job_in_a_private_repository(
    playground: Playground, line: str, expected: tuple[bool, bool]
) -> None:
    assert granted(playground, line) == expected


def test_a_public_repository_is_readable_whatever_the_permissions(playground: Playground) -> None:
    playground.repository.private = False
    playground.repository.save()
    assert granted(playground, "permissions: {}") == (True, False)
