"""How do request bodies reach the views? As JSON objects, read no further than their limit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, Any

from rest_framework.parsers import BaseParser

from ci.api.bodies import LARGEST_BODY, LARGEST_SMALL_BODY, parse_object, too_large


class ObjectParser(BaseParser):
    """Raises BodyError for anything but a JSON object."""

    media_type = "application/json"
    limit = LARGEST_SMALL_BODY
    any_text = False

    def parse(
        self, stream: IO[bytes], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        raw = stream.read(self.limit + 1)
        if len(raw) > self.limit:
            raise too_large(self.limit)
        return parse_object(raw, any_text=self.any_text)


class LargeObjectParser(ObjectParser):
    """For calls that carry the texts of many steps."""

    limit = LARGEST_BODY


class LogParser(ObjectParser):
    """For log lines: what cannot be stored is replaced later on, as no line may be lost for one character."""

    limit = LARGEST_BODY
    any_text = True
