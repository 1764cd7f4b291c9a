"""What is a loaded workflow, and what is an event that may start it?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ci.workflow.document.nodes import Mapping as MappingNode
from ci.workflow.document.notices import notices
from ci.workflow.problems import Problem

Definition = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Workflow:
    """A workflow file that was accepted. Every value is JSON-able, under GitHub's key names, `${{ }}` kept as written.

    `on`: event name -> its configuration ({} when bare; a single text filter is a list of one). `schedules`: pairs of a
    5-field cron text and an IANA time zone or None (UTC). `dispatch_inputs`: name -> {description, required, default,
    type, options}. `source`: the file's nodes with line and column, for whoever must point into the text; `sources`:
    the same of this file and of every workflow that it calls, by the name it had among the files.

    A job that calls a workflow holds it under `called`, beside `uses`, `with` and `secrets`: name, key (its name among
    the files), path, repository and ref (None: those of the run), env, defaults, permissions, concurrency, inputs,
    secrets and outputs (as declared), and jobs, which may call again.
    """

    path: str
    name: str
    on: Mapping[str, Definition]
    env: Definition
    defaults: Definition
    concurrency: str | Definition | None
    permissions: str | Definition | None
    jobs: Mapping[str, Definition]
    run_name: str | None
    schedules: tuple[tuple[str, str | None], ...]
    dispatch_inputs: Mapping[str, Definition]
    source: MappingNode = field(repr=False, compare=False)
    sources: Mapping[str, MappingNode] = field(repr=False, compare=False)

    @property
    def notices(self) -> tuple[Problem, ...]:
        """What the files ask for that is accepted, but that not every runner does; at most ten."""
        return notices(self.sources)


@dataclass(frozen=True, slots=True)
class Event:
    """What happened. `github`: the whole `github` context, the payload under `event`. `changed_paths`: the paths that
    the push or pull request changed; None when they are unknown or too many, then path filters let it pass."""

    name: str
    github: Mapping[str, Any]
    changed_paths: tuple[str, ...] | None = None
    inputs: Mapping[str, Any] = field(default_factory=dict)
    vars: Mapping[str, Any] = field(default_factory=dict)

    @property
    def payload(self) -> Mapping[str, Any]:
        """The event's payload, {} where there is none."""
        payload = self.github.get("event")
        return payload if isinstance(payload, Mapping) else {}
