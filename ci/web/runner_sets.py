"""Which runner sets are there, how are they changed and deleted, and what does each do?"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib.auth.views import redirect_to_login
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe
from django_htmx.http import HttpResponseClientRedirect

from ci.lifecycle.errors import Conflict, InvalidInput, NotFound
from ci.lifecycle.runner_sets import save_runner_set
from ci.lifecycle.set_counts import counted
from ci.lifecycle.transitions import delete_set, recover_set
from ci.models import ACTIVE_STATES, Job, RunnerSet
from ci.web.pages import MAX_ID, paged, posted_number, tell
from ci.web.runner_sets_form import RunnerSetForm
from ci.web.runner_sets_page import fragment, whole
from ci.web.scopes import Place, of_instance, of_person, of_repository

_READS = ["GET", "HEAD", "POST"]
_LISTS = {"repository": "runner_sets", "owner": "owner_runner_sets", "instance": "instance_runner_sets"}
_UNCHANGED = 204
PlacedView = Callable[..., HttpResponse]


def placed(view: PlacedView) -> PlacedView:
    """Give a view the place that its address names, after asking whether this person may change what is there."""

    @wraps(view)
    def at_place(request: HttpRequest, *, kind: str, owner: str = "", name: str = "", **more: Any) -> HttpResponse:
        if kind == "repository":
            return view(request, of_repository(request, owner, name), **more)
        if not request.user.is_authenticated:
            return redirect_to_login(request.get_full_path())
        return view(request, of_person(request) if kind == "owner" else of_instance(request), **more)

    return never_cache(at_place)


@require_safe
@placed
def runner_sets(request: HttpRequest, place: Place) -> HttpResponse:
    page = paged(request, counted(RunnerSet.objects.filter(**place.rows)).order_by("name", "pk"), size=30)
    return _render(request, place, "ci/runner_sets.html", page_obj=page)


@require_http_methods(_READS)
@placed
def runner_set_new(request: HttpRequest, place: Place) -> HttpResponse:
    form = RunnerSetForm(request.POST or None, place=place, actor=request.user)
    if request.method == "POST" and form.is_valid():
        fields = form.fields_to_save() | place.rows
        made = _saved(
            form, lambda: save_runner_set(runner_set_id=None, fields=fields, version=None, actor=request.user)
        )
        if made is not None:
            tell(request, lambda: f"The runner set {made.name} is created.")
            return redirect(_address(place, made.pk))
    return _form(request, place, form, None)


@require_http_methods(_READS)
@placed
def runner_set_edit(request: HttpRequest, place: Place, set_id: int) -> HttpResponse:
    """The version of the page comes back with it: an old page changes nothing."""
    runner_set = _load(place, set_id)
    if request.method != "POST":
        return _form(request, place, RunnerSetForm(place=place, actor=request.user, runner_set=runner_set), runner_set)
    version = posted_number(request, "version")
    form = RunnerSetForm(request.POST, place=place, actor=request.user, runner_set=runner_set)
    if form.is_valid():
        saved = _saved(
            form,
            lambda: save_runner_set(
                runner_set_id=runner_set.pk, fields=form.fields_to_save(), version=version, actor=request.user
            ),
        )
        if saved is not None:
            tell(request, lambda: f"The runner set {saved.name} is saved.")
            return redirect(_address(place, saved.pk))
    return _form(request, place, form, runner_set)


@require_http_methods(_READS)
@placed
def runner_set_delete(request: HttpRequest, place: Place, set_id: int) -> HttpResponse:
    """GET asks whether it is meant, POST does it."""
    runner_set = _load(place, set_id)
    if request.method != "POST":
        busy = Job.objects.filter(runner__runner_set=runner_set, state__in=ACTIVE_STATES).count()
        return _render(request, place, "ci/runner_set_delete.html", runner_set=runner_set, busy=busy)
    force = request.POST.get("force") == "on"

    def delete() -> str:
        version = posted_number(request, "version")
        delete_set(set_id=runner_set.pk, actor=request.user, version=version, force=force)
        if force:
            return f"The runner set {runner_set.name} is being deleted; its jobs have lost their runners."
        return f"The runner set {runner_set.name} is being deleted: its busy runners end their jobs first."

    tell(request, delete)
    return redirect(_address(place, runner_set.pk))


@require_POST
@placed
def runner_set_recover(request: HttpRequest, place: Place, set_id: int) -> HttpResponse:
    runner_set = _load(place, set_id)

    def recover() -> str:
        recover_set(set_id=runner_set.pk, actor=request.user, version=posted_number(request, "version"))
        return f"The runner set {runner_set.name} starts runners again."

    tell(request, recover)
    return redirect(_address(place, runner_set.pk))


@require_safe
@placed
def runner_set(request: HttpRequest, place: Place, set_id: int) -> HttpResponse:
    found = _load(place, set_id)
    return _render(request, place, "ci/runner_set.html", **whole(request, found))


@require_safe
@placed
def runner_set_status(request: HttpRequest, place: Place, set_id: int) -> HttpResponse:
    """What changes of a set's page, unless that is what `?seen=` says. 204: nothing does."""
    if request.htmx and not _exists(place, set_id):  # type: ignore[attr-defined]
        return HttpResponseClientRedirect(_list(place))
    found = _load(place, set_id)
    asked = request.GET.copy()
    seen, said = (asked.pop(name, [""])[-1] for name in ("seen", "said"))
    # What links on the page keep is the address of the page.
    request.GET = asked  # type: ignore[assignment]
    context = fragment(request, found)
    if seen == context["seen"]:
        return HttpResponse(status=_UNCHANGED)
    return _render(request, place, "ci/_runner_set_live.html", **context, announced=said != context["said"])


def _exists(place: Place, set_id: int) -> bool:
    return set_id <= MAX_ID and RunnerSet.objects.filter(pk=set_id, **place.rows).exists()


def _load(place: Place, set_id: int) -> RunnerSet:
    """The set, if it is of exactly this place. Raises Http404."""
    found = RunnerSet.objects.filter(pk=set_id, **place.rows).first() if set_id <= MAX_ID else None
    if found is None:
        raise Http404("There is no such runner set here; it may have been deleted.")
    found.owner, found.repository = place.scope.owner, place.scope.repository
    return found


def _saved(form: RunnerSetForm, save: Callable[[], RunnerSet]) -> RunnerSet | None:
    """None where it was refused: then the form says why."""
    try:
        return save()
    except InvalidInput as error:
        for field, text in error.errors.items():
            form.add_error(field if field in form.fields else None, text.split("\n"))
    except (Conflict, NotFound) as error:
        form.refusal = error.detail
    return None


def _form(request: HttpRequest, place: Place, form: RunnerSetForm, runner_set: RunnerSet | None) -> HttpResponse:
    status = 409 if form.refusal else 422 if form.is_bound and form.errors else 200
    version = request.POST.get("version") if request.method == "POST" else None
    shown = version if version is not None else runner_set.version if runner_set else None
    return _render(
        request, place, "ci/runner_set_form.html", form=form, runner_set=runner_set, version=shown, status=status
    )


def _address(place: Place, set_id: int) -> str:
    """Of the set's page; of the list once the set is gone, which a deleted one may be at once."""
    found = RunnerSet.objects.filter(pk=set_id).exists()
    return f"{_list(place)}{set_id}/" if found else _list(place)


def _list(place: Place) -> str:
    repository = place.scope.repository
    return reverse(_LISTS[place.kind], args=[repository.owner.username, repository.name] if repository else [])


def _render(request: HttpRequest, place: Place, template: str, *, status: int = 200, **context: Any) -> HttpResponse:
    frame = {"place": place, "section": "runner_sets", "sets_url": _list(place)}
    return render(request, template, place.context | frame | context, status=status)
