"""What does `manage.py up --demo` show? A sample repository, pushed with the real git program, and its run."""

import os
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.utils import timezone

from ci.management.progress import Progress
from ci.management.start_errors import CannotContinue
from ci.management.supervisor import Supervisor
from ci.models import Job, Run, RunConclusion
from forge.access_tokens import create_access_token, revoke_access_token
from forge.models import Repository
from forge.repositories import create_repository

_SAMPLES = Path(__file__).parent / "demo"
_PUSH_SECONDS, _PLAN_SECONDS, _RUN_SECONDS = 120, 60, 300
_MARKS = {"success": "✓", "failure": "✗", "cancelled": "⊘", "skipped": "–"}


@dataclass(frozen=True)
class Sample:
    """What is pushed: a folder of files to a repository of this name, with a message the first time."""

    name: str
    folder: Path
    description: str
    message: str


PROJECT = Sample(
    "demo",
    _SAMPLES / "project",
    "A sample project that shows what a workflow can do.",
    "Greet people in three languages",
)
BURST = Sample("burst", _SAMPLES / "burst", "Twenty jobs at once, for a runner set.", "Work off twenty pieces")


class Demo:
    """One push to the repository of a sample, and the run that it starts."""

    sample = PROJECT

    def __init__(self, supervisor: Supervisor, progress: Progress, *, url: str, admin: Any) -> None:
        self._supervisor, self._progress, self._url, self._admin = supervisor, progress, url, admin
        self._run: Run | None = None
        self._told: set[int] = set()
        self._until = 0.0

    def push(self) -> None:
        """Create the repository where it is missing, push a commit, and wait for its run to appear.

        Raises CannotContinue, StopRequested.
        """
        with self._progress.step("demo") as step:
            repository = self._repository()
            with tempfile.TemporaryDirectory(prefix="forge-demo-") as place:
                sha, said = self._push_commit(repository, Path(place))
            step.note = f"commit {sha[:7]} pushed to {repository}"
        for line in said:
            self._progress.say(f"    {line}")
        self._supervisor.wait_for("The demo's run", lambda: self._find(repository, sha), seconds=_PLAN_SECONDS)
        self._until = time.monotonic() + _RUN_SECONDS
        if self._run is not None:
            self._progress.say(f"\n  Watch it: {settings.SERVER_URL}{self._run.get_absolute_url()}\n")

    def follow(self) -> bool:
        """Tell which jobs ended since the last call; whether the run has ended. Raises CannotContinue when late."""
        if self._run is None:
            return True
        self._run.refresh_from_db()
        for job in Job.objects.filter(run=self._run, conclusion__isnull=False).order_by("ended_at", "id"):
            if job.pk not in self._told:
                self._told.add(job.pk)
                note = f"  {job.end_note}" if job.end_note else ""
                self._progress.say(f"  {_MARKS.get(str(job.conclusion), '?')} {job.name}{note}")
        if not self._run.is_ended and time.monotonic() > self._until:
            raise CannotContinue(f"The demo's run has not ended within {_RUN_SECONDS} s; it is {self._run.state}.")
        return self._run.is_ended

    def exit_status(self) -> int:
        """0 where the run ended in success."""
        conclusion = self._run.conclusion if self._run is not None else None
        self._progress.say(f"\nThe demo's run ended: {conclusion}.")
        return 0 if conclusion == RunConclusion.SUCCESS else 1

    def _repository(self) -> Repository:
        known = (
            Repository.objects.select_related("owner").filter(owner=self._admin, name__iexact=self.sample.name).first()
        )
        return known or create_repository(
            owner=self._admin,
            name=self.sample.name,
            private=False,
            description=self.sample.description,
        )

    def _push_commit(self, repository: Repository, place: Path) -> tuple[str, list[str]]:
        soon = timezone.now() + timedelta(minutes=10)
        token, plaintext = create_access_token(user=self._admin, name="demo push", expires_at=soon)
        try:
            git = _Git(place, user=self._admin.get_username(), token=plaintext)
            return git.push_one_commit(f"{self._url}/{repository}.git", repository.default_branch, self.sample)
        finally:
            revoke_access_token(user=self._admin, token_id=token.pk)

    def _find(self, repository: Repository, sha: str) -> bool:
        runs = Run.objects.select_related("repository__owner").filter(repository=repository, sha=sha)
        self._run = runs.order_by("id").first()
        return self._run is not None


class _Git:
    """The git program, away from the person's own configuration."""

    def __init__(self, place: Path, *, user: str, token: str) -> None:
        self._work = place / "demo"
        ask = place / "askpass"
        ask.write_text('#!/bin/sh\ncase "$1" in Username*) echo "$DEMO_USER" ;; *) echo "$DEMO_TOKEN" ;; esac\n')
        ask.chmod(0o700)
        identity = {"NAME": "Forge CI", "EMAIL": "demo@localhost"}
        self._environment = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(place),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ASKPASS": str(ask),
            "DEMO_USER": user,
            "DEMO_TOKEN": token,
            **{f"GIT_{who}_{part}": text for who in ("AUTHOR", "COMMITTER") for part, text in identity.items()},
        }

    def push_one_commit(self, url: str, branch: str, sample: Sample) -> tuple[str, list[str]]:
        """The new commit's SHA, and the lines that the server told the pusher."""
        self._work.mkdir()
        self._git("init", "--quiet", "--initial-branch", branch)
        self._git("remote", "add", "origin", url)
        if self._git("ls-remote", "--heads", "origin", branch)[0]:
            self._git("pull", "--quiet", "--depth", "1", "origin", branch)
            with (self._work / "visits.txt").open("a") as file:
                file.write(f"{timezone.now():%Y-%m-%d %H:%M:%S} somebody started the demo again\n")
            message = "Note another visit"
        else:
            shutil.copytree(sample.folder, self._work, dirs_exist_ok=True)
            message = sample.message
        self._git("add", "--all")
        self._git("commit", "--quiet", "--message", message)
        _, told = self._git("push", "--quiet", "origin", f"HEAD:refs/heads/{branch}")
        lines = [line.removeprefix("remote:").strip() for line in told.splitlines() if line.startswith("remote:")]
        return self._git("rev-parse", "HEAD")[0].strip(), [line for line in lines if line]

    def _git(self, *words: str) -> tuple[str, str]:
        try:
            done = subprocess.run(
                ["git", *words],
                cwd=self._work,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_PUSH_SECONDS,
                start_new_session=True,
            )
        except subprocess.TimeoutExpired as error:
            raise CannotContinue(f"git {words[0]} to the demo repository took more than {_PUSH_SECONDS} s.") from error
        if done.returncode != 0:
            raise CannotContinue(f"git {words[0]} for the demo repository failed: {done.stderr.strip()}")
        return done.stdout, done.stderr
