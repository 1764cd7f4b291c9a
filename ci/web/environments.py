"""Which environments does a repository have, and how does one come and go, with its secrets and variables?"""

from __future__ import annotations

from typing import Any

from django import forms
from django.db.models import Count, IntegerField, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from ci.lifecycle.deployments import deploying
from ci.lifecycle.environments import MAX_NAME, create_environment, delete_environment
from ci.lifecycle.errors import InvalidInput
from ci.models import Environment, Secret, Variable
from ci.web.pages import around, paged, tell
from ci.web.scopes import of_environment
from forge.access import can_administer
from forge.models import Repository
from forge.web.loading import get_repository

_READS = ["GET", "HEAD", "POST"]


class EnvironmentForm(forms.Form):
    """ci.lifecycle checks the name; the form draws it and shows what it says."""

    name = forms.CharField(
        max_length=MAX_NAME,
        help_text="As a job's environment names it; compared without case.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )


@require_http_methods(_READS)
def environments(request: HttpRequest, owner: str, name: str) -> HttpResponse:
    repository = get_repository(request, owner, name, need=can_administer)
    if request.method != "POST":
        return _show(request, repository, EnvironmentForm())
    form = EnvironmentForm(request.POST)
    if form.is_valid():
        try:
            made = create_environment(repository=repository, name=form.cleaned_data["name"], actor=request.user)
        except InvalidInput as error:
            for field, text in error.errors.items():
                form.add_error(field if field in form.fields else None, text)
        else:
            tell(request, lambda: f"The environment {made.name} is created.")
            return redirect("environment_secrets", repository.owner.username, repository.name, made.pk)
    return _show(request, repository, form, status=422)


@require_http_methods(_READS)
def environment_delete(request: HttpRequest, owner: str, name: str, environment_id: int) -> HttpResponse:
    """GET asks whether it is meant, POST does it."""
    place = of_environment(request, owner, name, environment_id)
    environment: Environment = place.scope.environment
    if request.method != "POST":
        counted = counts(Environment.objects.filter(pk=environment.pk)).get()
        return render(
            request, "ci/environment_delete.html", place.context | {"place": place, "counted": counted, "section": ""}
        )

    def delete() -> str:
        delete_environment(repository=environment.repository, name=environment.name, actor=request.user)
        return f"The environment {environment.name} is deleted."

    tell(request, delete)
    return redirect("environments", environment.repository.owner.username, environment.repository.name)


def counts(rows: QuerySet[Environment]) -> QuerySet[Environment]:
    """With `secret_count`, `variable_count` and `deployment_count`."""
    return rows.annotate(
        secret_count=_count(Secret.objects.all()),
        variable_count=_count(Variable.objects.all()),
        deployment_count=_count(deploying()),
    )


def _count(rows: QuerySet[Any]) -> Coalesce:
    of_one = rows.filter(environment=OuterRef("pk")).order_by().values("environment")
    return Coalesce(Subquery(of_one.annotate(count=Count("pk")).values("count"), output_field=IntegerField()), 0)


def _show(request: HttpRequest, repository: Repository, form: EnvironmentForm, *, status: int = 200) -> HttpResponse:
    rows = counts(Environment.objects.filter(repository=repository)).order_by("name")
    context = around(repository, form=form, section="environments", page_obj=paged(request, rows, size=100))
    return render(request, "ci/environments.html", context, status=status)
