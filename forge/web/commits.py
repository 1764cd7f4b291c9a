"""What was changed, when, and by whom?"""

from __future__ import annotations

from dataclasses import dataclass, field

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from forge.git import bare
from forge.web.loading import get_repository
from forge.web.paging import window
from forge.web.refs import Place, find_place, is_text, shown, switcher
from forge.web.states import states_of

PAGE_SIZE = 30
MAX_DIFF_LINES = 5000
MAX_LINE = 2000  # characters
MAX_FILES = 300
_LOOKS = {"+": "added", "-": "removed", "@": "hunk"}


@dataclass
class FileDiff:
    name: str
    lines: list[tuple[str, str]] = field(default_factory=list)  # (look, text)


@require_safe
def commits(request: HttpRequest, owner: str, name: str, rest: str) -> HttpResponse:
    """The history of a ref, or of one file or folder in it."""
    repository = get_repository(request, owner, name)
    place = find_place(repository, rest)
    page = window(
        request,
        lambda skip, limit: bare.commits(repository, place.sha, path=place.path or None, skip=skip, limit=limit),
        size=PAGE_SIZE,
    )
    states = states_of(repository, [commit.sha for commit in page.items])
    context = {
        "repository": repository,
        "place": place,
        "window": page,
        "commits": [(commit, states.get(commit.sha)) for commit in page.items],
        **switcher(place, "commits"),
    }
    return render(request, "forge/commits.html", context)


@require_safe
def commit(request: HttpRequest, owner: str, name: str, sha: str) -> HttpResponse:
    """One commit, its full SHA in the address."""
    repository = get_repository(request, owner, name)
    found = bare.commit(repository, sha)
    if found is None:
        full = bare.resolve(repository, sha)
        if full is None or full == sha:
            raise Http404("There is no such commit.")
        return redirect("commit", repository.owner.username, repository.name, full)
    diff = bare.diff(repository, sha)
    files, cut = parse_diff(diff.text) if diff else ([], False)
    changes = [(shown(change.path), change) for change in diff.files] if diff else []
    places = {file.name: number for number, file in enumerate(files, 1)}
    context = {
        "repository": repository,
        "place": Place(repository, sha, "commit", sha, ""),
        "commit": found,
        "state": states_of(repository, [sha]).get(sha),
        "changes": [(name, change, places.get(name)) for name, change in changes[:MAX_FILES]],
        "change_count": len(changes),
        "added": sum(change.added or 0 for _, change in changes),
        "deleted": sum(change.deleted or 0 for _, change in changes),
        "files": [(file, _url_at(repository, sha, file.name)) for file in files],
        "cut": cut or bool(diff and diff.truncated),
    }
    return render(request, "forge/commit.html", context)


def _url_at(repository: bare.Repository, sha: str, path: str) -> str:
    return Place(repository, sha, "commit", sha, path).blob_url if is_text(path) else ""


def parse_diff(text: str) -> tuple[list[FileDiff], bool]:
    """A difference as git writes it, by file; and whether lines or files were left out."""
    files: list[FileDiff] = []
    count = 0
    for line in text.split("\n"):
        if line.startswith("diff --git "):
            if len(files) == MAX_FILES:
                return files, True
            files.append(FileDiff(_name_in_header(line)))
            in_header = True
            continue
        if not files or not line:
            continue
        if in_header and not line.startswith("@@"):
            _read_header(files[-1], line)
            continue
        in_header = False
        if count == MAX_DIFF_LINES:
            return files, True
        count += 1
        files[-1].lines.append((_LOOKS.get(line[0], ""), line[:MAX_LINE]))
    return files, False


def _name_in_header(line: str) -> str:
    # Both names are the same except in a rename, whose own header lines follow and say it better.
    names = line.removeprefix("diff --git ")
    return names[len(names) // 2 + 1 :].removeprefix("b/")


def _read_header(file: FileDiff, line: str) -> None:
    for start in ("rename to ", "copy to "):
        if line.startswith(start):
            file.name = line.removeprefix(start)
    if line.startswith("+++ b/"):
        file.name = line.removeprefix("+++ b/").rstrip("\t")
    elif line.startswith(("new file", "deleted file", "old mode", "new mode", "similarity", "rename from", "Binary")):
        file.lines.append(("note", line))
