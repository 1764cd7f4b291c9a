"""Which runners are there, what are they doing, and how does one more come?"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.core.exceptions import SuspiciousOperation
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from ci.lifecycle.registration import (
    create_registration_token,
    pause_runner,
    remove_runner,
    revoke_registration_token,
)
from ci.models import ACTIVE_STATES, Job, RegistrationToken, Runner
from ci.web.pages import paged, posted_number, posted_version, tell
from ci.web.scopes import Place, of_instance, of_person, of_repository

MOST_TOKENS = 50
_READS = ["GET", "HEAD", "POST"]


@never_cache
@require_http_methods(_READS)
def runners(request: HttpRequest, owner: str, name: str) -> HttpResponse:
    return _page(request, of_repository(request, owner, name))


@login_required
@never_cache
@require_http_methods(_READS)
def owner_runners(request: HttpRequest) -> HttpResponse:
    return _page(request, of_person(request))


@login_required
@never_cache
@require_http_methods(_READS)
def instance_runners(request: HttpRequest) -> HttpResponse:
    return _page(request, of_instance(request))


def _page(request: HttpRequest, place: Place) -> HttpResponse:
    if request.method != "POST":
        return _show(request, place)
    if request.POST.get("action") == "create_token":
        _, text = create_registration_token(scope=place.scope, created_by=request.user)
        # Shown in this answer only: it is kept nowhere, so it cannot wait for a redirect.
        return _show(request, place, new_token=text)
    _act(request, place)
    return redirect(request.path)


def _act(request: HttpRequest, place: Place) -> None:
    action = request.POST.get("action")
    if action == "revoke_token":
        token = _owned(RegistrationToken, place, posted_number(request, "token"))
        tell(request, lambda: _revoke(request, token))
    elif action in ("pause", "resume", "remove"):
        runner = _owned(Runner, place, posted_number(request, "runner"))
        tell(request, lambda: _change(request, runner, action))
    else:
        raise SuspiciousOperation("The form asked for an action that this page does not have.")


def _change(request: HttpRequest, runner: Runner, action: str) -> str:
    version = posted_version(request)
    if action == "remove":
        remove_runner(runner_id=runner.pk, actor=request.user, version=version)
        return f"Runner {runner.name} is removed; its token works no more."
    pause_runner(runner_id=runner.pk, paused=action == "pause", actor=request.user, version=version)
    if action == "pause":
        return f"Runner {runner.name} is paused: it finishes its job and takes no other."
    return f"Runner {runner.name} takes jobs again."


def _revoke(request: HttpRequest, token: RegistrationToken) -> str:
    revoke_registration_token(token_id=token.pk, actor=request.user)
    return f"Token {token.hint}… is revoked. Runners registered with it stay."


def _owned(model: type[Any], place: Place, pk: int) -> Any:
    """The row, if it is of exactly this scope. Raises Http404."""
    row = model.objects.filter(pk=pk, **place.rows).first()
    if row is None:
        raise Http404("There is no such row here; it may have been removed.")
    return row


def _show(request: HttpRequest, place: Place, *, new_token: str = "") -> HttpResponse:
    page = paged(request, Runner.objects.filter(**place.rows).order_by("name", "id"), size=50)
    doing = Job.objects.filter(runner__in=list(page), state__in=ACTIVE_STATES)
    doing = doing.select_related("run__repository__owner").defer("definition", "outputs", "run__payload")
    at_work = {job.runner_id: job for job in doing}
    tokens = RegistrationToken.objects.filter(revoked_at=None, **place.rows).select_related("created_by")
    context = {
        "place": place,
        "page_obj": page,
        "runners": [(runner, at_work.get(runner.pk)) for runner in page],
        "tokens": list(tokens[:MOST_TOKENS]),
        "new_token": new_token,
        "section": "runners",
        "server_url": settings.SERVER_URL,
    }
    return render(request, "ci/runners.html", place.context | context)
