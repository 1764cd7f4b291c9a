"""Does a job give a called workflow the inputs and secrets that it declares?

The texts are those of actions/runner's WorkflowTemplateConverter."""

from __future__ import annotations

from collections.abc import Iterator

from ci.workflow.document.nodes import Mapping, Node, Scalar
from ci.workflow.problems import Problems
from ci.workflow.workflow import Definition

_OPEN = "${{"


def check_call(uses: Scalar, job: Mapping, called: Definition, problems: Problems) -> None:
    """Record what does not fit between a job's `with` and `secrets` and the called workflow's declarations."""
    given = _pairs(job.get("with"))
    _inputs(uses, given, called["inputs"], problems)
    secrets = job.get("secrets")
    if not isinstance(secrets, Scalar):
        _secrets(uses, _pairs(secrets), called["secrets"], problems)


def _inputs(uses: Scalar, given: dict[str, tuple[str, Node]], declared: Definition, problems: Problems) -> None:
    for name, definition in declared.items():
        value = given.get(name.casefold(), (name, None))[1]
        if value is None:
            if definition.get("required"):
                problems.add(uses.line, uses.column, f"Input {name} is required, but not provided while calling.")
        elif not _fits(value, definition["type"]):
            message = f"Unexpected value '{_text(value)}'. The input {name} of '{uses.text}' is a {definition['type']}"
            problems.add(value.line, value.column, message)
    _undefined("input", given, declared, problems)


def _secrets(uses: Scalar, given: dict[str, tuple[str, Node]], declared: Definition, problems: Problems) -> None:
    for name, definition in declared.items():
        if name.casefold() not in given and (definition or {}).get("required"):
            problems.add(uses.line, uses.column, f"Secret {name} is required, but not provided while calling.")
    _undefined("secret", given, declared, problems)


def _undefined(kind: str, given: dict[str, tuple[str, Node]], declared: Definition, problems: Problems) -> None:
    known = {name.casefold() for name in declared}
    for folded, (name, value) in given.items():
        if folded not in known:
            message = f"Invalid {kind}, {name} is not defined in the referenced workflow."
            problems.add(value.line, value.column, message)


def default_problems(root: Mapping) -> Iterator[tuple[Node, str]]:
    """The defaults of a file's workflow_call inputs that do not have the declared type."""
    trigger = root.get("on")
    call = trigger.get("workflow_call") if isinstance(trigger, Mapping) else None
    inputs = call.get("inputs") if isinstance(call, Mapping) else None
    for key, definition in inputs.pairs if isinstance(inputs, Mapping) else []:
        if not isinstance(definition, Mapping):
            continue
        kind, default = definition.get("type"), definition.get("default")
        if isinstance(kind, Scalar) and isinstance(default, Scalar) and not _fits(default, kind.text):
            yield default, f"Unexpected value '{_text(default)}'. The default of input {key.text} must be a {kind.text}"


def _fits(value: Node, kind: str) -> bool:
    if not isinstance(value, Scalar):
        return True
    if isinstance(value.value, str) and _OPEN in value.value:
        # Known only when the job is about to run.
        return True
    if kind == "boolean":
        return isinstance(value.value, bool)
    if kind == "number":
        return isinstance(value.value, (int, float)) and not isinstance(value.value, bool)
    return True


def _pairs(node: Node | None) -> dict[str, tuple[str, Node]]:
    if not isinstance(node, Mapping):
        return {}
    return {key.text.casefold(): (key.text, value) for key, value in node.pairs}


def _text(node: Node) -> str:
    text = node.text if isinstance(node, Scalar) else ""
    return text if len(text) <= 200 else text[:200] + "[...]"
