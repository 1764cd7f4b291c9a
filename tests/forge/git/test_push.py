import gzip
import json

import pytest
from django_q.models import OrmQ

from forge.git import bare
from forge.models import ZERO_SHA, Push, Repository
from tests.forge.git.worktree import WorkTree


def queued() -> list[tuple[str, tuple]]:
    return [(task.task["func"], tuple(task.task["args"])) for task in OrmQ.objects.order_by("id")]


def test_a_push_moves_the_ref_and_is_settled_with_its_task_and_told(live_forge, remote, repository, work):
    sha = work.commit({"a": "1"})
    done = work.attempt("push", remote, "main")
    assert done.returncode == 0, done.stderr
    assert "remote: settled refs/heads/main settled by alice" in done.stderr
    assert bare.ref_sha(repository, "refs/heads/main") == sha
    push = Push.objects.get()
    assert (push.ref, push.before, push.after, push.forced, push.by_job) == (
        "refs/heads/main",
        ZERO_SHA,
        sha,
        False,
        False,
    )
    assert push.state == "settled" and push.pusher.username == "alice"
    assert queued() == [("tests.forge.git.stand_ins.plan", (push.pk,))]
    assert Repository.objects.get().pushed_at is not None


def test_what_was_pushed_can_be_cloned(live_forge, remote, work, tmp_path):
    sha = work.commit({"a": "1", "b/c": "2"})
    work.git("push", "-q", remote, "main")
    copy = WorkTree(tmp_path / "copy")
    copy.git("clone", "-q", remote, ".")
    assert copy.git("rev-parse", "HEAD") == sha
    assert (copy.folder / "b/c").read_text() == "2"
