"""How is each icon drawn? On a 16 by 16 grid, stroked in the text's colour; the words beside it carry the meaning."""

# ruff: noqa: E501 - a path is one line

from __future__ import annotations

import functools

from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

_CIRCLE = "M8 1.75a6.25 6.25 0 1 1 0 12.5a6.25 6.25 0 0 1 0-12.5z"

PATHS = {
    "logo": "M3 1.75h10c.7 0 1.25.55 1.25 1.25v10c0 .7-.55 1.25-1.25 1.25H3c-.7 0-1.25-.55-1.25-1.25V3c0-.7.55-1.25 1.25-1.25zM4.75 8.2l2.3 2.3 4.3-4.7",
    "success": f"{_CIRCLE}M5.25 8.2l2 2 3.6-4.2",
    "failure": f"{_CIRCLE}M5.9 5.9l4.2 4.2M10.1 5.9l-4.2 4.2",
    "cancelled": f"{_CIRCLE}M5.5 8h5",
    "skipped": f"{_CIRCLE}M5.9 10.1l4.2-4.2",
    "startup_failure": "M8 2.1l6.4 11.4H1.6zM8 6.4v3.4M8 11.6v.1",
    "queued": f"{_CIRCLE}M8 4.6V8l2.3 1.5",
    "waiting": f"{_CIRCLE}M6.4 5.6v4.8M9.6 5.6v4.8",
    "blocked": f"{_CIRCLE}M5 8h.1M8 8h.1M11 8h.1",
    "running": "M8 1.75a6.25 6.25 0 1 1-6.25 6.25",
    "cancelling": "M8 1.75a6.25 6.25 0 1 1-6.25 6.25M5.75 8h4.5",
    "branch": "M4.5 4.75v6.5M4.5 9.5c0-2.5 7-1 7-4.25M4.5 1.75a1.5 1.5 0 1 1 0 3a1.5 1.5 0 0 1 0-3zM4.5 11.25a1.5 1.5 0 1 1 0 3a1.5 1.5 0 0 1 0-3zM11.5 2.25a1.5 1.5 0 1 1 0 3a1.5 1.5 0 0 1 0-3z",
    "commit": "M8 5.25a2.75 2.75 0 1 1 0 5.5a2.75 2.75 0 0 1 0-5.5zM1.25 8h4M10.75 8h4",
    "tag": "M1.75 2.75v5l6.5 6.5 6-6-6.5-6.5h-5c-.55 0-1 .45-1 1zM4.75 4.75h.1",
    "folder": "M1.75 3.75v8.5c0 .55.45 1 1 1h10.5c.55 0 1-.45 1-1v-6.5c0-.55-.45-1-1-1H8L6.5 2.75H2.75c-.55 0-1 .45-1 1z",
    "file": "M3.25 1.75h6l3.5 3.5v9h-9.5zM9.25 1.75v3.5h3.5",
    "link": "M6.5 9.5l3-3M7 4.5l1.6-1.6a3 3 0 0 1 4.5 4.5L11.5 9M9 11.5l-1.6 1.6a3 3 0 0 1-4.5-4.5L4.5 7",
    "lock": "M3.75 7.25h8.5v6.5h-8.5zM5.5 7.25V5a2.5 2.5 0 0 1 5 0v2.25",
    "repository": "M3.25 12.5V3c0-.7.55-1.25 1.25-1.25h8.25v9.5H4.5c-.7 0-1.25.55-1.25 1.25s.55 1.25 1.25 1.25h8.25v-2.5",
    "play": "M4.25 2.75l8.5 5.25-8.5 5.25z",
    "clock": f"{_CIRCLE}M8 4.6V8l2.3 1.5",
    "person": "M8 2.25a2.75 2.75 0 1 1 0 5.5a2.75 2.75 0 0 1 0-5.5zM2.75 14c.5-2.75 2.6-4 5.25-4s4.75 1.25 5.25 4",
    "runner": "M2.25 2.75h11.5v4.5H2.25zM2.25 8.75h11.5v4.5H2.25zM4.75 5h.1M4.75 11h.1",
    "warning": "M8 2.1l6.4 11.4H1.6zM8 6.4v3.4M8 11.6v.1",
    "notice": f"{_CIRCLE}M8 7.4v3.4M8 5.1v.1",
    "error": f"{_CIRCLE}M8 4.8v3.8M8 10.9v.1",
    "gear": "M8 5.5a2.5 2.5 0 1 1 0 5a2.5 2.5 0 0 1 0-5zM8 1.5v2M8 12.5v2M1.5 8h2M12.5 8h2M3.4 3.4l1.4 1.4M11.2 11.2l1.4 1.4M3.4 12.6l1.4-1.4M11.2 4.8l1.4-1.4",
    "code": "M5.5 4.5L2 8l3.5 3.5M10.5 4.5L14 8l-3.5 3.5",
    "key": "M5.25 7.25a3 3 0 1 1 0 6a3 3 0 0 1 0-6zM7.4 8.1l5.6-5.6M10.5 5l2 2",
    "download": "M8 2v8M4.75 7l3.25 3.25L11.25 7M2.5 13.5h11",
    "external": "M9.5 2.5h4v4M13.5 2.5L7.75 8.25M11.5 9v4.25H2.75V4.5H7",
    "plus": "M8 3v10M3 8h10",
}
PATHS["assigned"] = PATHS["queued"]


@functools.lru_cache(maxsize=256)
def icon(name: str) -> SafeString:
    """The icon of that name as inline SVG, hidden from assistive technology; an unknown name draws nothing."""
    path = PATHS.get(name)
    if path is None:
        return mark_safe("")
    return format_html(
        '<svg class="icon icon-{}" viewBox="0 0 16 16" aria-hidden="true" focusable="false"><path d="{}"/></svg>',
        name,
        path,
    )
