"""Which files does a step's `uses:` mean, and how do they get here?"""

from __future__ import annotations

import re
import shutil
import socket
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from ci.runner.builtin import catalog
from ci.runner.console import Console
from ci.runner.control import Guard
from ci.runner.git import Git, GitError, safe_ref
from ci.runner.metadata import Action, MetadataError, load
from ci.runner.payload import mapping
from ci.runner.session import Place, Session, StepFailure
from ci.runner.workspace import remove

FETCH_SECONDS = 300.0
CONNECT_SECONDS = 5.0

_REMOTE = re.compile(r"(?P<owner>[A-Za-z0-9_.-]+)/(?P<repo>[A-Za-z0-9_.-]+)(?P<path>(?:/[^@]*)?)@(?P<ref>.+)")


@dataclass(frozen=True)
class Reference:
    """`owner/repo/path@ref`, taken apart."""

    repository: str
    path: str
    ref: str

    @classmethod
    def read(cls, uses: str) -> Reference:
        """Raises StepFailure."""
        match = _REMOTE.fullmatch(uses)
        parts = (match["path"].strip("/") if match else "").split("/")
        if match is None or ".." in parts or not safe_ref(match["ref"]):
            raise StepFailure(
                f"Expected format {{org}}/{{repo}}[/path]@ref, ./path or docker://image. Actual '{uses[:200]}'"
            )
        return cls(f"{match['owner']}/{match['repo']}", "/".join(part for part in parts if part), match["ref"])


class Actions:
    """The actions of one job. A repository is fetched once a job and never kept: a later job must not trust it."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._fetched: dict[tuple[str, str], Path] = {}
        self._failed: dict[tuple[str, str], StepFailure] = {}
        self._reachable: dict[str, bool] = {}
        self.node = shutil.which("node", path=session.base_env["PATH"])

    def has_stand_in(self, uses: str, *, console: Console, guard: Guard) -> bool:
        """Is this step for one of the runner's built-in actions: no node here, the real one to be had nowhere, or one
        that refuses this forge?"""
        if not catalog.knows(uses):
            return False
        if self.node is None or self._works_at_github_only(uses):
            return True
        known = len(self._failed)
        try:
            self._repository(Reference.read(uses), console=console, guard=guard)
        except StepFailure as error:
            if len(self._failed) > known:
                console.print(f"{error}. The runner's {catalog.built_in(uses)} is used instead.")
            return not guard.state()
        return False

    def why_stand_in(self, uses: str) -> str:
        """One sentence for the log of a step that a built-in action runs."""
        if self.node is not None and self._works_at_github_only(uses):
            why = f"the real one refuses every server but GitHub's own, and so {self._session.server_url}"
        else:
            why = "Node.js or the action itself is not available here"
        return f"This is the runner's {catalog.built_in(uses)}: {why}."

    def _works_at_github_only(self, uses: str) -> bool:
        return catalog.works_at_github_only(uses, self._session.server_url)

    def find(self, uses: str, *, place: Place, console: Console, guard: Guard) -> Action:
        """The action that a step of the action at `place` names, fetched where needed. Raises StepFailure."""
        try:
            if uses.startswith("docker://"):
                raise StepFailure(f"'{uses[:200]}' is a container action, which this runner does not support yet")
            if uses.startswith("./") or uses == ".":
                return self._local(uses)
            if uses.startswith("$/"):
                uses = self._of_its_own_repository(uses.removeprefix("$/"), place)
            reference = Reference.read(uses)
            folder = self._repository(reference, console=console, guard=guard)
            inner = (folder / reference.path).resolve()
            if not inner.is_relative_to(folder.resolve()):
                raise StepFailure(f"'{uses[:200]}' points out of its repository")
            return load(inner, label=uses, repository=reference.repository, ref=reference.ref)
        except MetadataError as error:
            raise StepFailure(str(error)) from error

    def _of_its_own_repository(self, path: str, place: Place) -> str:
        """`$/`: of the repository and commit that the action with this step came from, else of the workflow file that
        the job stands in, which in a called workflow may be another repository's."""
        if place.repository:
            return f"{place.repository}/{path}@{place.ref}"
        payload = self._session.payload
        job = mapping(payload.contexts.get("job"))
        repository = job.get("workflow_repository") or payload.github.get("repository")
        sha = job.get("workflow_sha") or payload.github.get("workflow_sha") or payload.github.get("sha")
        return f"{repository}/{path}@{sha}"

    def _local(self, uses: str) -> Action:
        workspace = self._session.workspace
        folder = (workspace / uses).resolve()
        if not folder.is_relative_to(workspace.resolve()):
            raise StepFailure(f"'{uses[:200]}' points out of the workspace")
        try:
            return load(folder, label=uses)
        except MetadataError as error:
            if folder.is_dir() and any(folder.iterdir()):
                raise
            hint = "Did you forget to run actions/checkout before running your local action?"
            raise MetadataError(f"{error}. {hint}") from error

    def _repository(self, reference: Reference, *, console: Console, guard: Guard) -> Path:
        """The folder with the repository at that ref. Raises StepFailure."""
        key = (reference.repository.lower(), reference.ref)
        if key in self._failed:
            raise self._failed[key]
        if key not in self._fetched:
            try:
                self._fetched[key] = self._fetch(reference, console=console, guard=guard)
            except StepFailure as error:
                self._failed[key] = error
                raise
        return self._fetched[key]

    def _fetch(self, reference: Reference, *, console: Console, guard: Guard) -> Path:
        """Try this forge, then each configured source."""
        own = self._session.server_url
        sources = list(dict.fromkeys(url for url in (own, *self._session.payload.actions_sources) if url))
        folder = self._session.folders.actions / re.sub(
            r"[^A-Za-z0-9._-]", "_", f"{reference.repository}_{reference.ref}"
        )
        name = f"{reference.repository}@{reference.ref}"
        problems: list[str] = []
        for source in sources:
            try:
                sha = self._clone(source, reference, folder, own=source == own, guard=guard)
            except (GitError, OSError) as error:
                problems.append(f"{source}: {str(error)[:300]}")
                remove(folder)
                if guard.state():
                    break
                continue
            console.print(f"Download action repository '{name}' (SHA:{sha}) from {source}")
            return folder
        raise StepFailure(
            f"Unable to resolve action `{name}`. Tried: {'; '.join(problems) or 'no source is configured'}"
        )

    def _clone(self, source: str, reference: Reference, folder: Path, *, own: bool, guard: Guard) -> str:
        if not own and not self._answers(source):
            raise GitError("no connection")
        session = self._session
        limited = Guard(session.control, parent=guard, seconds=FETCH_SECONDS)
        git = Git(session.base_env, guard=limited, marker=session.next_marker, show=lambda text: None)
        if own:
            git.authorize(session.server_url, session.payload.token)
        remove(folder)
        folder.mkdir(parents=True)
        cwd = str(folder)
        git.run("init", "-q", ".", cwd=cwd, quiet=True)
        url = f"{source}/{reference.repository}"
        fetch = ("fetch", "-q", "--no-tags", "--depth=1", "--no-recurse-submodules", "--", url, reference.ref)
        git.run(*fetch, cwd=cwd, quiet=True)
        git.run("checkout", "-q", "--detach", "FETCH_HEAD", cwd=cwd, quiet=True)
        return git.run("rev-parse", "HEAD", cwd=cwd, quiet=True).strip()

    def _answers(self, source: str) -> bool:
        """Can the source be reached at all? git itself would try for minutes where a firewall drops packets."""
        if source not in self._reachable:
            self._reachable[source] = _connects(source, proxied=self._proxied())
        return self._reachable[source]

    def _proxied(self) -> bool:
        return any(
            self._session.base_env.get(name) for name in ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")
        )


def _connects(source: str, *, proxied: bool) -> bool:
    parts = urlsplit(source)
    if proxied or parts.scheme not in ("http", "https") or not parts.hostname:
        return True
    try:
        port = parts.port or (443 if parts.scheme == "https" else 80)
        with socket.create_connection((parts.hostname, port), timeout=CONNECT_SECONDS):
            return True
    except (OSError, ValueError):
        return False
