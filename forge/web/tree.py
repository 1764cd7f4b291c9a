"""Which files are in a folder of a commit? Also the repository's own page, which is its root folder."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.safestring import SafeString
from django.views.decorators.http import require_safe

from forge.git import bare
from forge.git.bare import Entry
from forge.web import markdown
from forge.web.loading import get_repository
from forge.web.refs import Place, default_place, find_place, is_text, shown, switcher
from forge.web.states import states_of

MAX_README = 512 * 1024
MAX_ENTRIES = 2000
MARKDOWN = (".md", ".markdown")
_READMES = ("readme.md", "readme.markdown", "readme", "readme.txt", "readme.rst")


@dataclass(frozen=True)
class Row:
    """One line of the files table. `url` is empty where there is nothing to open."""

    entry: Entry
    name: str
    url: str


@dataclass(frozen=True)
class Readme:
    name: str
    html: SafeString | None
    text: str


@require_safe
def repository(request: HttpRequest, owner: str, name: str) -> HttpResponse:
    found = get_repository(request, owner, name)
    place = default_place(found)
    if place is None:
        return render(request, "forge/empty_repository.html", {"repository": found})
    return _folder(request, place)


@require_safe
def tree(request: HttpRequest, owner: str, name: str, rest: str) -> HttpResponse:
    place = find_place(get_repository(request, owner, name), rest)
    return _folder(request, place)


def _folder(request: HttpRequest, place: Place) -> HttpResponse:
    entries = bare.tree(place.repository, place.sha, place.path)
    if entries is None:
        if bare.entry(place.repository, place.sha, place.path) is not None:
            return redirect(place.blob_url)
        raise Http404("There is no such folder in this commit.")
    commits = bare.commits(place.repository, place.sha, path=place.path or None, limit=1)
    newest = commits[0] if commits else bare.commit(place.repository, place.sha)
    context = {
        "repository": place.repository,
        "place": place,
        "rows": [_row(place, entry) for entry in entries[:MAX_ENTRIES]],
        "left_out": max(0, len(entries) - MAX_ENTRIES),
        "commit": newest,
        "state": states_of(place.repository, [newest.sha]).get(newest.sha) if newest else None,
        "readme": _readme(place, entries),
        **switcher(place, "tree"),
    }
    return render(request, "forge/tree.html", context)


def _row(place: Place, entry: Entry) -> Row:
    if entry.type == "commit" or not is_text(entry.name):
        return Row(entry, shown(entry.name), "")
    path = f"{place.path}/{entry.name}" if place.path else entry.name
    return Row(entry, shown(entry.name), place.url("tree" if entry.type == "tree" else "blob", path))


def _readme(place: Place, entries: list[Entry]) -> Readme | None:
    files = {entry.name.lower(): entry for entry in entries if entry.type == "blob" and not entry.is_symlink}
    chosen = next((files[name] for name in _READMES if name in files), None)
    if chosen is None or (chosen.size or 0) > MAX_README:
        return None
    path = f"{place.path}/{chosen.name}" if place.path else chosen.name
    content = bare.blob(place.repository, place.sha, path, max_bytes=MAX_README)
    if content is None or b"\0" in content:
        return None
    text = content.decode("utf-8", "replace")
    html = None
    if chosen.name.lower().endswith(MARKDOWN):
        html = markdown.render(text, link_base=f"{place.blob_url}/", image_base=f"{place.raw_url}/")
    return Readme(chosen.name, html, text)
