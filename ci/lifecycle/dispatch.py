"""How does a person start a workflow by hand?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ci.lifecycle import webhook_payloads, workflow_files
from ci.lifecycle.errors import Conflict, InvalidInput, NotFound
from ci.lifecycle.firing import Trigger, fire
from ci.lifecycle.transitions import Cause, create_run
from ci.models import Run, Workflow
from ci.workflow import InputErrors, PlanError, WorkflowErrors, storable
from ci.workflow import Workflow as Document
from ci.workflow.inputs import dispatch_inputs
from forge.git import bare
from forge.models import Repository


def document_at(repository: Repository, *, path: str, ref: str) -> tuple[Document, str, str]:
    """The workflow at `path` on a branch or tag: the document, the full ref name and the commit's SHA.

    Raises NotFound (no such ref or file) and InvalidInput (the file has problems).
    """
    full, sha = _resolve(repository, ref)
    try:
        document = workflow_files.load_one(repository, sha, path)
    except WorkflowErrors as errors:
        raise InvalidInput({"workflow": str(errors)}) from None
    if document is None:
        raise NotFound(f"{path} is not on {ref}.")
    return document, full, sha


def dispatch_workflow(*, repository: Repository, path: str, ref: str, inputs: Mapping[str, Any], actor: Any) -> Run:
    """Start `path` as it is on `ref`, with `inputs`. The caller has checked that `actor` may write.

    Raises NotFound, InvalidInput (by input), Conflict (disabled, or no workflow_dispatch trigger).
    """
    document, full, sha = document_at(repository, path=path, ref=ref)
    if "workflow_dispatch" not in document.on:
        raise Conflict(f"{path} on {ref} has no workflow_dispatch trigger: add `workflow_dispatch:` below `on:`.")
    if Workflow.objects.filter(repository=repository, path=path, enabled=False).exists():
        raise Conflict(f"{document.name} is disabled: enable it first.")
    try:
        typed = dispatch_inputs(document, inputs)
    except InputErrors as errors:
        raise InvalidInput(errors.errors) from None
    cause = Cause(
        repository=repository,
        path=path,
        event="workflow_dispatch",
        payload=webhook_payloads.workflow_dispatch(repository, path=path, ref=full, inputs=typed, actor=actor),
        ref=full,
        sha=sha,
        title=document.name,
        actor=actor,
        trusted=True,
        inputs=typed,
    )
    return create_run(cause, document)


def dispatch_repository(
    *, repository: Repository, event_type: str, client_payload: Mapping[str, Any], actor: Any
) -> list[Run]:
    """Fire repository_dispatch at the workflows of the default branch; returns the runs. The caller has checked access.

    Raises InvalidInput; NotFound while there is no default branch.
    """
    if not 1 <= len(event_type) <= 100 or len(client_payload) > 10:
        raise InvalidInput({"event_type": "1 to 100 characters, and a client_payload of at most 10 properties."})
    try:
        storable.check([event_type, client_payload], "The event")
    except PlanError as error:
        raise InvalidInput({"client_payload": str(error)}) from None
    ref, sha = _resolve(repository, f"refs/heads/{repository.default_branch}")
    cause = Cause(
        repository=repository,
        event="repository_dispatch",
        payload=webhook_payloads.repository_dispatch(
            repository, event_type=event_type, client_payload=client_payload, actor=actor
        ),
        ref=ref,
        sha=sha,
        title=event_type,
        actor=actor,
        trusted=True,
    )
    return fire(Trigger(cause=cause), workflow_files.load_all(repository, sha))


def _resolve(repository: Repository, ref: str) -> tuple[str, str]:
    candidates = [ref] if ref.startswith("refs/") else [f"refs/heads/{ref}", f"refs/tags/{ref}"]
    for full in candidates:
        sha = bare.resolve(repository, full)
        if sha is not None:
            return full, sha
    raise NotFound(f"There is no branch or tag {ref}.")
