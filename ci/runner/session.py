"""What do all steps of one job share?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ci.runner import environment
from ci.runner.console import Console
from ci.runner.control import Control, Guard
from ci.runner.env_files import EnvFiles
from ci.runner.hash_files import HashError, hash_files
from ci.runner.masks import Masks
from ci.runner.payload import Payload, mapping
from ci.runner.workspace import Folders
from ci.workflow.expressions import ExactNames, ExpressionError, condition, to_string
from ci.workflow.trees import render_texts, render_tree

Functions = dict[str, Callable[..., object]]


class StepFailure(Exception):
    """The step cannot go on; the text is for its log."""


class BrokenCondition(StepFailure):
    """An `if` that cannot be evaluated."""


@dataclass
class ActionState:
    """What the stages of one use of an action (pre, main, post) hand on to each other."""

    values: dict[str, str] = field(default_factory=dict)
    has_post: bool = False


@dataclass(frozen=True)
class Place:
    """Which action the running steps belong to: what `github.action_*` says."""

    path: Path | None = None
    repository: str = ""
    ref: str = ""


@dataclass
class Post:
    """Something to do after the job's steps, in the reverse order of registration."""

    name: str
    run: Callable[[Console, Guard], None]
    holds: Callable[[], bool]


@dataclass
class Scope:
    """One list of steps with contexts of its own: the job's, or that of a composite action. `broken`: the `if` of a
    step could not be evaluated."""

    trail: tuple[str, ...] = ()
    steps: dict[str, Any] = field(default_factory=dict)
    inputs: dict[str, Any] | None = None
    env: dict[str, str] = field(default_factory=dict)
    place: Place = field(default_factory=Place)
    failed: bool = False
    broken: bool = False
    posts: list[Post] = field(default_factory=list)

    @property
    def composite(self) -> bool:
        return bool(self.trail)


def _given(payload: Payload) -> dict[str, Any]:
    """The contexts that do not change while the job runs."""
    given = payload.contexts
    contexts: dict[str, Any] = {name: mapping(given.get(name)) for name in ("strategy", "needs", "vars", "inputs")}
    # Without a matrix the context is null (GitHub docs, "Contexts reference").
    contexts["matrix"] = mapping(given.get("matrix")) or None
    return contexts


def _runner(name: str, folders: Folders, *, debug: bool) -> dict[str, str]:
    """The `runner` context; `debug` is there only when it is on."""
    found = {
        "name": name,
        "os": environment.system(),
        "arch": environment.architecture(),
        "temp": str(folders.temp),
        "tool_cache": str(folders.tool_cache),
        "workspace": str(folders.pipeline),
        "environment": "self-hosted",
    }
    return {**found, "debug": "1"} if debug else found


class Session:
    """The running job: its payload, folders, environment and state."""

    def __init__(
        self,
        payload: Payload,
        *,
        folders: Folders,
        masks: Masks,
        control: Control,
        runner_name: str,
        tracking: str,
        pass_env: frozenset[str] = frozenset(),
    ) -> None:
        self.payload = payload
        self.folders = folders
        self.masks = masks
        self.control = control
        self.failed = False
        self.env: dict[str, str] = {}
        self.paths: list[str] = []
        self.run_defaults: dict[str, str] = {}
        self.states: dict[tuple[str, ...], ActionState] = {}
        self.base_env = environment.passed(pass_env)
        self.debug = self._wants_debug()
        self._tracking = tracking
        self._processes = 0
        self.next_files()
        self._given = _given(payload)
        self._job = mapping(payload.contexts.get("job"))
        self._secrets = dict(payload.secrets)
        self._github = {
            **payload.github,
            "workspace": str(folders.workspace),
            "event_path": str(folders.temp / "_github_workflow" / "event.json"),
            "job": payload.key,
            "token": payload.token,
        }
        self.runner = _runner(runner_name, folders, debug=self.debug)

    def _wants_debug(self) -> bool:
        """GitHub docs, "Enabling debug logging": a secret or variable ACTIONS_STEP_DEBUG that says true."""
        given = {**mapping(self.payload.contexts.get("vars")), **self.payload.secrets}
        return str(given.get("ACTIONS_STEP_DEBUG", "")).lower() == "true"

    @property
    def status(self) -> str:
        """`job.status`: cancelled wins over failure."""
        if self.control.cancelled:
            return "cancelled"
        return "failure" if self.failed else "success"

    @property
    def server_url(self) -> str:
        return str(self._github.get("server_url") or "").rstrip("/")

    @property
    def workspace(self) -> Path:
        return self.folders.workspace

    def next_files(self) -> None:
        """Environment files for one more step, which its expressions may name before its program runs."""
        self.files = EnvFiles.reserve(self.folders.temp / "_runner_file_commands")
        self._file_context = self.files.context()

    def next_marker(self) -> str:
        """A tracking id for one more program; all of a job's begin alike."""
        self._processes += 1
        return f"{self._tracking}{self._processes}."

    def github(self, scope: Scope, *, action: str = "", place: Place | None = None) -> dict[str, Any]:
        """The `github` context of a step."""
        where = place or scope.place
        status = "failure" if scope.composite and scope.failed and not self.control.cancelled else self.status
        return {
            **self._github,
            **self._file_context,
            "action": action,
            "action_path": str(where.path) if where.path and scope.composite else "",
            "action_repository": where.repository,
            "action_ref": where.ref,
            "action_status": status,
        }

    def contexts(
        self, scope: Scope, *, env: Mapping[str, str] | None = None, action: str = "", place: Place | None = None
    ) -> dict[str, Any]:
        """Every context a step may read. Secrets, vars and needs are not for composite actions (GitHub's schema of
        action.yml): what they shall know is handed in as an input."""
        found: dict[str, Any] = {
            **self._given,
            "github": self.github(scope, action=action, place=place),
            "env": ExactNames({**self.env, **scope.env, **(env or {})}),
            "job": {**self._job, "status": self.status},
            "steps": scope.steps,
            "runner": self.runner,
        }
        if scope.inputs is not None:
            found["inputs"] = scope.inputs
        if scope.composite:
            return {name: value for name, value in found.items() if name not in ("vars", "needs")}
        return {**found, "secrets": self._secrets}

    def early_contexts(self) -> dict[str, Any]:
        """What is known of the job before its first step, for names to show."""
        return {**self._given, "github": self._github}

    def functions(self, scope: Scope, *, as_cancelled: bool = False) -> Functions:
        """The status functions and hashFiles as they answer now, or as they would once the job is cancelled."""
        cancelled = as_cancelled or self.control.cancelled
        failed = scope.failed if scope.composite else self.failed
        return {
            "always": lambda: True,
            "cancelled": lambda: cancelled,
            "success": lambda: not cancelled and not failed,
            "failure": lambda: not cancelled and failed,
            "hashFiles": self._hash,
        }

    def _hash(self, *patterns: object) -> str:
        try:
            return hash_files(self.workspace, [to_string(pattern) for pattern in patterns])
        except HashError as error:
            raise StepFailure(str(error)) from error

    def evaluate(self, value: object, contexts: Mapping[str, object], functions: Functions, *, what: str) -> Any:
        """The value with every expression in it replaced, in lists and mappings too. Raises StepFailure."""
        try:
            return render_tree(value, contexts, functions)
        except ExpressionError as error:
            raise StepFailure(f"The expression in {what} cannot be evaluated: {error}") from error

    def texts(
        self, value: object, contexts: Mapping[str, object], functions: Functions, *, what: str
    ) -> dict[str, str]:
        """An `env`, `with` or `outputs`, a mapping or the expression of one, as texts by name. Raises StepFailure."""
        try:
            return render_texts(value, contexts, functions)
        except ExpressionError as error:
            raise StepFailure(f"{what} cannot be evaluated: {error}") from error

    def text(self, value: object, contexts: Mapping[str, object], functions: Functions, *, what: str) -> str:
        return to_string(self.evaluate(value, contexts, functions, what=what))

    def flag(self, value: object, contexts: Mapping[str, object], functions: Functions, *, what: str) -> bool:
        """A boolean, or the text of one: unlike in an `if` the text 'false' is not true. Raises StepFailure."""
        found = self.evaluate(value, contexts, functions, what=what)
        text = to_string(found).lower()
        if isinstance(found, (dict, list)) or text not in ("true", "false", ""):
            raise StepFailure(f"{what} must be true or false, not '{text[:100]}'")
        return text == "true"

    def holds(self, text: Any, contexts: Mapping[str, object], functions: Functions) -> bool:
        """An `if`. Raises BrokenCondition."""
        try:
            return condition(text, contexts, functions)
        except (ExpressionError, StepFailure) as error:
            raise BrokenCondition(f"The `if` condition '{str(text)[:200]}' cannot be evaluated: {error}") from error

    def runtime_variables(self) -> dict[str, str]:
        """What an action's program sees beyond that of a `run` step."""
        found = self.payload.runtime
        return environment.runtime(
            url=found.url, token=found.token, results_url=found.results_url, cache_url=found.cache_url
        )

    def environment(
        self,
        scope: Scope,
        *,
        env: Mapping[str, str],
        action: str = "",
        place: Place | None = None,
        extra: Mapping[str, str] | None = None,
    ) -> dict[str, str]:
        """All variables of a step's program: the system's, the workflow's, the step's, and the runner's own on top."""
        merged = {**self.base_env, **self.env, **scope.env, **env}
        merged["PATH"] = ":".join([*reversed(self.paths), merged.get("PATH", "")]).rstrip(":")
        merged.update(environment.defaults(self.github(scope, action=action, place=place), self.runner))
        merged.update(environment.id_token(self.payload.id_token_url, self.payload.id_token_request_token))
        merged.update(extra or {})
        return {name: value.replace("\0", "\ufffd") for name, value in merged.items() if name and "=" not in name}
