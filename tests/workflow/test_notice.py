"""What is accepted in a workflow file, but not done by every runner: is it said, by name and place?"""

import pytest

from ci.workflow import Problem, load

from .support import loaded

HEAD = "on: push\njobs:\n  a:\n    runs-on: x\n"
CONTAINERS = "The bundled runner cannot start containers: this job needs a runner that has Docker"


@pytest.mark.parametrize(
    ("lines", "line", "column", "message"),
    [
        ("    container: node:20\n", 5, 5, CONTAINERS),
        ("    container: {image: node, credentials: {username: a, password: b}}\n", 5, 5, CONTAINERS),
        ("    services: {db: {image: postgres, ports: ['5432:5432']}}\n", 5, 5, CONTAINERS),
        ("    container: ${{ matrix.image }}\n", 5, 5, "The bundled runner cannot start containers: unless this comes"),
        ("    container: {image: '${{ matrix.image }}'}\n", 5, 5, "The bundled runner cannot start containers: unless"),
        (
            "    steps: [{run: a}, {name: b, uses: 'docker://alpine:3'}]\n",
            *(5, 33, "The bundled runner cannot run container images: this step needs a runner that has Docker"),
        ),
    ],
)
def test_a_job_that_needs_docker_is_noticed(lines: str, line: int, column: int, message: str) -> None:
    (notice,) = loaded(HEAD + lines).notices
    assert (notice.line, notice.column) == (line, column)
    assert notice.message.startswith(message)


def test_a_deprecation_message_that_nobody_would_see_is_noticed() -> None:
    text = "on: {workflow_dispatch: {inputs: {a: {deprecationMessage: old}}}}\njobs: {a: {runs-on: x}}\n"
    (notice,) = loaded(text).notices
    assert (notice.line, notice.column) == (1, 39)
    assert notice.message.startswith("deprecationMessage is accepted, but shown nowhere")


@pytest.mark.parametrize(
    "lines",
    [
        "",
        "    container: ''\n",
        "    services: {}\n",
        "    permissions: {packages: write}\n",
        "    environment: {name: prod, deployment: false}\n",
        "    steps: [{uses: ./docker}, {run: 'docker://x'}]\n",
    ],
)
def test_what_is_done_or_grants_nothing_anywhere_is_not_noticed(lines: str) -> None:
    assert loaded(HEAD + lines).notices == ()


def test_the_notices_of_called_files_name_those_and_all_together_are_ten_at_most() -> None:
    called = "on: workflow_call\njobs:\n" + "".join(
        f"  j{number}:\n    runs-on: x\n    container: y\n" for number in range(20)
    )
    text = "on: push\njobs:\n  own: {runs-on: x, container: y}\n  call: {uses: ./called.yml}\n"
    found = load("ci.yml", {"ci.yml": text, "called.yml": called}).notices
    assert len(found) == 10
    assert found[:2] == (Problem("ci.yml", 3, 21, CONTAINERS), Problem("called.yml", 5, 5, CONTAINERS))
