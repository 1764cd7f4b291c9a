"""What must hold while bytes flow: little memory, no orphans, no end without an answer."""

import contextlib
import hashlib
import http.client
import os
import signal
import socket
import struct
import subprocess
import time
import zlib
from pathlib import Path

import psutil
import pytest

from forge.git import bare
from forge.models import ZERO_SHA, Push
from tests.forge.git.conftest import PASSWORD
from tests.forge.git.slow_git import SlowGit
from tests.forge.git.wire import PUSH_TYPE, basic, post, push_request
from tests.forge.git.worktree import WorkTree, environment, noise

MIB = 2**20


def _gits_of(forge) -> list[psutil.Process]:
    children = psutil.Process(forge.process.pid).children(recursive=True)
    return [child for child in children if child.is_running() and child.status() != psutil.STATUS_ZOMBIE]


def _until(condition, seconds=60):
    """Wait for what another process does."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)


def _kill(client: subprocess.Popen[bytes]) -> None:
    """git and its helper that holds the connection."""
    os.killpg(client.pid, signal.SIGKILL)
    client.wait()


def _peak(forge) -> int:
    """The most memory the server ever held, in bytes (Linux: VmHWM)."""
    status = Path(f"/proc/{forge.process.pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


@pytest.fixture
def large(work) -> WorkTree:
    work.git("config", "core.compression", "0")  # the numbers are random, and nobody needs to try
    work.commit({"large.bin": noise(200 * MIB)})
    return work


def test_200_mib_pass_both_ways_and_never_sit_in_memory(forges, repository, large, tmp_path):
    forge = forges()
    address = forge.address("alice/widget", "alice", PASSWORD)
    small = WorkTree(tmp_path / "small").start()
    small.commit({"a": "1"})
    small.git("push", "-q", address, "main:small")
    small.git("clone", "-q", address, "again", "--branch=small")
    before = _peak(forge)

    large.git("push", "-q", address, "main")
    assert bare.ref_sha(repository, "refs/heads/main") == large.git("rev-parse", "HEAD")
    assert _peak(forge) - before < 24 * MIB

    copy = WorkTree(tmp_path / "copy")
    copy.git("clone", "-q", "--no-checkout", "--branch=main", "--single-branch", address, ".")
    assert copy.git("rev-parse", "HEAD:large.bin") == large.git("rev-parse", "HEAD:large.bin")
    assert _peak(forge) - before < 24 * MIB


def test_a_client_that_reads_slowly_holds_gits_output_back(forges, repository, work):
    """The server stops reading from git instead of keeping what the client does not take."""
    forge = forges()
    work.git("config", "core.compression", "0")
    work.commit({"large.bin": noise(50 * MIB)})
    work.git("push", "-q", str(repository.path), "main")
    wants = f"0032want {work.git('rev-parse', 'HEAD')}\n00000009done\n".encode()
    head = (
        f"POST /alice/widget/git-upload-pack HTTP/1.1\r\nHost: x\r\nAuthorization: {basic('alice', PASSWORD)}\r\n"
        f"Content-Type: application/x-git-upload-pack-request\r\nContent-Length: {len(wants)}\r\n\r\n"
    ).encode()
    with socket.create_connection(("127.0.0.1", forge.port), timeout=60) as client:
        client.sendall(head + wants)
        assert client.recv(100).startswith(b"HTTP/1.1 200")
        before = _peak(forge)
        time.sleep(2)  # not for a race: the time in which a server without backpressure would fill its memory
        assert _peak(forge) - before < 24 * MIB
        assert _gits_of(forge)
    _until(lambda: not _gits_of(forge))


def test_a_fetching_client_that_leaves_takes_its_git_with_it(forges, repository, filled, tmp_path):
    slow = SlowGit(tmp_path / "bin", "fetching")
    forge = forges(PATH=slow.path)
    client = subprocess.Popen(
        ["git", "clone", "-q", forge.address("alice/widget", "alice", PASSWORD), str(tmp_path / "copy")],
        env=environment(),
        start_new_session=True,
    )
    git = slow.await_stop()
    _kill(client)
    git.wait(60)
    _until(lambda: not _gits_of(forge))


def test_a_pushing_client_that_leaves_half_way_moves_nothing(forges, repository, filled):
    forge = forges()
    head = (
        f"POST /alice/widget/git-receive-pack HTTP/1.1\r\nHost: x\r\nAuthorization: {basic('alice', PASSWORD)}\r\n"
        f"Content-Type: {PUSH_TYPE}\r\nContent-Length: 100000\r\n\r\n"
    ).encode()
    tip = bare.resolve(filled, "main")
    part = push_request([(ZERO_SHA, tip, "refs/heads/x")], pack=b"PACK" + struct.pack(">II", 2, 1))
    with socket.create_connection(("127.0.0.1", forge.port), timeout=60) as client:
        client.sendall(head + part)
        _until(lambda: Push.objects.filter(state="recorded").exists() and _gits_of(forge))
    _until(lambda: Push.objects.get(ref="refs/heads/x").state == "refused")
    _until(lambda: not _gits_of(forge))
    assert bare.ref_sha(filled, "refs/heads/x") is None


def test_a_push_goes_on_when_its_client_leaves_after_sending_all(forges, repository, work, tmp_path):
    slow = SlowGit(tmp_path / "bin", "before_git")
    forge = forges(PATH=slow.path)
    work.commit({"a": "1"})
    client = subprocess.Popen(
        ["git", "push", "-q", forge.address("alice/widget", "alice", PASSWORD), "main"],
        cwd=work.folder,
        env=environment(),
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    slow.await_stop()
    _kill(client)
    slow.release()
    _until(lambda: Push.objects.filter(state="settled").exists())
    assert not bare.is_empty(repository)


def test_git_is_ended_at_its_deadline_and_the_person_is_told(forges, repository, work, tmp_path):
    slow = SlowGit(tmp_path / "bin", "before_git")
    forge = forges(PATH=slow.path, FORGE_GIT_TIMEOUT="5")
    work.commit({"a": "1"})
    done = work.attempt("push", forge.address("alice/widget", "alice", PASSWORD), "main")
    assert done.returncode != 0 and "The push took longer than 5 s and was ended." in done.stderr
    assert Push.objects.get().state == "refused" and bare.is_empty(repository)
    _until(lambda: not _gits_of(forge))


def test_a_push_over_the_limit_is_refused_by_git_with_the_reason(forges, repository, work):
    forge = forges(FORGE_MAX_PUSH_BYTES=str(MIB))
    work.commit({"a": noise(3 * MIB)})
    done = work.attempt("push", forge.address("alice/widget", "alice", PASSWORD), "main")
    assert done.returncode == 1 and "pack exceeds maximum allowed size" in done.stderr
    assert "remote: This push is larger than 1,048,576 bytes, which is the limit here." in done.stderr
    assert Push.objects.get().state == "refused" and bare.is_empty(repository)


def test_a_push_far_over_the_limit_is_cut_off(forges, repository, filled):
    forge = forges(FORGE_MAX_PUSH_BYTES=str(MIB))
    request = push_request([(ZERO_SHA, "1" * 40, "refs/heads/x")], pack=b"PACK" + struct.pack(">II", 2, 1))
    headers = {"Content-Type": PUSH_TYPE, "Authorization": basic("alice", PASSWORD)}
    for told in ({"Content-Length": str(200 * MIB)}, {"Transfer-Encoding": "chunked"}):
        connection = http.client.HTTPConnection("127.0.0.1", forge.port, timeout=60)
        connection.putrequest("POST", "/alice/widget/git-receive-pack")
        for name, value in (headers | told).items():
            connection.putheader(name, value)
        connection.endheaders()
        if "Transfer-Encoding" in told:
            with contextlib.suppress(ConnectionError):  # it may hang up before all is sent
                for piece in (request, *[b"x" * MIB] * 80):
                    connection.send(b"%x\r\n%s\r\n" % (len(piece), piece))
        response = connection.getresponse()
        assert response.status == 413 and b"larger than 68157440 bytes" in response.read()
        connection.close()
    assert Push.objects.get().state == "refused" and bare.ref_sha(filled, "refs/heads/x") is None
    _until(lambda: not _gits_of(forge))


def test_no_more_gits_run_at_once_than_allowed(forges, repository, filled, tmp_path):
    slow = SlowGit(tmp_path / "bin", "fetching")
    forge = forges(PATH=slow.path, FORGE_GIT_PROCESSES="1")
    address = forge.address("alice/widget", "alice", PASSWORD)
    clones = [
        subprocess.Popen(
            ["git", "-c", "protocol.version=0", "clone", "-q", address, str(tmp_path / f"copy{number}")],
            env=environment(),
        )
        for number in range(3)
    ]
    for _ in clones:
        slow.await_stop()
        assert len([git for git in _gits_of(forge) if "upload-pack" in git.cmdline()]) == 1
        slow.release()
    assert [clone.wait(60) for clone in clones] == [0, 0, 0]


def test_a_body_in_chunks_means_the_same_as_one_with_a_length(live_forge, repository, filled):
    tip = bare.resolve(filled, "main")
    pack = b"PACK" + struct.pack(">II", 2, 0)
    request = push_request([(ZERO_SHA, tip, "refs/heads/x")], pack=pack + hashlib.sha1(pack).digest())
    connection = http.client.HTTPConnection("127.0.0.1", live_forge.port, timeout=60)
    headers = {"Content-Type": PUSH_TYPE, "Authorization": basic("alice", PASSWORD)}
    pieces = (request[start : start + 7] for start in range(0, len(request), 7))
    connection.request("POST", "/alice/widget/git-receive-pack", pieces, headers, encode_chunked=True)
    assert b"ok refs/heads/x" in connection.getresponse().read()
    connection.close()
    assert bare.ref_sha(filled, "refs/heads/x") == tip


def test_a_push_may_be_gzipped(live_forge, repository, filled):
    tip = bare.resolve(filled, "main")
    pack = b"PACK" + struct.pack(">II", 2, 0)
    request = push_request([(ZERO_SHA, tip, "refs/heads/x")], pack=pack + hashlib.sha1(pack).digest())
    packer = zlib.compressobj(wbits=31)
    address = live_forge.address("alice/widget", "alice", PASSWORD)
    status, answer = post(address, packer.compress(request) + packer.flush(), Content_Encoding="gzip")
    assert status == 200 and b"ok refs/heads/x" in answer
