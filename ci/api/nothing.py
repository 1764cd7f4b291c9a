"""What does an address below /api/ answer that is none? An error in the shape of all others, not a page."""

from __future__ import annotations

from typing import Any

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView


@extend_schema(exclude=True)
class NothingView(APIView):
    authentication_classes = []
    permission_classes = []

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Before any method is looked for: whatever the method, there is nothing here."""
        raise Http404("There is nothing at this address; /api/docs/ lists what there is.")

    def get(self, request: Request) -> Response:
        raise Http404
