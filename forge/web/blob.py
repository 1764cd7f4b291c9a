"""What is in a file of a commit?"""

from __future__ import annotations

from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.safestring import SafeString
from django.views.decorators.http import require_safe

from forge.git import bare
from forge.git.bare import Entry
from forge.web import markdown
from forge.web.loading import get_repository
from forge.web.raw import SNIFFED, entry_at, image_type
from forge.web.refs import Place, find_place, switcher
from forge.web.tree import MARKDOWN

MAX_SHOWN = 1024 * 1024  # bytes
MAX_LINES = 20_000


@dataclass(frozen=True)
class Shown:
    """What the page shows of a file: its text by lines, or why there is none."""

    lines: list[str]
    html: SafeString | None = None
    problem: str = ""  # "binary", "too_large"
    not_utf8: bool = False
    left_out: int = 0


@require_safe
def blob(request: HttpRequest, owner: str, name: str, rest: str) -> HttpResponse:
    place = find_place(get_repository(request, owner, name), rest)
    entry = entry_at(place)
    if entry.type == "tree":
        return redirect(place.tree_url)
    plain = "plain" in request.GET
    context = {
        "repository": place.repository,
        "place": place,
        "entry": entry,
        "file": _shown(place, entry, plain),
        "is_image": image_type(place.path) is not None,
        "is_markdown": place.path.lower().endswith(MARKDOWN),
        "plain": plain,
        **switcher(place, "blob"),
    }
    return render(request, "forge/blob.html", context)


def _shown(place: Place, entry: Entry, plain: bool) -> Shown:
    if (entry.size or 0) > MAX_SHOWN:
        return Shown([], problem="too_large")
    content = bare.blob(place.repository, place.sha, place.path, max_bytes=MAX_SHOWN) or b""
    if b"\0" in content[:SNIFFED]:
        return Shown([], problem="binary")
    text = content.decode("utf-8", "replace")
    not_utf8 = not _is_utf8(content)
    if place.path.lower().endswith(MARKDOWN) and not plain:
        folder = place.path.rpartition("/")[0]
        link_base, image_base = (place.url(view, folder) + "/" for view in ("blob", "raw"))
        return Shown([], html=markdown.render(text, link_base=link_base, image_base=image_base), not_utf8=not_utf8)
    lines = text.replace("\r\n", "\n").split("\n")
    if lines[-1] == "":
        lines.pop()
    return Shown(lines[:MAX_LINES], not_utf8=not_utf8, left_out=max(0, len(lines) - MAX_LINES))


def _is_utf8(content: bytes) -> bool:
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
