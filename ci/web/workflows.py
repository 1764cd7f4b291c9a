"""What is this workflow: its runs, schedules, problems, and how is it started by hand, disabled and enabled?"""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.exceptions import SuspiciousOperation
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from ci.lifecycle.dispatch import dispatch_workflow, document_at
from ci.lifecycle.errors import InvalidInput, LifecycleError
from ci.lifecycle.fired_events import never_fired
from ci.lifecycle.workflow_switch import enable_workflow
from ci.models import Schedule, Workflow
from ci.web.addresses import Addresses
from ci.web.dispatch_form import DispatchForm
from ci.web.filters import RunFilters
from ci.web.pages import around, tell
from ci.web.problems import marked_file, marked_notices
from ci.web.runs import known_workflows, listed, paged_runs
from forge.access import can_write
from forge.git import bare
from forge.models import Repository
from forge.web.loading import get_repository

MOST_REFS = 100


@require_safe
def workflow(request: HttpRequest, owner: str, name: str, file: str) -> HttpResponse:
    repository = get_repository(request, owner, name)
    found = load_workflow(repository, file)
    context = _page(request, repository, found)
    if context["may_dispatch"]:
        context |= _dispatch(repository, found, request.GET.get("ref") or repository.default_branch)
    return render(request, "ci/workflow.html", context)


@require_POST
def workflow_dispatch(request: HttpRequest, owner: str, name: str, file: str) -> HttpResponse:
    repository = get_repository(request, owner, name, need=can_write)
    found = load_workflow(repository, file)
    ref = request.POST.get("ref") or repository.default_branch
    try:
        document, _, _ = document_at(repository, path=found.path, ref=ref)
        form = DispatchForm(request.POST, inputs=document.dispatch_inputs)
        run = dispatch_workflow(
            repository=repository, path=found.path, ref=ref, inputs=form.given(), actor=request.user
        )
    except InvalidInput as error:
        return _refused(request, repository, found, ref, error)
    except LifecycleError as error:
        messages.error(request, error.detail)
        return redirect("workflow", repository.owner.username, repository.name, file)
    messages.success(request, f"{run} has started.")
    return redirect(run)


@require_POST
def workflow_switch(request: HttpRequest, owner: str, name: str, file: str) -> HttpResponse:
    """To where the form says, not to the other side: two people who press it at once mean the same."""
    repository = get_repository(request, owner, name, need=can_write)
    found = load_workflow(repository, file)
    if request.POST.get("enabled") not in ("0", "1"):
        raise SuspiciousOperation("The form did not say whether to enable or disable.")
    enabled = request.POST["enabled"] == "1"

    def turn() -> str:
        enable_workflow(workflow_id=found.pk, enabled=enabled, actor=request.user)
        return f"{found.name} is enabled." if enabled else f"{found.name} is disabled: nothing starts it."

    tell(request, turn)
    return redirect("workflow", repository.owner.username, repository.name, file)


def load_workflow(repository: Repository, file: str) -> Workflow:
    """Raises Http404 where neither the default branch nor any run has such a file."""
    if "\0" in file or len(file) > 255:
        raise Http404("There is no such workflow.")
    found = Workflow.objects.filter(repository=repository, path__endswith=f"/{file}").order_by("-on_default_branch")
    row = found.first()
    if row is None:
        raise Http404("There is no such workflow in this repository.")
    return row


def _page(request: HttpRequest, repository: Repository, found: Workflow) -> dict[str, Any]:
    workflows = known_workflows(repository)
    filters = RunFilters(request.GET if request.method != "POST" else {}, workflows=workflows, fixed_workflow=True)
    may_write = can_write(request.user, repository)
    dispatched = "workflow_dispatch" in found.events or "ref" in request.GET or request.method == "POST"
    return around(
        repository,
        workflow=found,
        file=found.path.rpartition("/")[2],
        workflows=workflows,
        filters=filters,
        addresses=Addresses("run", repository.owner.username, repository.name),
        page_obj=paged_runs(request, filters.apply(listed(repository).filter(workflow=found))),
        schedules=list(Schedule.objects.filter(workflow=found)[:50]),
        problems=marked_file(repository, found),
        notices=marked_notices(repository, found),
        never_fired=never_fired(found.events),
        may_switch=may_write,
        may_dispatch=dispatched and found.enabled and may_write,
        badge_url=request.build_absolute_uri("badge.svg") if request.method != "POST" else "",
    )


def _dispatch(repository: Repository, found: Workflow, ref: str) -> dict[str, Any]:
    """The form to start the workflow as it is on `ref`, or why there is none."""
    refs = [branch.name for branch in bare.branches(repository, limit=MOST_REFS)]
    refs += [tag.name for tag in bare.tags(repository, limit=MOST_REFS)]
    context: dict[str, Any] = {"ref": ref, "refs": refs}
    try:
        document, _, _ = document_at(repository, path=found.path, ref=ref)
    except LifecycleError as error:
        return context | {"no_dispatch": error.detail}
    if "workflow_dispatch" not in document.on:
        return context | {"no_dispatch": f"On {ref} it has no workflow_dispatch trigger."}
    return context | {"form": DispatchForm(inputs=document.dispatch_inputs)}


def _refused(
    request: HttpRequest, repository: Repository, found: Workflow, ref: str, error: InvalidInput
) -> HttpResponse:
    """The page again, with what was typed and what is wrong with it."""
    context = _page(request, repository, found) | _dispatch(repository, found, ref)
    if "form" in context:
        document, _, _ = document_at(repository, path=found.path, ref=ref)
        context["form"] = form = DispatchForm(request.POST, inputs=document.dispatch_inputs)
        form.refuse(error.errors)
    return render(request, "ci/workflow.html", context | {"refused": True}, status=422)
