import asyncio

import pytest
from django_q.models import OrmQ

from forge.git import bare, pushing
from forge.git.program import run
from forge.models import ZERO_SHA, Push, Repository
from tests.forge.git import stand_ins
from tests.forge.git.conftest import PASSWORD
from tests.forge.git.wire import empty_pack, post, push_request
from tests.forge.git.worktree import WorkTree


@pytest.fixture
def first(remote, work) -> str:
    """One commit, pushed to main."""
    sha = work.commit({"a": "1"}, "First")
    work.git("push", "-q", remote, "main")
    return sha


def queued() -> list[tuple[str, tuple]]:
    return [(task.task["func"], tuple(task.task["args"])) for task in OrmQ.objects.order_by("id")]


def settled() -> list[tuple[str, str, str, bool]]:
    rows = Push.objects.filter(state="settled").order_by("id")
    return list(rows.values_list("ref", "before", "after", "forced"))


def test_a_push_moves_the_ref_and_is_settled_with_its_task_and_told(remote, repository, work):
    sha = work.commit({"a": "1"})
    done = work.attempt("push", remote, "main")
    assert done.returncode == 0, done.stderr
    assert "remote: settled refs/heads/main settled by alice" in done.stderr
    assert bare.ref_sha(repository, "refs/heads/main") == sha
    push = Push.objects.get()
    assert settled() == [("refs/heads/main", ZERO_SHA, sha, False)]
    assert push.pusher.username == push.pusher_name == "alice" and not push.by_job
    assert queued() == [("tests.forge.git.stand_ins.plan", (push.pk,))]
    assert Repository.objects.get().pushed_at is not None


def test_what_was_pushed_can_be_cloned(remote, work, tmp_path):
    sha = work.commit({"a": "1", "b/c": "2"})
    work.git("push", "-q", remote, "main")
    copy = WorkTree(tmp_path / "copy")
    copy.git("clone", "-q", remote, ".")
    assert copy.git("rev-parse", "HEAD") == sha
    assert (copy.folder / "b/c").read_text() == "2"


def test_branches_and_tags_of_one_push_are_a_row_each(remote, first, work):
    tip = work.commit({"a": "2"})
    work.git("tag", "-a", "v1", "-m", "One")
    work.git("push", "-q", remote, "main", "main:feature/x", "v1")
    assert sorted(settled()[1:]) == [
        ("refs/heads/feature/x", ZERO_SHA, tip, False),
        ("refs/heads/main", first, tip, False),
        ("refs/tags/v1", ZERO_SHA, work.git("rev-parse", "v1"), False),
    ]
    assert len(queued()) == 4


def test_a_forced_push_is_told_from_a_plain_one(remote, first, work):
    work.git("commit", "-q", "--amend", "-m", "Other")
    other = work.git("rev-parse", "HEAD")
    work.git("tag", "v1", first)
    work.git("push", "-q", remote, "v1")
    work.git("tag", "-f", "v1", other)
    work.git("push", "-q", "--force", remote, "main", "v1")
    assert sorted(settled()[2:]) == [("refs/heads/main", first, other, True), ("refs/tags/v1", first, other, True)]


def test_a_push_that_git_refuses_starts_nothing(remote, repository, first, work):
    work.git("commit", "-q", "--amend", "-m", "Other")
    work.git("push", "-q", "--force", remote, "main")
    work.git("reset", "-q", "--hard", first)
    work.commit({"b": "1"})
    done = work.attempt("push", remote, "main")
    assert done.returncode == 1 and "[rejected]" in done.stderr  # by git, before it sends anything
    work.git("fetch", "-q", remote, "main")
    lease = work.attempt("push", f"--force-with-lease=main:{'1' * 40}", remote, "main")
    assert lease.returncode == 1
    assert len(settled()) == 2 and not Push.objects.exclude(state="settled").exists()


def test_a_ref_that_moved_meanwhile_refuses_its_row_only(remote, repository, first, work):
    """What a client sends that looked before another one pushed: its old value is not the ref's any more."""
    other, mine = work.commit({"b": "1"}), work.commit({"c": "1"})
    work.git("push", "-q", remote, "main:side")
    run(repository.path, ["update-ref", "refs/heads/main", other])
    request = push_request([(first, mine, "refs/heads/main"), (ZERO_SHA, first, "refs/heads/new")], pack=empty_pack())
    _, answer = post(remote, request)
    assert b"ng refs/heads/main" in answer and b"ok refs/heads/new" in answer
    of_main = Push.objects.filter(ref="refs/heads/main").order_by("id")
    assert list(of_main.values_list("state", flat=True)) == ["settled", "refused"]
    assert Push.objects.get(ref="refs/heads/new").state == "settled"


def test_a_branch_can_be_deleted(remote, repository, first, work):
    work.git("push", "-q", remote, "main:old")
    work.git("push", "-q", remote, ":old")
    assert settled()[-1] == ("refs/heads/old", first, ZERO_SHA, False)
    assert bare.ref_sha(repository, "refs/heads/old") is None


def test_the_default_branch_cannot_be_deleted_and_the_person_is_told_why(remote, repository, first, work):
    done = work.attempt("push", remote, ":main")
    assert done.returncode == 1
    assert "! [remote rejected] main (this is the default branch: choose another one in the settings" in done.stderr
    assert bare.ref_sha(repository, "refs/heads/main") == first
    assert len(settled()) == 1 and Push.objects.count() == 1


@pytest.mark.parametrize(
    ("ref", "reason"),
    [
        ("refs/pull/1/head", "only branches, tags and notes can be pushed"),
        ("refs/heads/-x", "must not be HEAD or begin with '-'"),
        ("refs/heads/HEAD", "must not be HEAD"),
        ("refs/tags/--upload-pack=x", "must not be HEAD or begin with '-'"),
        ("refs/heads/" + "a" * 40, "must not look like a commit id"),
        ("refs/heads/" + "b/" * 260 + "c", "not a valid ref name"),
    ],
)
def test_one_bad_ref_is_refused_with_its_reason_and_the_others_go_through(remote, repository, first, work, ref, reason):
    done = work.attempt("push", remote, "main:ok", f"main:{ref}")
    assert done.returncode == 1
    assert f"({reason}" in done.stderr or reason in done.stderr.split("[remote rejected]")[1], done.stderr
    assert bare.ref_sha(repository, "refs/heads/ok") == first
    assert run(repository.path, ["for-each-ref", "--format=%(refname)"]).split() == [
        b"refs/heads/main",
        b"refs/heads/ok",
    ]
    assert [ref for ref, *_ in settled()] == ["refs/heads/main", "refs/heads/ok"] and Push.objects.count() == 2


def test_a_bad_ref_refuses_an_atomic_push_whole(remote, repository, first, work):
    done = work.attempt("push", "--atomic", remote, "main:ok", "main:refs/pull/1/head")
    assert done.returncode == 1
    assert "1 of the refs cannot be pushed; nothing was changed." in done.stderr
    assert bare.ref_sha(repository, "refs/heads/ok") is None
    assert not Push.objects.filter(ref="refs/heads/ok").exists()


def test_notes_are_kept_but_start_nothing(remote, repository, first, work):
    work.git("notes", "add", "-m", "Note")
    work.git("push", "-q", remote, "refs/notes/commits")
    assert bare.ref_sha(repository, "refs/notes/commits") is not None
    assert len(settled()) == 1


def test_a_thousand_refs_go_in_one_push(remote, repository, first, work):
    refs = [f"refs/heads/many/{number}" for number in range(1000)]
    work.git("update-ref", "--stdin", stdin="".join(f"create {ref} {first}\n" for ref in refs).encode())
    work.git("push", "-q", remote, "refs/heads/many/*:refs/heads/many/*")
    assert bare.count_branches(repository) == 1001
    assert len(settled()) == 1001 == len(queued())


def test_too_many_refs_are_refused_before_git_sees_them(remote, repository, first):
    commands = [(ZERO_SHA, first, f"refs/heads/many/{number}") for number in range(10_001)]
    status, answer = post(remote, push_request(commands, pack=empty_pack()))
    assert status == 400 and b"more than 10000 refs in one push" in answer
    assert bare.count_branches(repository) == 1 and Push.objects.count() == 1


def test_many_bad_refs_are_refused_together(remote, repository, first, work):
    refs = [f"main:refs/pull/{number}/head" for number in range(101)]
    done = work.attempt("push", remote, "main:ok", *refs)
    assert done.returncode == 1 and "101 of the refs cannot be pushed; nothing was changed." in done.stderr
    assert bare.ref_sha(repository, "refs/heads/ok") is None and Push.objects.count() == 1


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"garbage",
        b"0003",
        b"ffff" + b"x" * 100,
        b"0032" + b"not two ids and a ref, but as long as they".ljust(46, b"."),
        b"0014push-cert\0xxxxxx0000",
    ],
)
def test_what_is_no_push_is_refused_and_changes_nothing(remote, repository, first, body):
    status, answer = post(remote, body)
    assert status == 400 and b"This push cannot be read" in answer
    assert bare.ref_sha(repository, "refs/heads/main") == first and Push.objects.count() == 1


def test_a_broken_pack_is_told_and_refuses_its_row(remote, repository, first):
    _, answer = post(remote, push_request([(ZERO_SHA, "1" * 40, "refs/heads/x")], pack=b"PACK" + b"\xff" * 100))
    assert b"unpack" in answer and b"ng refs/heads/x" in answer
    assert Push.objects.get(ref="refs/heads/x").state == "refused"
    assert bare.ref_sha(repository, "refs/heads/x") is None


def test_the_first_branch_of_an_empty_repository_becomes_its_default(remote, repository, work, tmp_path):
    work.commit({"a": "1"})
    work.git("push", "-q", remote, "main:trunk")
    assert Repository.objects.get().default_branch == "trunk"
    assert run(repository.path, ["symbolic-ref", "HEAD"]) == b"refs/heads/trunk\n"
    WorkTree(tmp_path / "copy").git("clone", "-q", remote, ".")
    assert (tmp_path / "copy/a").exists()
    work.git("push", "-q", remote, "main:later")
    assert Repository.objects.get().default_branch == "trunk"


def test_a_tag_alone_leaves_the_default_branch(remote, repository, work):
    work.commit({"a": "1"})
    work.git("push", "-q", remote, "main:refs/tags/v1")
    assert Repository.objects.get().default_branch == "main"


def test_a_report_that_fails_never_fails_the_push(forges, repository, work):
    forge = forges(TEST_PUSH_REPORT="tests.forge.git.stand_ins.fail")
    work.commit({"a": "1"})
    done = work.attempt("push", forge.address("alice/widget", "alice", PASSWORD), "main")
    assert done.returncode == 0 and "remote:" not in done.stderr
    assert len(settled()) == 1
    assert "the report is broken" in forge.log.read_text()


def test_who_waits_too_long_for_the_report_is_told_where_it_will_be(monkeypatch, settings):
    settings.PUSH_REPORT = "tests.forge.git.stand_ins.hang"
    monkeypatch.setattr(pushing, "_REPORT_SECONDS", 0.01)
    stand_ins.HANGING.clear()
    try:
        (line,) = asyncio.run(pushing._report([1]))
    finally:
        stand_ins.HANGING.set()
    assert "not known yet" in line


def test_a_client_without_side_bands_gets_the_report_alone(remote, repository, first):
    _, answer = post(
        remote, push_request([(ZERO_SHA, first, "refs/heads/x")], pack=empty_pack(), capabilities="report-status")
    )
    assert answer == b"000eunpack ok\n0014ok refs/heads/x\n0000"


def test_a_push_by_a_job_is_marked_as_such(live_forge, repository, work):
    work.commit({"a": "1"})
    address = live_forge.address("alice/widget", "x-access-token", "frj_writes")
    work.git("push", "-q", address, "main")
    push = Push.objects.get()
    assert push.by_job and push.pusher is None and push.pusher_name == "job build"


def test_a_push_from_a_shallow_clone_works(remote, repository, work, tmp_path):
    for number in range(3):
        work.commit({"a": str(number)})
    work.git("push", "-q", remote, "main")
    copy = WorkTree(tmp_path / "copy")
    copy.git("clone", "-q", "--depth=1", remote, ".")
    tip = copy.commit({"b": "1"})
    copy.git("push", "-q", remote, "main")
    assert bare.ref_sha(repository, "refs/heads/main") == tip
