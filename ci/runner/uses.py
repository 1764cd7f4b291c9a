"""How does a `uses:` step run, whatever kind of action it names?"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from ci.runner.actions import Actions
from ci.runner.builtin import catalog
from ci.runner.builtin.launch import BuiltIn
from ci.runner.checkout import INPUTS as CHECKOUT_INPUTS
from ci.runner.checkout import Checkout
from ci.runner.console import Console
from ci.runner.control import Guard
from ci.runner.javascript import JavaScript
from ci.runner.metadata import Action
from ci.runner.scripts import Failed, show_env
from ci.runner.session import ActionState, Place, Post, Scope, Session, StepFailure

MOST_NESTED = 10


class Performer(Protocol):
    """What runs the steps of a composite action."""

    def perform(self, scope: Scope, step: dict[str, Any], *, console: Console, parent: Guard) -> str: ...


class Cancelled(StepFailure):
    """A step inside the action was ended by the cancel."""


@dataclass(frozen=True)
class Pre:
    """A stage to run before the job's steps."""

    name: str
    run: Callable[[Console, Guard], None]
    holds: Callable[[], bool]


def title(
    session: Session, scope: Scope, step: dict[str, Any], *, env: dict[str, str] | None = None, early: bool = False
) -> str:
    """The step's name as pages show it; raw where its expressions cannot be evaluated (yet).

    `env`: the step's own. `early`: before the first step, when only what the forge told is known.
    """
    name, script = str(step.get("name") or ""), str(step.get("run") or "").strip()
    if step.get("uses") and not name:
        return f"Run {step['uses']}"
    shown = name or script
    if "${{" in (name or script.split("\n")[0]):
        with contextlib.suppress(StepFailure):
            known = session.early_contexts() if early else session.contexts(scope, env=env)
            shown = session.text(shown, known, session.functions(scope), what="name") or shown
    if name:
        return shown
    first, *_ = shown.strip().split("\n")
    return f"Run {first.strip()}"


class Uses:
    """The actions of one job at work."""

    def __init__(self, session: Session, performer: Performer) -> None:
        self._session = session
        self._performer = performer
        self._actions = Actions(session)
        self._composites: set[str] = set()

    def is_composite(self, step: dict[str, Any]) -> bool:
        """Known once the action was found."""
        return str(step.get("uses") or "") in self._composites

    def prepare(self, scope: Scope, steps: list[dict[str, Any]], *, console: Console, guard: Guard) -> list[Pre]:
        """Fetch every action from elsewhere, also those that composite actions use; the pre stages they ask for.

        Raises StepFailure where one cannot be had. Local actions are not there yet, so their pre stage never runs
        (GitHub docs, "Metadata syntax", runs.pre).
        """
        if len(scope.trail) > MOST_NESTED:
            raise StepFailure(f"Actions are nested more than {MOST_NESTED} deep")
        pres: list[Pre] = []
        for step in steps:
            uses = str(step.get("uses") or "")
            if not uses or uses.startswith(".") or self._actions.has_stand_in(uses, console=console, guard=guard):
                continue
            action = self._actions.find(uses, place=scope.place, console=console, guard=guard)
            if action.is_composite:
                self._composites.add(uses)
                inner = Scope(trail=(*scope.trail, str(step["id"])), place=_place(action))
                nested = self.prepare(inner, action.steps, console=console, guard=guard)
                if nested:
                    pres.append(self._nested_pre(scope, inner, step, action, nested))
            elif action.runs.get("pre"):
                pres.append(self._pre(scope, step, action))
        return pres

    def _pre(self, scope: Scope, step: dict[str, Any], action: Action) -> Pre:
        def run(console: Console, guard: Guard) -> None:
            env = self._env(scope, step)
            inputs = self._inputs(action.inputs, scope, step, env, console=None)
            script = self._javascript(scope, step, action)
            self._register_post(scope, step, action, env=env, inputs=inputs)
            script.stage("pre", inputs=inputs, env=env, console=console, guard=guard)

        condition = action.runs.get("pre-if") or "always()"
        return Pre(f"Pre {title(self._session, scope, step)}", run, lambda: self._holds(scope, condition))

    def _nested_pre(self, scope: Scope, inner: Scope, step: dict[str, Any], action: Action, nested: list[Pre]) -> Pre:
        def run(console: Console, guard: Guard) -> None:
            env = self._env(scope, step)
            inner.inputs = dict(self._inputs(action.inputs, scope, step, env, console=None))
            inner.env = {**scope.env, **env}
            for pre in nested:
                if pre.holds():
                    pre.run(console, guard)
            self._adopt_posts(scope, inner, step)

        return Pre(f"Pre {title(self._session, scope, step)}", run, lambda: True)

    def run(
        self, scope: Scope, step: dict[str, Any], *, env: dict[str, str], console: Console, guard: Guard
    ) -> dict[str, str]:
        """The step's outputs. Raises StepFailure."""
        uses = str(step["uses"])
        if len(scope.trail) >= MOST_NESTED:
            raise StepFailure(f"'{uses[:200]}': actions are nested more than {MOST_NESTED} deep")
        stand_in = self._actions.has_stand_in(uses, console=console, guard=guard)
        if stand_in and catalog.is_checkout(uses):
            return self._checkout(scope, step, env, console=console, guard=guard)
        if stand_in:
            action = catalog.action(uses)
        else:
            action = self._actions.find(uses, place=scope.place, console=console, guard=guard)
        inputs = self._inputs(action.inputs, scope, step, env, console=console)
        self._show(uses, inputs, {**self._session.env, **scope.env, **env}, console)
        if stand_in:
            console.print(self._actions.why_stand_in(uses))
        if action.is_composite:
            self._composites.add(uses)
            return self._composite(scope, step, action, env=env, inputs=inputs, console=console, guard=guard)
        script = self._javascript(scope, step, action)
        self._register_post(scope, step, action, env=env, inputs=inputs)
        if uses.startswith(".") and action.runs.get("pre"):
            console.warning(f"`pre` execution is not supported for local action from '{uses}'")
        return script.stage("main", inputs=inputs, env=env, console=console, guard=guard)

    def _composite(
        self,
        scope: Scope,
        step: dict[str, Any],
        action: Action,
        *,
        env: dict[str, str],
        inputs: dict[str, str],
        console: Console,
        guard: Guard,
    ) -> dict[str, str]:
        """Run the action's steps with a `steps` and an `inputs` context of their own."""
        session = self._session
        inner = Scope(
            trail=(*scope.trail, str(step.get("id"))),
            inputs=dict(inputs),
            env={**scope.env, **env},
            place=_place(action),
        )
        conclusions: list[str] = []
        for child in action.steps:
            conclusions.append(self._performer.perform(inner, child, console=console, parent=guard))
            if inner.broken:
                # As in actions/runner's CompositeActionHandler: not even always() runs after a condition that broke.
                break
        self._adopt_posts(scope, inner, step)
        values = {name: item.get("value") for name, item in action.outputs.items()}
        outputs = session.texts(values, session.contexts(inner), session.functions(inner), what="outputs")
        if "cancelled" in conclusions or (session.control.cancelled and "skipped" in conclusions and not inner.failed):
            raise Cancelled("")
        if inner.failed:
            raise Failed(None, outputs=outputs)
        return outputs

    def _adopt_posts(self, scope: Scope, inner: Scope, step: dict[str, Any]) -> None:
        """The post stages of an action's own actions run as one post step of the action."""
        nested = list(inner.posts)
        if not nested:
            return

        def run(console: Console, guard: Guard) -> None:
            problem: StepFailure | None = None
            for post in reversed(nested):
                try:
                    if post.holds():
                        post.run(console, guard)
                except StepFailure as error:
                    console.error(str(error) or f"{post.name} failed")
                    problem = error
            if problem:
                raise StepFailure("")

        scope.posts.append(Post(f"Post {title(self._session, scope, step)}", run, lambda: True))

    def _javascript(self, scope: Scope, step: dict[str, Any], action: Action) -> JavaScript:
        kind = BuiltIn if action.using == catalog.USING else JavaScript
        return kind(
            self._session,
            action,
            node=self._actions.node,
            state=self._state(scope, step),
            scope=scope,
            step_id=str(step.get("id") or ""),
        )

    def _state(self, scope: Scope, step: dict[str, Any]) -> ActionState:
        return self._session.states.setdefault((*scope.trail, str(step.get("id"))), ActionState())

    def _register_post(
        self, scope: Scope, step: dict[str, Any], action: Action, *, env: dict[str, str], inputs: dict[str, str]
    ) -> None:
        """Before the stage runs, so that the post stage follows a failure too; once for pre and main together."""
        state = self._state(scope, step)
        if state.has_post or not action.runs.get("post"):
            return
        state.has_post = True

        def run(console: Console, guard: Guard) -> None:
            self._javascript(scope, step, action).stage("post", inputs=inputs, env=env, console=console, guard=guard)

        condition = catalog.post_condition(action, inputs)
        name = f"Post {title(self._session, scope, step)}"
        scope.posts.append(Post(name, run, lambda: self._holds(scope, condition)))

    def _checkout(
        self, scope: Scope, step: dict[str, Any], env: dict[str, str], *, console: Console, guard: Guard
    ) -> dict[str, str]:
        uses = str(step["uses"])
        inputs = self._inputs(CHECKOUT_INPUTS, scope, step, env, console=console)
        self._show(uses, inputs, {**self._session.env, **scope.env, **env}, console)
        console.print(self._actions.why_stand_in(uses))
        variables = self._session.environment(scope, env=env, action=str(step.get("id") or ""))
        checkout = Checkout(self._session, inputs=inputs, env=variables)
        post = Post(f"Post {title(self._session, scope, step)}", checkout.forget, lambda: True)
        scope.posts.append(post)
        return checkout.run(console, guard)

    def _holds(self, scope: Scope, condition: Any) -> bool:
        session = self._session
        return not session.control.over and session.holds(condition, session.contexts(scope), session.functions(scope))

    def _env(self, scope: Scope, step: dict[str, Any]) -> dict[str, str]:
        session = self._session
        return session.texts(step.get("env"), session.contexts(scope), session.functions(scope), what="env")

    def _inputs(
        self,
        declared: dict[str, dict[str, Any]],
        scope: Scope,
        step: dict[str, Any],
        env: dict[str, str],
        *,
        console: Console | None,
    ) -> dict[str, str]:
        """`with` over the declared defaults; names compare without case."""
        session = self._session
        contexts = session.contexts(scope, env=env, action=str(step.get("id") or ""))
        functions = session.functions(scope)
        given = session.texts(step.get("with"), contexts, functions, what="with")
        by_lower = {name.lower(): name for name in declared}
        values = {by_lower.get(name.lower(), name): value for name, value in given.items()}
        unexpected = [name for name in values if name not in declared]
        if console and unexpected:
            valid = ", ".join(f"'{name}'" for name in declared)
            names = ", ".join(f"'{name}'" for name in unexpected)
            console.warning(f"Unexpected input(s) {names}, valid inputs are [{valid}]")
        for name, item in declared.items():
            if name in values:
                if console and item.get("deprecationMessage"):
                    console.warning(f"Input '{name}' has been deprecated with message: {item['deprecationMessage']}")
            else:
                default = item.get("default")
                values[name] = (
                    "" if default is None else session.text(default, contexts, functions, what=f"inputs.{name}")
                )
        return values

    def _show(self, uses: str, inputs: dict[str, str], env: dict[str, str], console: Console) -> None:
        console.print(f"##[group]Run {uses}")
        shown = {name: value for name, value in inputs.items() if value}
        if shown:
            console.print("with:")
            for name, value in shown.items():
                console.print_all(f"  {name}: {value}")
        show_env(console, env)
        console.print("##[endgroup]")


def _place(action: Action) -> Place:
    return Place(action.folder, action.repository, action.ref)
