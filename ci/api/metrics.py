"""`/metrics`: who may read the figures of the instance, and in which of Prometheus' formats?"""

from __future__ import annotations

import hmac

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import path
from django.views import View
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from ci.api.authentication import token_in
from ci.api.errors import CHALLENGE
from ci.api.session_metrics import SessionCollector
from ci.api.set_metrics import SetCollector
from forge.access import can_operate

_SIGN_IN = (
    "Send `Authorization: Bearer …` with the text of FORGE_METRICS_TOKEN, or sign in as an administrator.\n"
    "Where that setting is empty, only administrators may read this.\n"
)
_NOT_ALLOWED = "Only administrators of the instance may read this.\n"


class MetricsView(View):
    """Names of sets and repositories are in it, private ones too: so it is for administrators and their Prometheus."""

    http_method_names = ["get", "head"]

    def get(self, request: HttpRequest) -> HttpResponse:
        refusal = _refusal(request)
        if refusal is not None:
            return refusal
        registry = CollectorRegistry(auto_describe=False)
        registry.register(SetCollector())
        registry.register(SessionCollector())
        encoder, content_type = choose_encoder(request.headers.get("Accept", ""))
        return _uncached(HttpResponse(encoder(registry), content_type=content_type))


def _refusal(request: HttpRequest) -> HttpResponse | None:
    if "Authorization" in request.headers:
        # Whoever sends a token is judged by it alone, whatever session the browser has beside it.
        if _is_the_token(token_in(request.headers["Authorization"])):
            return None
    elif request.user.is_authenticated:
        if can_operate(request.user):
            return None
        return _uncached(HttpResponse(_NOT_ALLOWED, status=403, content_type="text/plain; charset=utf-8"))
    answer = HttpResponse(_SIGN_IN, status=401, content_type="text/plain; charset=utf-8")
    answer["WWW-Authenticate"] = CHALLENGE
    return _uncached(answer)


def _is_the_token(token: str | None) -> bool:
    """An empty setting is no token that could be sent."""
    expected: str = settings.METRICS_TOKEN
    return bool(expected) and token is not None and hmac.compare_digest(token.encode(), expected.encode())


def _uncached(answer: HttpResponse) -> HttpResponse:
    answer["Cache-Control"] = "no-store"
    return answer


urlpatterns = [path("", MetricsView.as_view(), name="metrics")]
