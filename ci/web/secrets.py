"""Which secrets are there? Their names and times; a value is set and replaced, and never shown again."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from ci.lifecycle.settings_values import delete_secret, set_secret
from ci.models import Secret
from ci.web.scopes import of_environment, of_instance, of_person, of_repository
from ci.web.values import Verbs, page

_VERBS = Verbs(model=Secret, set=set_secret, delete=delete_secret, noun="secret", section="secrets")


@sensitive_post_parameters("value")
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def secrets(request: HttpRequest, owner: str, name: str) -> HttpResponse:
    return page(request, of_repository(request, owner, name), _VERBS)


@sensitive_post_parameters("value")
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def environment_secrets(request: HttpRequest, owner: str, name: str, environment_id: int) -> HttpResponse:
    return page(request, of_environment(request, owner, name, environment_id), _VERBS)


@sensitive_post_parameters("value")
@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def owner_secrets(request: HttpRequest) -> HttpResponse:
    return page(request, of_person(request), _VERBS)


@sensitive_post_parameters("value")
@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def instance_secrets(request: HttpRequest) -> HttpResponse:
    return page(request, of_instance(request), _VERBS)
