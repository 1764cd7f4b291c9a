"""What does a workflow ask for that is accepted, but that not every runner or server does?

Found only when somebody asks: it costs a walk over all steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ci.workflow.document.nodes import Mapping as MappingNode
from ci.workflow.document.nodes import Node, Scalar, Sequence
from ci.workflow.problems import MAX_PROBLEMS, Problem

_CONTAINERS = "The bundled runner cannot start containers: this job needs a runner that has Docker"
_UNLESS = (
    "The bundled runner cannot start containers: unless this comes out empty, the job needs a runner that has Docker"
)
_IMAGES = "The bundled runner cannot run container images: this step needs a runner that has Docker"
_DEPRECATION = "deprecationMessage is accepted, but shown nowhere: say it in the description"


def notices(sources: Mapping[str, MappingNode]) -> tuple[Problem, ...]:
    """Of every file among `sources` (path -> its nodes, accepted without a problem), in their order, at most ten."""
    found: list[Problem] = []
    for path, root in sources.items():
        for place, message in (*_inputs(root), *_jobs(root)):
            found.append(Problem(path, place.line, place.column, message))
            if len(found) == MAX_PROBLEMS:
                return tuple(found)
    return tuple(found)


def _inputs(root: MappingNode) -> Iterator[tuple[Scalar, str]]:
    inputs = _within(root, "on", "workflow_dispatch", "inputs")
    for _, definition in _pairs(inputs):
        for key, _ in _pairs(definition):
            if key.text.casefold() == "deprecationmessage":
                yield key, _DEPRECATION


def _jobs(root: MappingNode) -> Iterator[tuple[Scalar, str]]:
    for _, job in _pairs(root.get("jobs")):
        for key, value in _pairs(job):
            name = key.text.casefold()
            if name in ("container", "services") and not _is_empty(value):
                yield key, _UNLESS if _may_be_empty(value) else _CONTAINERS
            elif name == "steps" and isinstance(value, Sequence):
                yield from _steps(value)


def _steps(steps: Sequence) -> Iterator[tuple[Scalar, str]]:
    for step in steps.items:
        for key, value in _pairs(step):
            if key.text.casefold() == "uses" and isinstance(value, Scalar) and value.text.startswith("docker://"):
                yield key, _IMAGES


def _is_empty(value: Node) -> bool:
    return (isinstance(value, Scalar) and not value.text) or (isinstance(value, MappingNode) and not value.pairs)


def _may_be_empty(value: Node) -> bool:
    image = value.get("image") if isinstance(value, MappingNode) else value
    return isinstance(image, Scalar) and image.text.lstrip().startswith("${{")


def _pairs(node: Node | None) -> list[tuple[Scalar, Node]]:
    return node.pairs if isinstance(node, MappingNode) else []


def _within(node: Node | None, *keys: str) -> Node | None:
    for key in keys:
        node = node.get(key) if isinstance(node, MappingNode) else None
    return node
