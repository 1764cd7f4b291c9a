"""Which commit and which path does an address name, and which others could it name?"""

from __future__ import annotations

from dataclasses import dataclass

from django.http import Http404
from django.urls import reverse

from forge.git import bare
from forge.git.bare import Ref, RefAndPath
from forge.models import Repository

SWITCHER_SIZE = 30


@dataclass(frozen=True)
class Crumb:
    name: str
    url: str


@dataclass(frozen=True)
class Place:
    """A commit under the name it was asked for, and a path in it."""

    repository: Repository
    ref: str
    kind: str  # "branch", "tag" or "commit"
    sha: str
    path: str

    @property
    def name(self) -> str:
        return self.ref[:10] if self.kind == "commit" else self.ref

    @property
    def rest(self) -> str:
        return f"{self.ref}/{self.path}" if self.path else self.ref

    def url(self, view: str, path: str | None = None) -> str:
        """The address of `path` (default: this one's) in the view `tree`, `blob`, `raw` or `commits`."""
        path = self.path if path is None else path
        rest = f"{self.ref}/{path}" if path else self.ref
        return reverse(view, args=[self.repository.owner.username, self.repository.name, rest])

    @property
    def tree_url(self) -> str:
        return self.url("tree")

    @property
    def blob_url(self) -> str:
        return self.url("blob")

    @property
    def raw_url(self) -> str:
        return self.url("raw")

    @property
    def commits_url(self) -> str:
        return self.url("commits")

    @property
    def crumbs(self) -> list[Crumb]:
        """The folders above, from the repository itself down."""
        parts = self.path.split("/")[:-1] if self.path else []
        above = [Crumb(part, self.url("tree", "/".join(parts[: depth + 1]))) for depth, part in enumerate(parts)]
        return [Crumb(self.repository.name, self.url("tree", "")), *above] if self.path else []

    @property
    def last(self) -> str:
        return self.path.rpartition("/")[2]


def find_place(repository: Repository, rest: str) -> Place:
    """The place that `rest` ("main/docs/a.md") names. Raises Http404 when its beginning names no commit."""
    found: RefAndPath | None = bare.split_ref_and_path(repository, rest)
    if found is None:
        raise Http404("There is no such branch, tag or commit.")
    return Place(repository, found.ref, found.kind, found.sha, found.path)


def default_place(repository: Repository) -> Place | None:
    """The default branch, or while nobody has pushed that, the one pushed to last; None when there are no branches."""
    sha = bare.ref_sha(repository, f"refs/heads/{repository.default_branch}")
    if sha is not None:
        return Place(repository, repository.default_branch, "branch", sha, "")
    newest = bare.branches(repository, limit=1)
    return Place(repository, newest[0].name, "branch", newest[0].sha, "") if newest else None


def switcher(place: Place, view: str) -> dict[str, object]:
    """Branches and tags to change to, at the same path; the rest is on the branches page."""

    def choices(refs: list[Ref], kind: str) -> list[tuple[str, str, bool]]:
        elsewhere = [Place(place.repository, ref.name, kind, ref.sha, place.path) for ref in refs]
        return [(to.name, to.url(view), (to.ref, to.kind) == (place.ref, place.kind)) for to in elsewhere]

    return {
        "switch_branches": choices(bare.branches(place.repository, limit=SWITCHER_SIZE), "branch"),
        "switch_tags": choices(bare.tags(place.repository, limit=SWITCHER_SIZE), "tag"),
    }


def shown(name: str) -> str:
    """A name as a page can hold it: git allows bytes that are no UTF-8, HTML does not."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def is_text(name: str) -> bool:
    """Whether the name is UTF-8, so that an address can hold it."""
    return name == shown(name)
