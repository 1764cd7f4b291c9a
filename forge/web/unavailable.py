"""What do people and programs see of an error nobody caught? Of a database that is away: that, and when to return."""

from __future__ import annotations

import sys

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.defaults import server_error

RETRY_AFTER_SECONDS = 5


def answer(request: HttpRequest) -> HttpResponse:
    """Django's handler500, called while it handles the error."""
    if not isinstance(sys.exc_info()[1], OperationalError | InterfaceError):
        return server_error(request)
    response: HttpResponse
    if request.path.startswith("/api/"):
        detail = "The forge cannot reach its database, or it is too busy. Try the same call again."
        response = JsonResponse({"code": "unavailable", "detail": detail}, status=503)
    else:
        # Without the request: who is signed in stands in the database too.
        response = render(None, "503.html", {"seconds": RETRY_AFTER_SECONDS}, status=503)
    response["Retry-After"] = str(RETRY_AFTER_SECONDS)
    response["Cache-Control"] = "no-store"
    return response
