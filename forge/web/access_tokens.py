"""With what do a person's git and programs sign in? Personal access tokens, each shown once."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from forge.access_tokens import create_access_token, revoke_access_token
from forge.models import AccessToken
from forge.web.forms import AccessTokenForm
from forge.web.loading import signed_in

PAGE_SIZE = 50


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def access_tokens(request: HttpRequest) -> HttpResponse:
    """The list, and the form that makes one. The answer to the form is the one page that ever holds the token."""
    form = AccessTokenForm(request.POST if request.method == "POST" else None)
    made = plaintext = None
    if request.method == "POST" and form.is_valid():
        try:
            made, plaintext = create_access_token(
                user=signed_in(request), name=form.cleaned_data["name"], expires_at=form.expires_at
            )
            form = AccessTokenForm()
        except ValidationError as error:
            form.add_error(None, error)
    tokens = AccessToken.objects.filter(user=signed_in(request))
    page = Paginator(tokens, PAGE_SIZE).get_page(request.GET.get("page"))
    context = {"form": form, "page_obj": page, "made": made, "plaintext": plaintext}
    return render(request, "forge/access_tokens.html", context, status=422 if form.errors else 200)


@login_required
@require_POST
def access_token_revoke(request: HttpRequest, token_id: int) -> HttpResponse:
    if revoke_access_token(user=signed_in(request), token_id=token_id):
        messages.success(request, "The token was revoked and is no longer accepted.")
    else:
        messages.error(request, "There is no such token of yours; it may have been revoked already.")
    return redirect("access_tokens")
