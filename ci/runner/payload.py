"""What is the job that the forge handed out?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


class PayloadError(Exception):
    """The answer to a poll is not a job this runner understands."""


def mapping(value: object) -> dict[str, Any]:
    """The value where it is a mapping, else an empty one."""
    return {str(key): item for key, item in value.items()} if isinstance(value, Mapping) else {}


@dataclass(frozen=True)
class Runtime:
    """Where and with which token actions keep artifacts and caches; empty where the forge has no place for them."""

    token: str = ""
    url: str = ""
    results_url: str = ""
    cache_url: str = ""

    @classmethod
    def read(cls, body: Mapping[str, Any]) -> Runtime:
        names = {"token": "token", "url": "runtime_url", "results_url": "results_url", "cache_url": "cache_url"}
        return cls(**{field: str(body.get(name) or "") for field, name in names.items()})


@dataclass(frozen=True)
class Payload:
    """The answer of jobs/fetch. Texts in `env`, `defaults` and `definition` still hold their expressions."""

    id: int
    assignment: int
    token: str
    name: str
    key: str
    cancel_grace_seconds: float
    log_offset: int
    workflow_env: object
    workflow_defaults: object
    definition: dict[str, Any]
    contexts: dict[str, Any]
    actions_sources: tuple[str, ...]
    masks: tuple[str, ...]
    id_token_url: str = ""
    id_token_request_token: str = ""
    runtime: Runtime = Runtime()

    @classmethod
    def read(cls, body: Mapping[str, Any]) -> Payload:
        """Raises PayloadError where something essential is missing."""
        job, workflow = mapping(body.get("job")), mapping(body.get("workflow"))
        definition, id_token = mapping(body.get("definition")), mapping(body.get("id_token"))
        try:
            return cls(
                id=int(job["id"]),
                assignment=int(job.get("assignment") or 0),
                token=str(job["token"]),
                name=str(job.get("name") or job.get("key") or job["id"]),
                key=str(job.get("key") or ""),
                cancel_grace_seconds=float(job.get("cancel_grace_seconds") or 300),
                log_offset=int(job.get("log_offset") or 0),
                workflow_env=workflow.get("env"),
                workflow_defaults=workflow.get("defaults"),
                definition=definition,
                contexts=mapping(body.get("contexts")),
                actions_sources=tuple(str(url).rstrip("/") for url in body.get("actions_sources") or ()),
                masks=tuple(str(value) for value in body.get("masks") or ()),
                id_token_url=str(id_token.get("request_url") or ""),
                id_token_request_token=str(id_token.get("request_token") or ""),
                runtime=Runtime.read(mapping(body.get("runtime"))),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise PayloadError(f"the forge's job lacks or misspells {error}") from error

    @property
    def github(self) -> dict[str, Any]:
        return mapping(self.contexts.get("github"))

    @property
    def secrets(self) -> dict[str, str]:
        return {name: str(value) for name, value in mapping(self.contexts.get("secrets")).items()}

    @property
    def steps(self) -> list[dict[str, Any]]:
        given = self.definition.get("steps")
        return [mapping(step) for step in given] if isinstance(given, list) else []
