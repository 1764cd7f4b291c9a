"""A small world built by the real transitions: people, a repository with real git, runs, runners.

alice owns the repository, bob may write, carol may read, mallory is a stranger, operator is a superuser.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import textwrap
import uuid
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any

from django.contrib.auth.models import User
from django.utils import timezone

from ci.lifecycle import pushes, registration, transitions
from ci.lifecycle.fetch import fetch_job
from ci.models import Conclusion, Job, Run, Runner, Scope
from forge.models import ZERO_SHA, Member, Push, Repository
from forge.repositories import create_repository

WORKFLOW = ".github/workflows/ci.yml"
ONE_JOB = """
    name: CI
    on: push
    jobs:
      build:
        runs-on: linux
        steps:
          - run: echo hello
"""


class Assigned:
    """A job in a runner's hands: what the runner would do next, as methods."""

    def __init__(self, runner: Runner, payload: Mapping[str, Any]) -> None:
        self.runner = runner
        self.payload = payload
        self.id: int = payload["job"]["id"]
        self.token: str = payload["job"]["token"]

    @property
    def job(self) -> Job:
        return Job.objects.get(pk=self.id)

    def heartbeat(self) -> transitions.HeartbeatAnswer:
        return transitions.heartbeat(job_id=self.id, token=self.token)

    def steps(self, *steps: Mapping[str, Any]) -> None:
        transitions.update_steps(job_id=self.id, token=self.token, steps=list(steps))

    def begin(self) -> Assigned:
        """Acknowledge, and begin the first step of the workflow's own."""
        self.heartbeat()
        self.steps(
            {"number": 1, "name": "Set up job", "state": "ended", "conclusion": "success"},
            {"number": 2, "name": "Run echo hello", "state": "running"},
        )
        return self

    def log(self, *texts: str, offset: int = 0) -> int:
        lines = [(f"2026-01-01T00:00:{index % 60:02d}.000Z", text) for index, text in enumerate(texts)]
        return transitions.append_log(job_id=self.id, token=self.token, offset=offset, lines=lines)

    def complete(
        self,
        conclusion: str = Conclusion.SUCCESS,
        *,
        outputs: Mapping[str, str] | None = None,
        environment_url: str = "",
    ) -> transitions.JobEnd:
        return transitions.complete(
            job_id=self.id,
            token=self.token,
            conclusion=conclusion,
            outputs=outputs or {},
            environment_url=environment_url,
        )


class Playground:
    def __init__(self) -> None:
        # Of its commits, from the first of January 2026 on: their SHAs are the same in every test session.
        self._seconds = count(1_767_225_600)
        self._numbers = count(1)

    @cached_property
    def alice(self) -> User:
        return User.objects.create_user("alice", password="alice-password")

    @cached_property
    def bob(self) -> User:
        return User.objects.create_user("bob", password="bob-password")

    @cached_property
    def carol(self) -> User:
        return User.objects.create_user("carol", password="carol-password")

    @cached_property
    def mallory(self) -> User:
        return User.objects.create_user("mallory", password="mallory-password")

    @cached_property
    def operator(self) -> User:
        return User.objects.create_superuser("operator", password="operator-password")

    @cached_property
    def repository(self) -> Repository:
        return self.make_repository()

    def make_repository(self, *, name: str = "widgets", private: bool = True) -> Repository:
        """alice's, with bob and carol as members."""
        repository = create_repository(owner=self.alice, name=name, private=private)
        Member.objects.create(repository=repository, user=self.bob, role=Member.Role.WRITE)
        Member.objects.create(repository=repository, user=self.carol, role=Member.Role.READ)
        return repository

    def commit(
        self,
        files: Mapping[str, str | bytes],
        *,
        message: str = "A commit",
        branch: str = "main",
        repository: Repository | None = None,
    ) -> tuple[str, str]:
        """Commit `files` on top of a branch with the real git, in the bare repository; its SHAs before and after."""
        repository = repository or self.repository
        before = _git(repository.path, "rev-parse", "--verify", "--quiet", f"refs/heads/{branch}", check=False).strip()
        with tempfile.TemporaryDirectory() as folder:
            work = Path(folder)
            if before:
                _git(repository.path, f"--work-tree={work}", "checkout", "--force", branch, "--", ".", cwd=work)
            for name, content in files.items():
                target = work / name
                target.parent.mkdir(parents=True, exist_ok=True)
                data = content if isinstance(content, bytes) else textwrap.dedent(content).encode()
                target.write_bytes(data)
            index = {"GIT_INDEX_FILE": str(repository.path / "playground-index"), "GIT_WORK_TREE": folder}
            _git(repository.path, "add", "--all", ".", cwd=work, **index)
            tree = _git(repository.path, "write-tree", **index).strip()
        parents = ["-p", before] if before else []
        now = f"{next(self._seconds)} +0000"
        dates = {"GIT_AUTHOR_DATE": now, "GIT_COMMITTER_DATE": now}
        after = _git(repository.path, "commit-tree", tree, *parents, "-m", message, **dates).strip()
        _git(repository.path, "update-ref", f"refs/heads/{branch}", after)
        return before or ZERO_SHA, after

    def push(
        self,
        files: Mapping[str, str | bytes],
        *,
        message: str = "A commit",
        branch: str = "main",
        by: User | None = None,
        repository: Repository | None = None,
        plan: bool = True,
    ) -> Push:
        """A commit that arrived by a push, settled and (unless told otherwise) planned."""
        repository = repository or self.repository
        before, after = self.commit(files, message=message, branch=branch, repository=repository)
        pusher = by or self.alice
        push = Push.objects.create(
            repository=repository,
            pusher=pusher,
            pusher_name=pusher.username,
            ref=f"refs/heads/{branch}",
            before=before,
            after=after,
            state=Push.State.SETTLED,
            settled_at=timezone.now(),
        )
        if plan:
            pushes.plan_push(push.pk)
        return push

    def run(self, workflow: str = ONE_JOB, *, message: str = "A commit", **options: Any) -> Run:
        """The run of a pushed workflow file."""
        push = self.push({WORKFLOW: workflow, "nonce": str(next(self._numbers))}, message=message, **options)
        return Run.objects.get(push=push)

    def runner(
        self,
        *labels: str,
        name: str = "alpha",
        scope: Scope | None = None,
        ephemeral: bool = False,
    ) -> Runner:
        """Registered with a real token; instance-wide and labelled linux unless told otherwise."""
        _, token = registration.create_registration_token(scope=scope or Scope(), created_by=self.operator)
        runner, self.runner_token = registration.register_runner(
            token=token, name=name, labels=labels or ("linux",), ephemeral=ephemeral
        )
        return runner

    def fetch(self, runner: Runner, *, poll_id: str | None = None) -> Assigned | None:
        payload = fetch_job(runner_id=runner.pk, token_hash=runner.token_hash, poll_id=poll_id or uuid.uuid4().hex)
        return None if payload is None else Assigned(runner, payload)

    def assigned(self, runner: Runner | None = None, *, poll_id: str | None = None) -> Assigned:
        """A job that a runner has been given and not acknowledged."""
        assigned = self.fetch(runner or self.runner(), poll_id=poll_id)
        assert assigned is not None, "no queued job fits the runner"
        return assigned

    def work(self, runner: Runner, conclusions: Mapping[str, str] | None = None) -> list[str]:
        """Let a runner take and end jobs until none is left; the names of those jobs in order."""
        done = []
        while (assigned := self.fetch(runner)) is not None:
            job = assigned.begin().job
            assigned.complete((conclusions or {}).get(job.name, "success"))
            done.append(job.name)
        return done


def jobs_of(run: Run) -> dict[str, Job]:
    """The jobs of the current attempt by name."""
    run.refresh_from_db()
    return {job.name: job for job in Job.objects.filter(run=run, attempt=run.attempt)}


def states_of(run: Run) -> dict[str, str]:
    """What a chip would show of each job, by name."""
    return {name: job.outcome for name, job in jobs_of(run).items()}


def _git(folder: Path, *arguments: str, check: bool = True, cwd: Path | None = None, **environment: str) -> str:
    command: Sequence[str] = ["git", "--git-dir", str(folder), *arguments]
    identity = {
        "GIT_AUTHOR_NAME": "Alice",
        "GIT_AUTHOR_EMAIL": "alice@example.org",
        "GIT_COMMITTER_NAME": "Alice",
        "GIT_COMMITTER_EMAIL": "alice@example.org",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "safe.directory",
        "GIT_CONFIG_VALUE_0": "*",
    }
    ended = subprocess.run(
        command, cwd=cwd, env={**os.environ, **identity, **environment}, capture_output=True, text=True, check=check
    )
    return ended.stdout if ended.returncode == 0 else ""
