"""Is a file that fits the schema also sound in itself: names, needs, matrices, schedules, inputs?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ci.workflow import matrix, names, schedule
from ci.workflow.concurrency import CONTRADICTION
from ci.workflow.document.calling import default_problems
from ci.workflow.document.nodes import Mapping, Node, Scalar, Sequence
from ci.workflow.inputs import MAX_INPUTS, typed
from ci.workflow.options import Options
from ci.workflow.problems import Problems
from ci.workflow.uses import UsesError, resolve

MAX_SCHEDULES = 100
_OPEN = "${{"
_ALTERNATIVES = ("branches", "tags", "paths")


def check(root: Mapping, value: dict[str, Any], problems: Problems, options: Options) -> None:
    """Record what is wrong beyond single values. `value` is the converted form of `root`; whatever conversion refused
    is None in it, and is left alone here."""
    on = root.get("on")
    if isinstance(on, Mapping):
        _events(on, problems)
    _concurrency(root, problems)
    for node, message in default_problems(root):
        problems.add(node.line, node.column, message, own=True)
    jobs = root.get("jobs")
    if not isinstance(jobs, Mapping):
        return
    converted = value.get("jobs")
    if not jobs.pairs:
        problems.add(jobs.line, jobs.column, "The workflow must contain at least one job. Write one under `jobs:`")
    elif len(jobs.pairs) > options.max_jobs:
        place = jobs.pairs[options.max_jobs][0]
        message = f"Workflows may not contain more than {options.max_jobs} jobs across all referenced files"
        problems.add(place.line, place.column, message)
    elif isinstance(converted, dict):
        _jobs(jobs, converted, problems)


def _concurrency(holder: Mapping, problems: Problems) -> None:
    """GitHub docs, "Control the concurrency of workflows and jobs": who waits with all others cancels none."""
    settings = holder.get("concurrency")
    if not isinstance(settings, Mapping):
        return
    queue, cancels = settings.get("queue"), settings.get("cancel-in-progress")
    if isinstance(queue, Scalar) and queue.text == "max" and isinstance(cancels, Scalar) and cancels.value is True:
        problems.add(queue.line, queue.column, CONTRADICTION, own=True)


# --- on ---------------------------------------------------------------------------------------------------------------
def _events(on: Mapping, problems: Problems) -> None:
    for name, config in on.pairs:
        if name.text == "schedule" and isinstance(config, Sequence):
            if len(config.items) > MAX_SCHEDULES:
                message = f"The workflow has more than {MAX_SCHEDULES} schedules. Join some, as in '0 6,18 * * *'"
                problems.add(config.line, config.column, message, own=True)
            for entry in config.items[:MAX_SCHEDULES]:
                _schedule(entry, problems)
        if not isinstance(config, Mapping):
            continue
        for kind in _ALTERNATIVES:
            first, second = config.get(kind), config.get(f"{kind}-ignore")
            if first is not None and second is not None:
                message = f"'{kind}' and '{kind}-ignore' cannot both filter one event. Use '{kind}' with '!' patterns"
                problems.add(second.line, second.column, message, own=True)
        if name.text == "workflow_dispatch" and isinstance(inputs := config.get("inputs"), Mapping):
            _dispatch(inputs, problems)


def _schedule(entry: Node, problems: Problems) -> None:
    if not isinstance(entry, Mapping):
        return
    cron, zone = entry.get("cron"), entry.get("timezone")
    if not isinstance(cron, Scalar) or not cron.text:
        return
    if isinstance(zone, Scalar):
        try:
            schedule.check("0 0 * * *", zone.text)
        except schedule.ScheduleError as error:
            problems.add(zone.line, zone.column, str(error), own=True)
    try:
        schedule.check(cron.text)
    except schedule.ScheduleError as error:
        problems.add(cron.line, cron.column, str(error), own=True)


def _dispatch(inputs: Mapping, problems: Problems) -> None:
    if len(inputs.pairs) > MAX_INPUTS:
        message = f"workflow_dispatch has more than {MAX_INPUTS} inputs. Remove some"
        problems.add(inputs.line, inputs.column, message, own=True)
    for name, definition in inputs.pairs:
        if not isinstance(definition, Mapping):
            continue
        kind, default = definition.get("type"), definition.get("default")
        kind_text = kind.text if isinstance(kind, Scalar) else "string"
        options = [item.text for item in _scalars(definition.get("options"))]
        if kind_text == "choice" and not options:
            message = f"The input '{name.text}' is of type choice: list what can be chosen under 'options'"
            problems.add(definition.line, definition.column, message, own=True)
        elif kind_text != "choice" and definition.get("options") is not None:
            key = next(key for key, _ in definition.pairs if key.text.casefold() == "options")
            message = (
                "Input type is not 'choice', but 'options' is defined. Write 'type: choice', or remove the options"
            )
            problems.add(key.line, key.column, message, own=True)
        elif isinstance(default, Scalar) and default.text:
            try:
                typed(kind_text, default.value, options=options)
            except ValueError as error:
                message = f"The default of input '{name.text}' does not fit its type {kind_text}. {error}"
                problems.add(default.line, default.column, message, own=True)


# --- jobs -------------------------------------------------------------------------------------------------------------
def _jobs(jobs: Mapping, converted: dict[str, Any], problems: Problems) -> None:
    wanted: dict[str, list[tuple[str, Scalar]]] = {}
    for key, job in jobs.pairs:
        if (problem := names.id_problem(key.text)) is not None:
            problems.add(key.line, key.column, problem)
        wanted[key.text] = []
        if isinstance(job, Mapping):
            wanted[key.text] = [(need.text, need) for need in _scalars(job.get("needs")) if need.text]
            _job(job, converted.get(key.text), problems)
    if not (problems.github_only and problems):
        # GitHub stops here too, and would have people ask twice.
        _needs(jobs, wanted, problems)


def _scalars(node: Node | None) -> Iterator[Scalar]:
    if isinstance(node, Scalar):
        yield node
    elif isinstance(node, Sequence):
        yield from (item for item in node.items if isinstance(item, Scalar))


def _needs(jobs: Mapping, wanted: dict[str, list[tuple[str, Scalar]]], problems: Problems) -> None:
    spelled = {name.casefold(): name for name in wanted}
    edges = [(job, text, node) for job, found in wanted.items() for text, node in found]
    unknown = {id(node) for _, text, node in edges if text.casefold() not in spelled}
    if all(wanted.values()) and (problems.github_only or not unknown):
        message = "The workflow must contain at least one job with no dependencies."
        problems.add(jobs.line, jobs.column, message)
        return
    stuck = _stuck(wanted, spelled)
    for job, text, node in edges:
        name = spelled.get(text.casefold())
        if name is None:
            problems.add(node.line, node.column, f"Job '{job}' depends on unknown job '{text}'.")
        elif job in stuck and name in stuck and (problems.github_only or not unknown):
            # Behind an unknown need GitHub says so too, which would only hide the one fault there is.
            message = f"Job '{job}' depends on job '{text}' which creates a cycle in the dependency graph."
            problems.add(node.line, node.column, message)


def _stuck(wanted: dict[str, list[tuple[str, Scalar]]], spelled: dict[str, str]) -> set[str]:
    """The jobs that would never start: those of a circle or with an unknown need, and all that wait for them."""
    waiting = {job: {spelled.get(text.casefold(), "") for text, _ in found} for job, found in wanted.items()}
    dependents: dict[str, list[str]] = {}
    for job, found in waiting.items():
        for need in found:
            dependents.setdefault(need, []).append(job)
    ready = [job for job, found in waiting.items() if not found]
    while ready:
        done = ready.pop()
        for job in dependents.get(done, ()):
            waiting[job].discard(done)
            if not waiting[job]:
                ready.append(job)
    return {job for job, found in waiting.items() if found}


def _job(job: Mapping, converted: object, problems: Problems) -> None:
    _concurrency(job, problems)
    strategy = job.get("strategy")
    values = converted.get("strategy") if isinstance(converted, dict) else None
    if isinstance(strategy, Mapping) and isinstance(values, dict):
        _matrix(strategy.get("matrix"), values.get("matrix"), problems)
    _container(job.get("container"), problems)
    services = job.get("services")
    if isinstance(services, Mapping):
        for _, service in services.pairs:
            _container(service, problems)
    steps = job.get("steps")
    if isinstance(steps, Sequence):
        _steps(steps, problems)
    uses = job.get("uses")
    if isinstance(uses, Scalar) and uses.text and _OPEN not in uses.text:
        _reusable(uses, problems)


def _container(container: Node | None, problems: Problems) -> None:
    if not isinstance(container, Mapping):
        return
    image = container.get("image")
    if image is None or (isinstance(image, Scalar) and not image.text):
        place = image or container
        problems.add(place.line, place.column, "Container image cannot be empty")


def _matrix(node: Node | None, value: object, problems: Problems) -> None:
    """Judge a matrix of literals, so that its faults show before anything is pushed or started."""
    if not isinstance(node, Mapping) or not isinstance(value, dict):
        return
    for key, vector in node.pairs:
        if isinstance(vector, Sequence) and not vector.items and key.text.casefold() not in {"include", "exclude"}:
            problems.add(vector.line, vector.column, f"Matrix vector '{key.text}' does not contain any values")
            return
    if _has_expression(value) or None in value.values():
        # Known only when the job runs, or refused already.
        return
    try:
        matrix.check(value)
    except matrix.MatrixError as error:
        place = _descend(node, error.where)
        problems.add(place.line, place.column, str(error))


def _descend(node: Node, where: tuple[str | int, ...]) -> Node:
    for step in where:
        if isinstance(node, Mapping):
            last = step == where[-1]
            pair = next(((key, item) for key, item in node.pairs if key.text == step), None)
            if pair is None:
                return node
            # A fault in a key is shown at the key, one in a collection at the collection.
            node = pair[0] if last and isinstance(pair[1], Scalar) else pair[1]
        elif isinstance(node, Sequence) and isinstance(step, int):
            node = node.items[step]
    return node


def _has_expression(value: object) -> bool:
    pending = [value]
    while pending:
        one = pending.pop()
        if isinstance(one, str):
            if _OPEN in one:
                return True
        elif isinstance(one, list):
            pending.extend(one)
        elif isinstance(one, dict):
            pending.extend(one)
            pending.extend(one.values())
    return False


def _steps(steps: Sequence, problems: Problems) -> None:
    seen: set[str] = set()
    for step in steps.items:
        if not isinstance(step, Mapping):
            continue
        identifier = step.get("id")
        if isinstance(identifier, Scalar) and identifier.text:
            problem = names.id_problem(identifier.text)
            if problem is None and identifier.text.casefold() in seen:
                problem = f"The identifier '{identifier.text}' may not be used more than once within the same scope."
            if problem is not None:
                problems.add(identifier.line, identifier.column, problem)
            seen.add(identifier.text.casefold())
        uses = step.get("uses")
        if isinstance(uses, Scalar) and uses.text and not _is_action(uses.text):
            message = f"Expected format {{org}}/{{repo}}[/path]@ref. Actual '{uses.text}'"
            problems.add(uses.line, uses.column, message)


def _is_action(uses: str) -> bool:
    """As actions/runner judges it, but that it does not know `$/` yet, as GitHub's other parser does."""
    if uses.startswith(("./", ".\\", "$/", "docker://")):
        return True
    name, *versions = uses.split("@")
    parts = [part for part in name.replace("\\", "/").split("/") if part]
    return len(versions) == 1 and bool(versions[0]) and len(parts) >= 2


def _reusable(uses: Scalar, problems: Problems) -> None:
    try:
        resolve(uses.text)
    except UsesError as error:
        problems.add(uses.line, uses.column, str(error))
