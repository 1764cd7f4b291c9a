"""How is a repository checked out where the real actions/checkout cannot run?"""

from __future__ import annotations

import base64
import os
import re
from pathlib import Path
from typing import Any

from ci.runner.console import Console
from ci.runner.control import Guard
from ci.runner.git import Git, GitError, basic, safe_ref
from ci.runner.session import Session, StepFailure
from ci.runner.workspace import remove

# The inputs of actions/checkout; see its README for what each means.
INPUTS: dict[str, dict[str, Any]] = {
    "repository": {"default": "${{ github.repository }}"},
    "ref": {},
    "token": {"default": "${{ github.token }}"},
    "ssh-key": {},
    "ssh-known-hosts": {},
    "ssh-strict": {"default": "true"},
    "ssh-user": {"default": "git"},
    "persist-credentials": {"default": "true"},
    "path": {},
    "clean": {"default": "true"},
    "filter": {},
    "sparse-checkout": {},
    "sparse-checkout-cone-mode": {"default": "true"},
    "fetch-depth": {"default": "1"},
    "fetch-tags": {"default": "false"},
    "show-progress": {"default": "true"},
    "lfs": {"default": "false"},
    "submodules": {"default": "false"},
    "set-safe-directory": {"default": "true"},
    "github-server-url": {},
}

_SHA = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_NAME = re.compile(r"[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+")
TRIES = 3


class Checkout:
    """One built-in checkout and, after the job's steps, its clean-up."""

    def __init__(self, session: Session, *, inputs: dict[str, str], env: dict[str, str]) -> None:
        self._session = session
        self._inputs = inputs
        self._env = env
        self._folder = session.workspace
        self._server = session.server_url
        self._persisted = False

    def run(self, console: Console, guard: Guard) -> dict[str, str]:
        """The outputs `ref` and `commit`. Raises StepFailure."""
        try:
            return self._run(console, guard)
        except GitError as error:
            raise StepFailure(f"The checkout failed: {error}") from error
        except OSError as error:
            raise StepFailure(f"The checkout failed: {error.filename}: {error.strerror}") from error

    def _run(self, console: Console, guard: Guard) -> dict[str, str]:
        repository = self._check()
        ref, sha = self._wanted(repository)
        if self._inputs.get("lfs", "").lower() == "true":
            console.warning("The built-in checkout does not fetch Git LFS files; they stay pointers.")
        git = self._git(console, guard)
        self._place(repository, git)
        folder, cwd = self._folder, str(self._folder)
        if not (folder / ".git").exists():
            git.run("init", "-q", cwd, cwd=cwd)
            git.run("remote", "add", "origin", self._url(repository), cwd=cwd)
        self._fetch_and_switch(git, ref=ref, sha=sha, guard=guard)
        if self._inputs.get("persist-credentials", "true").lower() == "true":
            self._persist()
        self._submodules(git)
        commit = git.run("log", "-1", "--format=%H", cwd=cwd).strip()
        return {"ref": ref or sha, "commit": commit}

    def _check(self) -> str:
        """Refuse what cannot be done, before anything is touched; the repository's name."""
        repository = self._inputs.get("repository", "")
        if not _NAME.fullmatch(repository) or ".." in repository:
            raise StepFailure(f"Invalid repository '{repository[:200]}'. Expected format {{owner}}/{{repo}}.")
        if self._inputs.get("ssh-key"):
            raise StepFailure(
                "The built-in checkout does not know ssh-key; use a token, or install Node.js on the runner."
            )
        ref = self._inputs.get("ref", "")
        if ref and not safe_ref(ref):
            raise StepFailure(f"Invalid ref '{ref[:200]}': it is no name of a branch, tag or commit.")
        if not re.fullmatch(r"\d{0,9}", self._inputs.get("fetch-depth", "")):
            raise StepFailure(
                f"fetch-depth must be a number of commits (0: all), not '{self._inputs['fetch-depth'][:100]}'."
            )
        workspace = self._session.workspace.resolve()
        self._folder = Path(os.path.realpath(workspace / (self._inputs.get("path") or ".")))
        if not self._folder.is_relative_to(workspace):
            raise StepFailure(f"Repository path '{self._folder}' is not under '{workspace}'")
        self._server = (self._inputs.get("github-server-url") or self._session.server_url).rstrip("/")
        return repository

    def _wanted(self, repository: str) -> tuple[str, str]:
        """The ref and the commit asked for; either may be ''."""
        ref, github = self._inputs.get("ref", ""), self._session.payload.github
        if _SHA.fullmatch(ref):
            return "", ref
        if ref or repository.lower() != str(github.get("repository", "")).lower():
            return ref, ""
        return str(github.get("ref") or ""), str(github.get("sha") or "")

    def _url(self, repository: str) -> str:
        return f"{self._server}/{repository}"

    def _git(self, console: Console, guard: Guard) -> Git:
        token = self._inputs.get("token", "")
        if token:
            self._session.masks.add_all([token, base64.b64encode(f"x-access-token:{token}".encode()).decode()])
        git = Git(self._env, guard=guard, marker=self._session.next_marker, show=console.print)
        git.authorize(self._server, token)
        git.trust(str(self._folder))
        return git

    def _place(self, repository: str, git: Git) -> None:
        """Make the folder ready: keep a clone of the same repository, else empty it."""
        folder = self._folder
        folder.mkdir(parents=True, exist_ok=True)
        if (folder / ".git").is_dir():
            try:
                same = git.run("config", "--get", "remote.origin.url", cwd=str(folder), quiet=True).strip()
            except GitError:
                same = ""
            if same == self._url(repository):
                self._drop_header(git)
                if self._inputs.get("clean", "true").lower() == "true":
                    git.run("clean", "-ffdx", cwd=str(folder))
                    if git.succeeds("rev-parse", "--verify", "-q", "HEAD", cwd=str(folder)):
                        git.run("reset", "-q", "--hard", "HEAD", cwd=str(folder))
                return
        for entry in folder.iterdir():
            remove(entry)

    def _fetch_and_switch(self, git: Git, *, ref: str, sha: str, guard: Guard) -> None:
        cwd = str(self._folder)
        ref = self._qualify(git, ref) if not sha else ref
        branch = ref.removeprefix("refs/heads/") if ref.startswith("refs/heads/") else ""
        tracking = f"refs/remotes/origin/{branch}" if branch else ref.replace("refs/pull/", "refs/remotes/pull/")
        self._fetch(git, ref=ref, sha=sha, tracking=tracking, guard=guard)
        self._sparse(git)
        if branch:
            git.run("checkout", "-q", "--force", "-B", branch, tracking, cwd=cwd)
        else:
            target = sha or tracking
            git.run("checkout", "-q", "--force", "--detach", target, cwd=cwd)

    def _qualify(self, git: Git, ref: str) -> str:
        """The full name of a branch or tag, as the server knows it; the default branch where none was given."""
        cwd = str(self._folder)
        if ref.startswith("refs/"):
            return ref
        if not ref:
            shown = git.run("ls-remote", "--symref", "origin", "HEAD", cwd=cwd, quiet=True)
            match = re.search(r"^ref: (refs/heads/\S+)\s+HEAD$", shown, re.MULTILINE)
            if match is None:
                raise GitError("the repository has no default branch; is it empty?")
            return match[1]
        shown = git.run("ls-remote", "origin", f"refs/heads/{ref}", f"refs/tags/{ref}", cwd=cwd, quiet=True)
        names = {line.split("\t")[-1] for line in shown.splitlines() if "\t" in line}
        for name in (f"refs/heads/{ref}", f"refs/tags/{ref}"):
            if name in names:
                return name
        raise GitError(f"A branch or tag with the name '{ref}' could not be found")

    def _fetch(self, git: Git, *, ref: str, sha: str, tracking: str, guard: Guard) -> None:
        depth = int(self._inputs.get("fetch-depth") or "1")
        tags = self._inputs.get("fetch-tags", "").lower() == "true"
        if depth == 0:
            specs = ["+refs/heads/*:refs/remotes/origin/*", "+refs/tags/*:refs/tags/*"]
            if not ref.startswith(("refs/heads/", "refs/tags/")) and tracking:
                specs.append(f"+{sha or ref}:{tracking}")
            elif sha:
                # The branch may have moved on, or been forced away from this commit.
                specs = [specs[1], specs[0]]
        else:
            specs = [f"+{sha or ref}:{tracking}" if tracking else sha]
            if tags:
                specs.append("+refs/tags/*:refs/tags/*")
        options = ["fetch", "-q", "--no-tags", "--prune", "--no-recurse-submodules"]
        if depth:
            options.append(f"--depth={depth}")
        elif (self._folder / ".git" / "shallow").exists():
            options.append("--unshallow")
        if self._inputs.get("filter") or self._inputs.get("sparse-checkout"):
            options.append(f"--filter={self._inputs.get('filter') or 'blob:none'}")
        self._retry(git, [*options, "origin", *specs], guard)
        if depth == 0 and sha and tracking and ref.startswith("refs/heads/"):
            if not git.succeeds("cat-file", "-e", f"{sha}^{{commit}}", cwd=str(self._folder)):
                self._retry(git, ["fetch", "-q", "--no-tags", "origin", sha], guard)
            git.run("update-ref", tracking, sha, cwd=str(self._folder), quiet=True)

    def _retry(self, git: Git, args: list[str], guard: Guard) -> None:
        """A fetch may meet a server that restarts."""
        for attempt in range(TRIES):
            try:
                git.run(*args, cwd=str(self._folder))
                return
            except GitError:
                if attempt == TRIES - 1 or guard.state() or self._session.control.changed.wait(attempt + 1):
                    raise

    def _sparse(self, git: Git) -> None:
        patterns = [line.strip() for line in self._inputs.get("sparse-checkout", "").splitlines() if line.strip()]
        cone = self._inputs.get("sparse-checkout-cone-mode", "true").lower() == "true"
        if patterns:
            mode = "--cone" if cone else "--no-cone"
            git.run("sparse-checkout", "set", mode, "--", *patterns, cwd=str(self._folder))

    def _submodules(self, git: Git) -> None:
        wanted = self._inputs.get("submodules", "").lower()
        if wanted not in ("true", "recursive"):
            return
        cwd = str(self._folder)
        recursive = ["--recursive"] if wanted == "recursive" else []
        depth = int(self._inputs.get("fetch-depth") or "1")
        git.run("submodule", "sync", *recursive, cwd=cwd)
        limit = [f"--depth={depth}"] if depth else []
        git.run("submodule", "update", "--init", "--force", *limit, *recursive, cwd=cwd)

    @property
    def _header_key(self) -> str:
        return f"http.{self._server}/.extraheader"

    def _persist(self) -> None:
        """Let later git commands of the job use the token, as the real action does. Written by hand: a command
        line would show it to every user of the machine."""
        token = self._inputs.get("token", "")
        if not token or not self._server.startswith(("http://", "https://")):
            return
        config = self._folder / ".git" / "config"
        with config.open("a", encoding="utf-8") as stream:
            os.fchmod(stream.fileno(), 0o600)
            stream.write(f'[http "{self._server}/"]\n\textraheader = {basic(token)}\n')
        self._persisted = True

    def _drop_header(self, git: Git) -> None:
        git.succeeds("config", "--local", "--unset-all", self._header_key, cwd=str(self._folder))

    def forget(self, console: Console, guard: Guard) -> None:
        """The post step: take the token out of the repository's configuration again."""
        if self._persisted and (self._folder / ".git").is_dir():
            git = Git(self._env, guard=guard, marker=self._session.next_marker, show=console.print)
            git.trust(str(self._folder))
            git.run("config", "--local", "--unset-all", self._header_key, cwd=str(self._folder))
            self._persisted = False
