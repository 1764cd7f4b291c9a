"""What do the views at GitHub's addresses share? They answer JSON whatever media type of GitHub's the client names."""

from __future__ import annotations

from collections.abc import Iterable

from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request

from ci.api.owners.base import OwnersView


class JsonAnyway(BaseContentNegotiation):
    """Clients ask for application/vnd.github+json and the like, which they read as JSON."""

    def select_parser(self, request: Request, parsers: Iterable[BaseParser]) -> BaseParser:
        return next(iter(parsers))

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        first = next(iter(renderers))
        return first, first.media_type


class GitHubView(OwnersView):
    content_negotiation_class = JsonAnyway
