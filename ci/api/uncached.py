"""Which answers may a cache keep? None: they hold tokens, or what only this caller may see."""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request
from rest_framework.views import APIView


class UncachedView(APIView):
    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        answer = super().finalize_response(request, response, *args, **kwargs)
        answer["Cache-Control"] = "no-store"
        return answer
