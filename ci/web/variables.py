"""Which variables are there, and what are they? Workflows read them as `vars`."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_http_methods

from ci.lifecycle.settings_values import delete_variable, set_variable
from ci.models import Variable
from ci.web.scopes import of_environment, of_instance, of_person, of_repository
from ci.web.values import Verbs, page

_VERBS = Verbs(model=Variable, set=set_variable, delete=delete_variable, noun="variable", section="variables")


@require_http_methods(["GET", "HEAD", "POST"])
def variables(request: HttpRequest, owner: str, name: str) -> HttpResponse:
    return page(request, of_repository(request, owner, name), _VERBS)


@require_http_methods(["GET", "HEAD", "POST"])
def environment_variables(request: HttpRequest, owner: str, name: str, environment_id: int) -> HttpResponse:
    return page(request, of_environment(request, owner, name, environment_id), _VERBS)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def owner_variables(request: HttpRequest) -> HttpResponse:
    return page(request, of_person(request), _VERBS)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def instance_variables(request: HttpRequest) -> HttpResponse:
    return page(request, of_instance(request), _VERBS)
