"""Who sees a repository's pages, and what do they show?"""

import re
import shutil

import pytest

from forge.models import Repository

READ_PAGES = [
    "/alice/demo/",
    "/alice/demo/tree/main",
    "/alice/demo/blob/main/README.md",
    "/alice/demo/raw/main/README.md",
    "/alice/demo/commits/main",
    "/alice/demo/branches/",
]
ADMIN_PAGES = ["/alice/demo/settings/", "/alice/demo/settings/members/"]


@pytest.fixture
def filled(worktree):
    worktree.commit(
        {"README.md": "# Hello\n\n<script>alert(1)</script>\n\n[guide](docs/guide.md)", "docs/guide.md": "Go"}
    )
    worktree.push()
    return worktree


@pytest.mark.parametrize("name", ["alice", "bob", "carol", "dave"])
@pytest.mark.parametrize("address", READ_PAGES)
def test_members_see_a_private_repository(filled, signed_in, name, address):
    assert signed_in(name).get(address).status_code == 200


@pytest.mark.parametrize("name", ["", "mallory"])
@pytest.mark.parametrize("address", [*READ_PAGES, *ADMIN_PAGES])
def test_a_private_repository_looks_to_strangers_like_none_at_all(filled, signed_in, name, address):
    refused = signed_in(name).get(address)
    missing = signed_in(name).get(address.replace("demo", "nothing"))
    assert refused.status_code == missing.status_code == 404
    tokens = re.compile(rb'name="csrfmiddlewaretoken" value="\w+"')
    assert tokens.sub(b"", refused.content) == tokens.sub(b"", missing.content)


@pytest.mark.parametrize("name", ["", "mallory"])
def test_everybody_sees_a_public_repository(filled, signed_in, name):
    Repository.objects.update(private=False)
    for address in READ_PAGES:
        assert signed_in(name).get(address).status_code == 200


@pytest.mark.parametrize(("name", "status"), [("alice", 200), ("dave", 200), ("bob", 403), ("carol", 403)])
@pytest.mark.parametrize("address", ADMIN_PAGES)
def test_settings_need_the_admin_role(filled, signed_in, name, status, address):
    assert signed_in(name).get(address).status_code == status


def test_a_deactivated_member_is_a_stranger(filled, signed_in, alice):
    client = signed_in("bob")
    filled.repository.members.get(user__username="bob").user.__class__.objects.filter(username="bob").update(
        is_active=False
    )
    assert client.get("/alice/demo/").status_code == 404


def test_it_shows_files_readme_and_the_newest_commit(filled, signed_in):
    page = signed_in("carol").get("/alice/demo/").content.decode()
    assert "Shows &lt;things&gt;" in page
    assert '<a href="/alice/demo/tree/main/docs">docs</a>' in page
    assert "<h1>Hello</h1>" in page
    assert 'href="/alice/demo/blob/main/docs/guide.md"' in page
    assert "alert(1)" not in page
    assert "Alice &amp; Co" in page
    assert "git clone http" in page


def test_case_and_the_ending_of_clone_addresses_do_not_matter(filled, signed_in):
    assert signed_in("carol").get("/Alice/DEMO/").status_code == 200
    assert signed_in("carol").get("/alice/demo.git/").status_code == 200


def test_an_empty_repository_says_how_to_push_the_first_commit(repository, signed_in):
    page = signed_in("bob").get("/alice/demo/").content.decode()
    assert f"git remote add origin {repository.clone_url}" in page
    assert "git push -u origin main" in page


def test_an_empty_repository_tells_readers_only_that_it_is_empty(repository, signed_in):
    page = signed_in("carol").get("/alice/demo/").content.decode()
    assert "This repository is empty" in page
    assert "git push" not in page


def test_it_shows_another_branch_while_the_default_branch_is_missing(worktree, signed_in):
    worktree.commit({"a.txt": "a"})
    worktree.push("HEAD:refs/heads/trunk")
    page = signed_in("alice").get("/alice/demo/").content.decode()
    assert "/alice/demo/blob/trunk/a.txt" in page


def test_a_nul_byte_in_the_address_is_only_not_found(repository, signed_in):
    assert signed_in("alice").get("/alice/de%00mo/").status_code == 404
    assert signed_in("alice").get("/al%00ice/").status_code == 404
    assert signed_in("alice").get("/alice/demo/tree/ma%00in").status_code == 404


def test_a_repository_that_git_cannot_read_says_so(filled, signed_in, caplog):
    shutil.rmtree(filled.repository.path)
    for address in READ_PAGES:
        answer = signed_in("alice").get(address)
        assert answer.status_code == 503, address
        assert "git could not read this repository" in answer.content.decode()


def test_a_folder_too_large_for_a_page_shows_its_beginning(worktree, signed_in):
    worktree.commit({f"many/{number:05}": "" for number in range(2100)})
    worktree.push()
    page = signed_in("alice").get("/alice/demo/tree/main/many").content.decode()
    assert "100 more entries are not shown" in page
