"""What do the views at GitHub's addresses share? They answer JSON whatever media type of GitHub's the client names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request

from ci.api.owners.base import OwnersView


class JsonAnyway(BaseContentNegotiation):
    """Clients ask for application/vnd.github+json and the like, which they read as JSON."""

    def select_parser(self, request: Request, parsers: Sequence[Any]) -> Any:
        return parsers[0]

    def select_renderer(
        self, request: Request, renderers: Sequence[Any], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        return renderers[0], renderers[0].media_type


class GitHubView(OwnersView):
    content_negotiation_class = JsonAnyway
