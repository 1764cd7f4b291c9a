"""Does the built-in actions/checkout do what the real one does?"""

from __future__ import annotations

from typing import Any

import pytest

from tests.runner.conftest import Runners
from tests.runner.fake_server import FakeJob, FakeServer
from tests.runner.repositories import Repository, git

CHECKOUT = "actions/checkout@v4"


@pytest.fixture
def hello(server: FakeServer) -> Repository:
    assert server.repositories is not None
    return Repository(server.repositories, "octo/hello")


def add(server: FakeServer, sha: str, *steps: dict[str, Any], ref: str = "refs/heads/main", **more: Any) -> FakeJob:
    return server.add(list(steps), github={"sha": sha, "ref": ref}, **more)


def test_it_checks_out_the_commit_of_the_run_though_the_branch_moved_on(
    server: FakeServer, runners: Runners, hello: Repository
) -> None:
    sha = hello.commit({"file": "first"})
    hello.commit({"file": "second"})
    job = add(
        server,
        sha,
        {"id": "co", "uses": CHECKOUT},
        {
            "name": "look",
            "run": "cat file; echo; git rev-parse --abbrev-ref HEAD; git rev-list --count HEAD\n"
            "echo ${{ steps.co.outputs.commit }}",
        },
    )
    runners.run(job)
    assert job.conclusion == "success", job.text
    assert {"first", "main", "1", sha} <= set(job.lines_of("look"))
    assert "Post Run actions/checkout@v4" in job.conclusions()
    assert "built-in checkout" in job.text


def test_the_token_serves_later_git_commands_and_is_gone_after_the_job(
    server: FakeServer, runners: Runners, hello: Repository
) -> None:
    sha = hello.commit({"file": "x"})
    job = add(
        server,
        sha,
        {"uses": CHECKOUT},
        {"name": "fetch", "run": "git fetch -q origin main && echo fetched; git config --get-regexp 'extraheader'"},
        {"uses": CHECKOUT, "with": {"path": "bare", "persist-credentials": "false"}},
        {
            "name": "none",
            "run": "git -C bare fetch -q origin main 2>/dev/null || echo refused",
            "env": {"GIT_TERMINAL_PROMPT": "0"},
        },
    )
    runners.run(job)
    assert job.conclusion == "success", job.text
    assert "fetched" in job.lines_of("fetch") and "refused" in job.lines_of("none")
    assert any("AUTHORIZATION" in line.upper() and "***" in line for line in job.lines_of("fetch"))
    assert job.token not in job.text and f"x-access-token:{job.token}" in server.git_tokens


def test_ref_path_depth_and_tags_are_honoured(server: FakeServer, runners: Runners, hello: Repository) -> None:
    first = hello.commit({"file": "1"}, tag="v1")
    hello.commit({"file": "2"})
    hello.commit({"file": "side"}, branch="topic/x")
    head = hello.commit({"file": "3"})
    job = add(
        server,
        head,
        {"uses": CHECKOUT, "with": {"ref": "v1", "path": "tag"}},
        {"uses": CHECKOUT, "with": {"ref": "topic/x", "path": "branch"}},
        {"uses": CHECKOUT, "with": {"ref": first, "path": "sha"}},
        {"uses": CHECKOUT, "with": {"path": "all", "fetch-depth": 0}},
        {"uses": CHECKOUT, "with": {"path": "two", "fetch-depth": 2, "fetch-tags": True}},
        {
            "name": "look",
            "run": "echo tag=$(cat tag/file) branch=$(cat branch/file) sha=$(cat sha/file)\n"
            "echo on=$(git -C branch rev-parse --abbrev-ref HEAD)\n"
            "side=$(git -C all rev-parse -q --verify origin/topic/x >/dev/null && echo yes)\n"
            "echo all=$(git -C all rev-list --count HEAD) tags=$(git -C all tag) side=$side\n"
            "echo two=$(git -C two rev-list --count HEAD) tags2=$(git -C two tag)",
        },
    )
    runners.run(job)
    assert job.conclusion == "success", job.text
    assert {"tag=1 branch=side sha=1", "on=topic/x", "all=4 tags=v1 side=yes", "two=2 tags2=v1"} <= set(
        job.lines_of("look")
    )


def test_a_second_checkout_cleans_unless_told_not_to(server: FakeServer, runners: Runners, hello: Repository) -> None:
    sha = hello.commit({"file": "x"})
    job = add(
        server,
        sha,
        {"uses": CHECKOUT},
        {"run": "touch junk; echo changed > file"},
        {"uses": CHECKOUT, "with": {"clean": False}},
        {"name": "kept", "run": "ls"},
        {"uses": CHECKOUT},
        {"name": "cleaned", "run": "ls; cat file"},
    )
    runners.run(job)
    assert "junk" in job.lines_of("kept")
    assert "junk" not in job.lines_of("cleaned") and "x" in job.lines_of("cleaned")


def test_another_repository_and_submodules_come_too(server: FakeServer, runners: Runners, hello: Repository) -> None:
    assert server.repositories is not None
    library = Repository(server.repositories, "octo/library")
    wanted = library.commit({"lib": "inside"})
    hello.commit({".gitmodules": '[submodule "lib"]\n\tpath = lib\n\turl = ../library\n'})
    (hello.tree / "lib").mkdir()
    import_line = ("update-index", "--add", "--cacheinfo", f"160000,{wanted},lib")
    git(*import_line, cwd=hello.tree)
    git("commit", "-q", "-m", "submodule", cwd=hello.tree)
    git("push", "-q", "origin", "HEAD:refs/heads/main", cwd=hello.tree)
    sha = git("rev-parse", "HEAD", cwd=hello.tree)
    job = add(
        server,
        sha,
        {"uses": CHECKOUT, "with": {"submodules": "true"}},
        {"uses": CHECKOUT, "with": {"repository": "octo/library", "path": "other"}},
        {"name": "look", "run": "cat lib/lib other/lib"},
    )
    runners.run(job)
    assert job.conclusion == "success", job.text
    assert "insideinside" in job.lines_of("look")


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"ref": "--upload-pack=touch /tmp/x"}, "Invalid ref"),
        ({"path": "../../out"}, "is not under"),
        ({"repository": "nonsense"}, "Invalid repository"),
        ({"fetch-depth": "deep"}, "fetch-depth must be"),
        ({"ref": "absent"}, "could not be found"),
        ({"repository": "octo/absent"}, "The checkout failed"),
    ],
)
def test_wrong_inputs_fail_with_a_reason(
    server: FakeServer, runners: Runners, hello: Repository, inputs: dict[str, str], message: str
) -> None:
    sha = hello.commit({"file": "x"})
    job = runners.run(add(server, sha, {"name": "co", "uses": CHECKOUT, "with": inputs}))
    assert job.conclusions()["co"] == "failure"
    assert message in "\n".join(job.lines_of("co"))
