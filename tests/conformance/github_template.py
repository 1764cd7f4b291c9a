"""What does a loaded workflow look like in the JSON shape of GitHub's own parser?

The shape is that of actions/runner's WorkflowTemplate as it is serialized: tokens, jobs with generated step ids and
whole conditions, permissions as plain maps."""

from __future__ import annotations

import re
from typing import Any

from ci.workflow import Workflow
from ci.workflow.document.build import triggers
from ci.workflow.document.conversion import Conversion
from ci.workflow.document.nodes import Mapping, Node, Scalar, Sequence
from ci.workflow.document.schema import ROOT
from ci.workflow.expressions import condition_source, expression_of
from ci.workflow.permissions import explicit
from ci.workflow.problems import Problems

Json = Any
_LONE_TEXT = re.compile(r"\$\{\{\s*'((?:[^']|'')*)'\s*\}\}")
_INSERT = re.compile(r"\s*\$\{\{\s*insert\s*\}\}\s*")
_JOB_TOKENS = (
    *("strategy", "continue-on-error", "timeout-minutes", "cancel-timeout-minutes", "concurrency", "env"),
    *("environment", "defaults", "runs-on", "container", "services", "outputs", "snapshot"),
)
_STEP_TOKENS = (
    *("name", "continue-on-error", "timeout-minutes", "env", "working-directory", "shell", "run", "uses", "with"),
    *("background", "wait", "wait-all", "cancel", "parallel"),
)


def render(workflow: Workflow, *, include_source: bool = False, events: bool = False) -> Json:
    """The template of a workflow. `include_source`: with the file, line and column of every token. `events`: with the
    events, as GitHub's TypeScript parser has them."""
    template = _Template(workflow, include_source)
    root = template.file(workflow.path)
    result = {key: root.token(key) for key in ("env", "defaults", "concurrency") if key in root.value}
    if (granted := _permissions(root.value.get("permissions"))) is not None:
        result["permissions"] = granted
    result["jobs"] = template.jobs(root, workflow.jobs, granted)
    if include_source:
        result["file-table"] = sorted(template.table)
    if events:
        result["events"] = _events(root.value["on"])
    return result


def _permissions(raw: Json) -> Json:
    found = explicit(raw)
    return None if found is None else {name: level for name, level in found.items() if level != "none"}


def _events(on: Json) -> Json:
    found: Json = dict(triggers(on))
    if isinstance(on, dict) and "schedule" in on:
        found["schedule"] = on["schedule"]
    for name in {"workflow_call", "workflow_dispatch"} & found.keys():
        config = {key: value for key, value in found[name].items() if key != "outputs"}
        if isinstance(config.get("inputs"), dict):
            config["inputs"] = {key: _input(value or {}) for key, value in config["inputs"].items()}
        if isinstance(config.get("secrets"), dict):
            config["secrets"] = {key: value or {} for key, value in config["secrets"].items()}
        found[name] = config
    return found


def _input(declared: Json) -> Json:
    """With its type, as the TypeScript has it: it knows no numbers, and leaves out a default that is an expression."""
    shown = {"type": "string", **declared}
    default = shown.get("default")
    number = shown["type"] == "number"
    unshown = {"type", "default"} if number else {"default"} if isinstance(default, str) and "${{" in default else set()
    return {key: value for key, value in shown.items() if key not in unshown}


class _Template:
    def __init__(self, workflow: Workflow, include_source: bool) -> None:
        self.workflow = workflow
        self.include_source = include_source
        self.table: list[str] = []

    def file(self, path: str) -> _File:
        if path not in self.table:
            self.table.append(path)
        number = self.table.index(path) + 1
        return _File(self.workflow.sources[path], number if self.include_source else None)

    def jobs(self, file: _File, definitions: Json, inherited: Json) -> Json:
        nodes = file.root.get("jobs")
        assert isinstance(nodes, Mapping)
        return [self._job(file, key, node, definitions[key.text], inherited) for key, node in nodes.pairs]

    def _job(self, file: _File, key: Scalar, node: Node, definition: Json, inherited: Json) -> Json:
        assert isinstance(node, Mapping)
        value = file.value["jobs"][key.text]
        calls = "uses" in value
        own = _permissions(value.get("permissions"))
        granted = inherited if own is None else own
        name = node.get("name")
        named = isinstance(name, Scalar) and name.text != ""
        job = {
            "type": "reusableWorkflowJob" if calls else "job",
            "id": file.literal(key, key.text),
            "name": file.of(name, value["name"]) if name is not None and named else file.literal(key, key.text),
            "if": file.condition(node.get("if")),
        }
        needs = node.get("needs")
        listed = needs.items if isinstance(needs, Sequence) else [] if needs is None else [needs]
        if listed or calls:
            job["needs"] = [file.of(need, need.text) for need in listed if isinstance(need, Scalar)]
        job |= file.tokens(node, value, ("strategy", "concurrency") if calls else _JOB_TOKENS)
        if calls:
            job |= self._call(file, node, value, definition, granted)
        else:
            if granted is not None:
                job["permissions"] = granted
            steps = node.get("steps")
            if isinstance(steps, Sequence) and steps.items:
                job["steps"] = [
                    _step(file, step, raw, made["id"])
                    for step, raw, made in zip(steps.items, value["steps"], definition["steps"], strict=True)
                ]
        return job

    def _call(self, file: _File, node: Mapping, value: Json, definition: Json, granted: Json) -> Json:
        uses = node.get("uses")
        assert isinstance(uses, Scalar)
        job: Json = {"ref": file.literal(uses, uses.text)}
        if node.get("with") is not None:
            job["input-values"] = file.of(node.get("with"), value["with"])
        if value.get("secrets") == "inherit":
            job["inherit-secrets"] = True
        elif node.get("secrets") is not None:
            job["secret-values"] = file.of(node.get("secrets"), value["secrets"])
        called = definition.get("called")
        if called is None:
            return job if granted is None else job | {"permissions": granted}
        inner = self.file(called["key"])
        on = inner.root.get("on")
        call = on.get("workflow_call") if isinstance(on, Mapping) else None
        for key, name in (("inputs", "input-definitions"), ("secrets", "secret-definitions"), ("outputs", "outputs")):
            if isinstance(call, Mapping) and (declared := call.get(key)) is not None:
                job[name] = inner.of(declared, inner.value["on"]["workflow_call"][key])
        job |= inner.tokens(inner.root, inner.value, ("env", "defaults"))
        if "concurrency" in inner.value:
            job["embedded-concurrency"] = inner.token("concurrency")
        asked = _permissions(called["permissions"])
        passed = granted if asked is None else asked
        if passed is not None:
            job["permissions"] = passed
        return job | {"jobs": self.jobs(inner, called["jobs"], passed)}


def _step(file: _File, node: Node, value: Json, identifier: str) -> Json:
    assert isinstance(node, Mapping)
    return {"id": identifier, "if": file.condition(node.get("if")), **file.tokens(node, value, _STEP_TOKENS)}


class _File:
    """A file's nodes beside their converted values, which say whether a scalar is text, number or flag."""

    def __init__(self, root: Mapping, number: int | None) -> None:
        self.root = root
        self.number = number
        self.value: Json = Conversion(Problems("", github_only=True)).convert(root, ROOT)

    def token(self, key: str) -> Json:
        return self.of(self.root.get(key), self.value[key])

    def tokens(self, node: Mapping, value: Json, keys: tuple[str, ...]) -> Json:
        return {key: self.of(node.get(key), value[key]) for key in keys if key in value}

    def of(self, node: Node | None, value: Json) -> Json:
        if isinstance(node, Sequence):
            items = [self.of(item, part) for item, part in zip(node.items, value, strict=True)]
            return {"type": 1, **self.place(node), "seq": items}
        if isinstance(node, Mapping):
            pairs = [{"Key": self.key(key), "Value": self.of(item, _part(value, key))} for key, item in node.pairs]
            return {"type": 2, **self.place(node), "map": pairs}
        assert isinstance(node, Scalar)
        return self.scalar(node, value)

    def key(self, key: Scalar) -> Json:
        if _INSERT.fullmatch(key.text):
            return {"type": 4, **self.place(key), "directive": "insert"}
        return self.scalar(key, key.text)

    def scalar(self, node: Scalar, value: Json) -> Json:
        if isinstance(node.value, str) and "${{" in node.value:
            lone = _LONE_TEXT.fullmatch(node.value)
            if lone is None:
                return {"type": 3, **self.place(node), "expr": expression_of(node.value)}
            value = lone[1].replace("''", "'")
        return self.literal(node, value)

    def literal(self, node: Scalar, value: Json) -> Json:
        if self.number is None:
            return value
        place = self.place(node)
        if value is None:
            return {"type": 7, **place}
        if isinstance(value, bool):
            return {"type": 5, **place, "bool": value}
        if isinstance(value, (int, float)) or (isinstance(node.value, float) and value in {"Infinity", "-Infinity"}):
            return {"type": 6, **place, "num": value}
        return {"type": 0, **place, "lit": value}

    def condition(self, node: Node | None) -> Json:
        if node is None:
            return {"type": 3, "expr": condition_source(None)}
        assert isinstance(node, Scalar)
        return {"type": 3, **self.place(node), "expr": condition_source(node.value)}

    def place(self, node: Node) -> Json:
        return {} if self.number is None else {"file": self.number, "line": node.line, "col": node.column}


def _part(value: Json, key: Scalar) -> Json:
    """The converted value of a key, which stands under the schema's spelling."""
    if key.text in value:
        return value[key.text]
    return next(part for name, part in value.items() if name.casefold() == key.text.casefold())
