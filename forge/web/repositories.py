"""How does a person make a repository?"""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from forge.repositories import create_repository
from forge.web.forms import NewRepositoryForm
from forge.web.loading import signed_in


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def new_repository(request: HttpRequest) -> HttpResponse:
    form = NewRepositoryForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        try:
            repository = create_repository(owner=signed_in(request), **form.cleaned_data)
        except ValidationError as error:
            form.add_error(None, error)
        else:
            messages.success(request, f"{repository} is there. Now push to it.")
            return redirect(repository)
    return render(request, "forge/new_repository.html", {"form": form}, status=422 if form.errors else 200)
