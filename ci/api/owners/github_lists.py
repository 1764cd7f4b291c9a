"""How do the addresses that are GitHub's page their lists? Named as there, with the other pages in the Link header."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from drf_spectacular.utils import OpenApiParameter, inline_serializer
from rest_framework import serializers
from rest_framework.response import Response

from ci.api.documentation import PAGING, errors
from ci.api.owners.base import OwnersView
from ci.api.pagination import Pages


def listed(view: OwnersView, rows: Any, shape: type[serializers.Serializer[Any]], name: str) -> Response:
    """The page of `rows` that the address asks for, below `name`; clients of GitHub follow the Link header."""
    pages = Pages()
    found: Any = pages.paginate_queryset(rows, view.request, view=view)
    assert pages.page is not None
    body = {"total_count": pages.page.paginator.count, name: shape(found, many=True).data}
    links = {"next": pages.get_next_link(), "prev": pages.get_previous_link()}
    said = ", ".join(f'<{address}>; rel="{relation}"' for relation, address in links.items() if address)
    return Response(body, headers={"Link": said} if said else None)


def list_of(
    shape: type[serializers.Serializer[Any]],
    name: str,
    *statuses: int,
    parameters: Sequence[OpenApiParameter] = (),
) -> dict[str, Any]:
    """Options for `extend_schema` of such a list: its parameters and its responses, with these errors too."""
    page = inline_serializer(
        f"ListOf{shape.__name__.removesuffix('Shape')}",
        {
            "total_count": serializers.IntegerField(help_text="How many there are on all pages."),
            name: shape(many=True),
        },
    )
    return {
        "parameters": [*PAGING, *parameters],
        "responses": {200: page, **errors(401, 404, 429, *statuses)},
    }
