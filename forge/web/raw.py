"""What are a file's bytes? Sent so that nothing in them can run or act in the name of this site."""

from __future__ import annotations

import subprocess
import tempfile
from typing import IO
from urllib.parse import quote

from django.http import FileResponse, Http404, HttpRequest, HttpResponseBase
from django.views.decorators.http import require_safe

from forge.git import bare
from forge.git.bare import Entry, GitError
from forge.git.program import environment
from forge.web.loading import get_repository
from forge.web.refs import Place, find_place

MAX_RAW = 2 * 1024**3  # bytes
SNIFFED = 8000  # bytes; git itself looks at as many to tell binary files
_DEADLINE = 120.0  # seconds
_BINARY = "application/octet-stream"
# Browsers show these as pictures; an SVG can hold scripts, which the sandbox stops.
_IMAGES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".svg": "image/svg+xml",
}
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"


@require_safe
def raw(request: HttpRequest, owner: str, name: str, rest: str) -> HttpResponseBase:
    """Text and pictures as such, everything else (and all with `?download`) as a download."""
    place = find_place(get_repository(request, owner, name), rest)
    entry = entry_at(place)
    if entry.type != "blob":
        raise Http404("This is a folder.")
    if (entry.size or 0) > MAX_RAW:
        raise Http404("This file is too large for the browser. Clone the repository to get it.")
    content = _content(place, entry)
    image = image_type(place.path)
    is_text = b"\0" not in content.read(SNIFFED)
    content.seek(0)
    response = FileResponse(content, content_type=image or ("text/plain; charset=utf-8" if is_text else _BINARY))
    kind = "inline" if (image or is_text) and "download" not in request.GET else "attachment"
    response["Content-Disposition"] = f"{kind}; filename*=UTF-8''{quote(place.last, safe='')}"
    response["Content-Length"] = str(entry.size or 0)
    response["Cache-Control"] = "private, no-cache"
    response["Content-Security-Policy"] = _POLICY
    response["X-Content-Type-Options"] = "nosniff"
    return response


def entry_at(place: Place) -> Entry:
    """What is at the place. Raises Http404 for nothing and for a submodule, which has no bytes here."""
    if not place.path:
        return Entry("040000", "tree", place.sha, None, "")
    entry = bare.entry(place.repository, place.sha, place.path)
    if entry is None or entry.type == "commit":
        raise Http404("There is no such file in this commit.")
    return entry


def image_type(path: str) -> str | None:
    dot = path.rfind(".")
    return _IMAGES.get(path[dot:].lower()) if dot >= 0 else None


def _content(place: Place, entry: Entry) -> IO[bytes]:
    """The file's bytes in a temporary file: a large one must not sit in memory. The response closes it."""
    content = tempfile.TemporaryFile()  # noqa: SIM115
    command = ["git", f"--git-dir={place.repository.path}", "cat-file", "blob", entry.sha]
    try:
        subprocess.run(
            command, stdout=content, stderr=subprocess.DEVNULL, env=environment(), timeout=_DEADLINE, check=True
        )
    except (subprocess.SubprocessError, OSError) as error:
        content.close()
        raise GitError(f"the file at {place.rest} could not be read") from error
    content.seek(0)
    return content
