import gzip
import zlib

import pytest

from forge.models import Repository
from tests.forge.git.wire import packet, post
from tests.forge.git.worktree import WorkTree, noise


@pytest.fixture
def commits(remote, work) -> list[str]:
    files = [{"a": f"{number}\n" * 100, "big": noise(50_000, seed=number)} for number in range(4)]
    made = [work.commit(changed, f"Commit {number}") for number, changed in enumerate(files)]
    work.git("push", "-q", remote, "main")
    return made


@pytest.fixture
def copy(tmp_path) -> WorkTree:
    return WorkTree(tmp_path / "copy").start()


def test_protocol_version_2_is_spoken(remote, commits, copy):
    done = copy.attempt("-c", "protocol.version=2", "fetch", remote, "main", GIT_TRACE_PACKET="1")
    assert done.returncode == 0 and "< version 2" in done.stderr and "command=fetch" in done.stderr


@pytest.mark.parametrize("version", ["0", "1"])
def test_older_protocols_are_spoken_too(remote, commits, copy, version):
    copy.git("-c", f"protocol.version={version}", "fetch", "-q", remote, "main")
    assert copy.git("rev-parse", "FETCH_HEAD") == commits[-1]


def test_a_shallow_fetch_gets_one_commit_and_can_be_deepened(remote, commits, copy):
    copy.git("fetch", "-q", "--depth=1", remote, "main")
    assert copy.git("rev-list", "--count", "FETCH_HEAD") == "1"
    copy.git("fetch", "-q", "--deepen=1", remote, "main")
    assert copy.git("rev-list", "--count", "FETCH_HEAD") == "2"


def test_a_commit_without_a_ref_is_fetched_by_its_sha(remote, commits, copy, work):
    work.git("push", "-q", "--force", remote, f"{commits[0]}:main")
    copy.git("fetch", "-q", "--depth=1", remote, f"+{commits[-1]}:refs/remotes/origin/main")
    assert copy.git("rev-parse", "refs/remotes/origin/main") == commits[-1]


def test_a_partial_clone_leaves_the_files_behind(remote, commits, copy, tmp_path):
    partial = WorkTree(tmp_path / "partial")
    partial.git("clone", "-q", "--filter=blob:none", "--no-checkout", remote, ".")
    assert "blob" not in partial.git(
        "cat-file", "--batch-all-objects", "--batch-check", "--unordered", GIT_NO_LAZY_FETCH="1"
    )
    partial.git("checkout", "-q", "main")
    assert (partial.folder / "a").read_text() == "3\n" * 100


def test_an_incremental_fetch_sends_what_is_missing(remote, commits, copy, work):
    copy.git("fetch", "-q", remote, "main")
    tip = work.commit({"b": "1"})
    work.git("push", "-q", remote, "main")
    copy.git("fetch", "-q", remote, "main")
    assert copy.git("rev-parse", "FETCH_HEAD") == tip


def test_a_request_that_git_gzips_is_understood(remote, commits, copy, work):
    """git packs its request once it names enough commits."""
    for number in range(300):
        copy.git("commit", "-q", "--allow-empty", "-m", f"Own {number}")
    done = copy.attempt("-c", "protocol.version=0", "fetch", remote, "main", GIT_CURL_VERBOSE="1")
    assert done.returncode == 0 and "Content-Encoding: gzip" in done.stderr
    assert copy.git("rev-parse", "FETCH_HEAD") == commits[-1]


def _wants(sha: str) -> bytes:
    return packet(f"want {sha}\n".encode()) + b"0000" + packet(b"done\n")


@pytest.mark.parametrize("encoding", ["gzip", "x-gzip"])
def test_a_gzipped_body_means_the_same_as_a_plain_one(remote, commits, encoding):
    body = _wants(commits[-1])
    plain = post(remote, body, service="git-upload-pack")
    half = len(body) // 2
    members = gzip.compress(body[:half], mtime=0) + gzip.compress(body[half:], mtime=0)
    for packed in (gzip.compress(body, mtime=0), members):
        assert post(remote, packed, service="git-upload-pack", Content_Encoding=encoding) == plain
    assert plain[0] == 200 and plain[1].startswith(b"0008NAK\nPACK")


def test_a_gzip_bomb_is_cut_off(remote, commits, live_forge):
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    # git reads on as long as there are wants, so that the server has to be the one who stops.
    wants = packet(f"want {commits[-1]}\n".encode()) * 20_000
    bomb = b"".join(packer.compress(wants) for _ in range(200)) + packer.flush()
    assert len(bomb) < 1_000_000
    status, _answer = post(remote, bomb, service="git-upload-pack", Content_Encoding="gzip")
    assert status in (400, 413, 500)


@pytest.mark.parametrize(
    ("body", "encoding", "status"),
    [
        (b"no gzip", "gzip", 400),
        (gzip.compress(b"0000", mtime=0)[:-9], "gzip", 400),
        (b"0000", "br", 415),
        (b"0000", "deflate", 415),
    ],
)
def test_a_body_that_cannot_be_unpacked_is_refused(remote, commits, body, encoding, status):
    assert post(remote, body, service="git-upload-pack", Content_Encoding=encoding)[0] == status


def test_a_foreign_content_type_is_refused(remote, commits):
    status, _ = post(remote, b"0000", service="git-upload-pack", Content_Type="text/plain")
    assert status == 415


def test_cloning_an_empty_repository_works(remote, tmp_path):
    done = WorkTree(tmp_path / "copy").attempt("clone", remote, ".")
    assert done.returncode == 0 and "empty repository" in done.stderr


def test_the_address_is_the_same_with_and_without_git_and_in_any_case(live_forge, commits, copy, token):
    for path in ("alice/widget", "alice/widget.git", "alice/Widget.git", "alice/widget/"):
        copy.git("fetch", "-q", live_forge.address(path, "alice", token), "main")


def test_a_renamed_repository_is_found_under_its_new_name_only(live_forge, commits, copy, token):
    Repository.objects.update(name="gadget")
    copy.git("fetch", "-q", live_forge.address("alice/gadget", "alice", token), "main")
    assert copy.attempt("fetch", live_forge.address("alice/widget", "alice", token), "main").returncode == 128
