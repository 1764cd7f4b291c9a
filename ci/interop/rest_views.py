"""How does a call of the older services reach its handler? By method, with the job whose runtime token it sends."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.views.decorators.csrf import csrf_exempt

from ci.interop.rest_errors import describe
from ci.interop.runtime_calls import caller

# A status, and what is sent as JSON; None: no body.
Answer = tuple[int, dict[str, Any] | None]
# Called with the request, the job, and what the address names.
Handler = Callable[..., Answer]


def view(handlers: Mapping[str, Handler]) -> Callable[..., HttpResponseBase]:
    """The view of one address; `handlers` by method."""

    @csrf_exempt
    def call(request: HttpRequest, **names: Any) -> HttpResponseBase:
        handler = handlers.get(request.method or "")
        if handler is None:
            said = {"code": "method_not_allowed", "message": f"Use {' or '.join(handlers)}."}
            return JsonResponse(said, status=405, headers={"Allow": ", ".join(handlers)})
        try:
            status, body = handler(request, caller(request.headers.get("Authorization")), **names)
        except Exception as error:
            status, body = describe(error)
        headers = {"Cache-Control": "no-store"}
        if body is None:
            return HttpResponse(status=status, headers=headers)
        return JsonResponse(body, status=status, headers=headers)

    return call
