"""Which workflows do the jobs of a file call, and do the calls fit?

The order of the checks and their texts are those of actions/runner's ReusableWorkflowsLoader."""

from __future__ import annotations

from collections.abc import Mapping as Files
from dataclasses import dataclass

from ci.workflow.document.build import called_workflow
from ci.workflow.document.calling import check_call, default_problems
from ci.workflow.document.loading import accept
from ci.workflow.document.nodes import Mapping, Node, Scalar, Sequence
from ci.workflow.document.reader import path_size
from ci.workflow.options import Options
from ci.workflow.permissions import Permissions, escalation
from ci.workflow.problems import Problems
from ci.workflow.uses import Reference, UsesError, resolve
from ci.workflow.workflow import Definition

CALL = "workflow_call"
Texts = Files[str, "str | bytes | None"]


@dataclass(frozen=True, slots=True)
class _File:
    """A file that was accepted: its nodes, and what a caller's job holds of it (its jobs not yet linked)."""

    reference: Reference
    root: Mapping
    called: Definition


class Linker:
    """Puts under `called` of every call job what it calls, level by level. Stops a branch at its first problem."""

    def __init__(self, path: str, files: Texts, problems: Problems, options: Options) -> None:
        self._files = files
        self._problems = problems
        self._options = options
        self._strict = len(files) > 1 if options.require_called is None else options.require_called
        self._known: dict[str, _File | None] = {}
        self._jobs = 0
        self._size = 0
        self.sources: dict[str, Mapping] = {}
        self._root = Reference(path, path)

    def link(self, root: Mapping, jobs: dict[str, Definition], permissions: Permissions) -> dict[str, Definition]:
        """The jobs of the root file, each call with the workflow it calls under `called`."""
        self.sources[self._root.path] = root
        self._jobs = len(jobs)
        self._size = _size(self._root, root)
        return self._link(self._root, root, jobs, permissions, (self._root,), self._problems)

    def _link(
        self,
        caller: Reference,
        root: Mapping,
        jobs: dict[str, Definition],
        permissions: Permissions,
        chain: tuple[Reference, ...],
        problems: Problems,
    ) -> dict[str, Definition]:
        nodes = root.get("jobs")
        assert isinstance(nodes, Mapping)
        linked: dict[str, Definition] = {}
        for key, job in nodes.pairs:
            definition = jobs[key.text]
            if "uses" in definition and isinstance(job, Mapping) and not self._problems.full:
                allowed = definition.get("permissions", permissions)
                called = self._call(caller, key, job, allowed, chain, problems)
                definition = definition if called is None else {**definition, "called": called}
            linked[key.text] = definition
        return linked

    def _call(
        self,
        caller: Reference,
        key: Scalar,
        job: Mapping,
        allowed: Permissions,
        chain: tuple[Reference, ...],
        problems: Problems,
    ) -> Definition | None:
        uses = job.get("uses")
        assert isinstance(uses, Scalar)
        file = self._open(uses, caller, chain, problems)
        if file is None:
            return None
        before = len(problems)
        check_call(uses, job, file.called, problems)
        self._permissions(key, uses.text, file, allowed, problems)
        if not self._within_bounds(uses, file, problems) or len(problems) > before:
            return None
        below = allowed if file.called["permissions"] is None else file.called["permissions"]
        inside = problems.inside(file.reference.key)
        jobs = self._link(file.reference, file.root, file.called["jobs"], below, (*chain, file.reference), inside)
        return {**file.called, "jobs": jobs}

    def _open(self, uses: Scalar, caller: Reference, chain: tuple[Reference, ...], problems: Problems) -> _File | None:
        """The called file; None where it is refused, or left open as nobody gave it."""
        try:
            reference = resolve(uses.text, caller)
        except UsesError:
            # Reported already, when the calling file was checked.
            return None
        if any(reference.key == above.key for above in chain):
            route = " calls ".join(f"'{above.key}'" for above in (*chain, reference))
            problems.add(uses.line, uses.column, f"Workflows may not call themselves: {route}. Remove one of the calls")
            return None
        if len(chain) > self._options.max_nested_calls:
            most = self._options.max_nested_calls
            problems.add(uses.line, uses.column, f"Nested reusable workflow depth exceeded {most}. Nest fewer calls")
            return None
        if reference.key not in self._known:
            if len(self._known) >= self._options.max_files:
                message = f"More than {self._options.max_files} workflows are called. Call fewer different files"
                problems.add(uses.line, uses.column, message)
                return None
            self._known[reference.key] = self._read(reference, uses, problems)
        return self._known[reference.key]

    def _read(self, reference: Reference, uses: Scalar, problems: Problems) -> _File | None:
        text = self._files.get(reference.key)
        if text is None and reference.repository is None:
            text = self._files.get(f"./{reference.key}")
        if text is None:
            if self._strict or reference.key in self._files:
                message = (
                    f"The workflow '{uses.text}' was not found. Check its path, and that this repository may read it"
                )
                problems.add(uses.line, uses.column, message)
            return None
        inside = Problems(reference.key, github_only=problems.github_only)
        accepted = accept(text, inside, self._options)
        if accepted is None or inside:
            _forward(uses, inside, problems)
            return None
        root, value = accepted
        trigger = root.get("on")
        if trigger is None or not calls_allowed(trigger):
            place = trigger or root
            inside.add(
                place.line, place.column, f"{CALL} key is not defined in the referenced workflow. Add it to 'on:'"
            )
        for node, message in default_problems(root):
            inside.add(node.line, node.column, message)
        if inside:
            _forward(uses, inside, problems)
            return None
        self.sources[reference.key] = root
        return _File(reference, root, called_workflow(reference, value))

    def _permissions(self, key: Scalar, uses: str, file: _File, allowed: Permissions, problems: Problems) -> None:
        wanted = [(f"The workflow '{uses}'", file.called["permissions"])]
        for name, job in file.called["jobs"].items():
            shown = str(job.get("name") or name)
            wanted.append((f"The nested job '{shown}'", job.get("permissions")))
        for who, requested in wanted:
            beyond = escalation(requested, allowed, default=self._options.permissions_policy)
            if beyond is not None:
                asked, given = beyond
                message = f"{who} is requesting '{asked}', but is only allowed '{given}'."
                problems.add(key.line, key.column, f"Error calling workflow '{uses}'. {message}")

    def _within_bounds(self, uses: Scalar, file: _File, problems: Problems) -> bool:
        """Whether the run stays within its bounds when this file is called once more."""
        self._jobs += len(file.called["jobs"])
        self._size += _size(file.reference, file.root)
        if self._jobs > self._options.max_jobs:
            message = f"Workflows may not contain more than {self._options.max_jobs} jobs across all referenced files"
            problems.add(uses.line, uses.column, message)
            return False
        if self._size > self._options.max_result_size:
            message = "Maximum object size exceeded: with all called workflows it holds too many values"
            problems.add(uses.line, uses.column, message)
            return False
        return True


def calls_allowed(trigger: Node) -> bool:
    """Whether an `on:` names workflow_call."""
    if isinstance(trigger, Scalar):
        return trigger.text == CALL
    if isinstance(trigger, Sequence):
        return any(calls_allowed(item) for item in trigger.items)
    assert isinstance(trigger, Mapping)
    return any(key.text == CALL for key, _ in trigger.pairs)


def _size(reference: Reference, root: Mapping) -> int:
    return path_size(reference.key) + root.size


def _forward(uses: Scalar, inside: Problems, problems: Problems) -> None:
    """Report what is wrong in a called file where it is called, as GitHub does."""
    for problem in inside:
        problems.add(uses.line, uses.column, f"Error from called workflow {problem}")
