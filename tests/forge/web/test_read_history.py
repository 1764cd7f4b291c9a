"""Do the pages of commits, branches and tags show what git knows?"""

from forge.web.commits import MAX_DIFF_LINES, parse_diff


def test_commits_are_listed_by_page_newest_first(worktree, signed_in):
    for number in range(33):
        worktree.commit({"a": str(number)}, message=f"Change {number:02}")
    worktree.push()
    client = signed_in("carol")
    first = client.get("/alice/demo/commits/main").content.decode()
    assert "Change 32" in first
    assert "Change 02" not in first
    second = client.get("/alice/demo/commits/main?page=2").content.decode()
    assert "Change 02" in second
    assert "Change 32" not in second
    for bad in ("-1", "0", "x", "9" * 30, "²"):
        assert "Change 32" in client.get("/alice/demo/commits/main", {"page": bad}).content.decode()
    assert "No commits here" in client.get("/alice/demo/commits/main?page=9999").content.decode()


def test_the_history_of_one_file_leaves_other_commits_out(worktree, signed_in):
    worktree.commit({"a": "1"}, message="Touch a")
    worktree.commit({"b": "1"}, message="Touch b")
    worktree.push()
    page = signed_in("carol").get("/alice/demo/commits/main/a").content.decode()
    assert "Touch a" in page
    assert "Touch b" not in page


def test_a_commit_shows_its_message_files_and_difference(worktree, signed_in):
    worktree.commit({"a.txt": "one\ntwo\n", "gone": "x\n"})
    (worktree.folder / "gone").unlink()
    sha = worktree.commit({"a.txt": "one\n<three>\n", "bin": b"\0"}, message="Subject <b>\n\nBody & more")
    worktree.push()
    page = signed_in("carol").get(f"/alice/demo/commit/{sha}/").content.decode()
    assert "Subject &lt;b&gt;" in page
    assert "Body &amp; more" in page
    assert "3 changed files" in page
    assert '<span class="diff-line diff-added">+&lt;three&gt;</span>' in page
    assert '<span class="diff-line diff-removed">-two</span>' in page
    assert "Binary files" in page


def test_a_short_sha_leads_to_the_full_one(worktree, signed_in):
    sha = worktree.commit({"a": "1"})
    worktree.push()
    assert signed_in("carol").get(f"/alice/demo/commit/{sha[:8]}/")["Location"] == f"/alice/demo/commit/{sha}/"


def test_first_and_merge_commits_have_a_page(worktree, signed_in):
    first = worktree.commit({"a": "1"})
    worktree.git("checkout", "-q", "-b", "side")
    worktree.commit({"b": "1"})
    worktree.git("checkout", "-q", "main")
    worktree.commit({"c": "1"})
    worktree.git("merge", "-q", "--no-ff", "-m", "Merge side", "side")
    merge = worktree.git("rev-parse", "HEAD")
    worktree.push()
    client = signed_in("carol")
    assert "1 changed file" in client.get(f"/alice/demo/commit/{first}/").content.decode()
    assert "against the first parent" in client.get(f"/alice/demo/commit/{merge}/").content.decode()


def test_a_commit_without_a_message_can_be_opened(worktree, signed_in):
    sha = worktree.commit({"a": "1"}, message="")
    worktree.push()
    page = signed_in("carol").get("/alice/demo/commits/main").content.decode()
    assert f'<a class="subject" href="/alice/demo/commit/{sha}/">(no message)</a>' in page


def test_a_huge_difference_is_cut_and_says_so(worktree, signed_in):
    sha = worktree.commit({"big": "\n".join(str(number) for number in range(MAX_DIFF_LINES * 3)) + "\n"})
    worktree.push()
    page = signed_in("carol").get(f"/alice/demo/commit/{sha}/").content.decode()
    assert "too long to be shown whole" in page
    assert page.count('<span class="diff-line') <= MAX_DIFF_LINES + 10


def test_renames_and_odd_names_are_told_apart():
    files, cut = parse_diff(
        "diff --git a/old name b/new name\nsimilarity index 100%\nrename from old name\nrename to new name\n"
        "diff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n--- a/fake\n+++ b/fake\n"
    )
    assert [file.name for file in files] == ["new name", "x"]
    assert files[1].lines == [("hunk", "@@ -1 +1 @@"), ("removed", "--- a/fake"), ("added", "+++ b/fake")]
    assert not cut


def test_branches_and_tags_are_listed(worktree, signed_in):
    worktree.commit({"a": "1"}, message="Newest <one>")
    worktree.git("tag", "-a", "v1", "-m", "First release")
    worktree.push("HEAD:refs/heads/main", "HEAD:refs/heads/feature/x", "refs/tags/v1")
    page = signed_in("carol").get("/alice/demo/branches/").content.decode()
    assert '<a href="/alice/demo/tree/feature/x">feature/x</a>' in page
    assert '<a href="/alice/demo/tree/v1">v1</a>' in page
    assert "Newest &lt;one&gt;" in page
    assert '<span class="label">default</span>' in page


def test_an_empty_repository_has_no_branches(repository, signed_in):
    page = signed_in("carol").get("/alice/demo/branches/").content.decode()
    assert "There are no branches here." in page
    assert "There are no tags here." in page


def test_a_message_of_megabytes_does_not_become_a_page_of_megabytes(worktree, signed_in):
    (worktree.folder / "message").write_text("s" * 500_000 + "\n\n" + "body line\n" * 100_000)
    worktree.git("add", "message")
    worktree.git("commit", "-q", "-F", "message")
    worktree.push()
    client = signed_in("carol")
    sha = worktree.git("rev-parse", "HEAD")
    assert len(client.get("/alice/demo/commits/main").content) < 100_000
    assert len(client.get("/alice/demo/branches/").content) < 100_000
    assert len(client.get("/alice/demo/").content) < 100_000
    assert len(client.get(f"/alice/demo/commit/{sha}/").content) < 2_000_000
