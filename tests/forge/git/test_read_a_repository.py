import pytest

from forge.git import bare
from forge.models import ZERO_SHA


@pytest.fixture
def push(repository, work):
    def push(*refs):
        work.git("push", "-q", "--force", str(repository.path), *(refs or ["main"]))

    return push


def test_an_empty_repository_answers_everything_with_nothing(repository):
    assert bare.is_empty(repository)
    assert bare.branches(repository) == [] and bare.tags(repository) == []
    assert bare.resolve(repository, "main") is None
    assert bare.resolve(repository, "HEAD") is None
    assert bare.split_ref_and_path(repository, "main/README.md") is None
    assert bare.commits(repository, "refs/heads/main") == []


def test_it_resolves_branches_tags_shas_and_short_shas(filled, work):
    sha = work.git("rev-parse", "HEAD")
    work.git("tag", "-a", "v1", "-m", "One")
    work.git("push", "-q", str(filled.path), "v1")
    for rev in ("main", "v1", "HEAD", sha, sha[:8], "refs/heads/main", "refs/tags/v1"):
        assert bare.resolve(filled, rev) == sha, rev
    assert bare.ref_sha(filled, "refs/tags/v1") == work.git("rev-parse", "v1") != sha


@pytest.mark.parametrize(
    "rev", ["--help", "main~1", "main\nmain", ":/First", "a..b", "", "x" * 3000, "main@{0}", "\udc80"]
)
def test_it_resolves_no_name_that_git_would_read_otherwise(filled, rev):
    assert bare.resolve(filled, rev) is None


def test_it_tells_a_branch_with_slashes_from_a_path(repository, work, push):
    sha = work.commit({"docs/a.md": "a"})
    push("main", "main:feature/x", "main:refs/tags/docs")
    assert bare.split_ref_and_path(repository, "feature/x/docs/a.md") == ("feature/x", "branch", sha, "docs/a.md")
    assert bare.split_ref_and_path(repository, "main") == ("main", "branch", sha, "")
    assert bare.split_ref_and_path(repository, "docs/docs") == ("docs", "tag", sha, "docs")
    assert bare.split_ref_and_path(repository, f"{sha}/docs") == (sha, "commit", sha, "docs")
    assert bare.split_ref_and_path(repository, "feature/y/docs") is None


def test_it_lists_branches_with_their_last_commits_and_pages_them(repository, work, push):
    first = work.commit({"a": "1"}, "First")
    push("main:one")
    work.git("commit", "-q", "--allow-empty", "-m", "Later", GIT_COMMITTER_DATE="2099-01-01T00:00:00Z")
    push("main:two")
    assert [(ref.name, ref.subject) for ref in bare.branches(repository)] == [("two", "Later"), ("one", "First")]
    assert [ref.sha for ref in bare.branches(repository, skip=1, limit=1)] == [first]
    assert bare.count_branches(repository) == 2


def test_a_tag_is_listed_with_its_commit_though_it_is_annotated(filled, work):
    work.git("tag", "-a", "v1", "-m", "One")
    work.git("push", "-q", str(filled.path), "v1")
    [tag] = bare.tags(filled)
    assert (tag.name, tag.sha) == ("v1", work.git("rev-parse", "HEAD"))


def test_a_folder_lists_folders_first(filled, work):
    sha = work.git("rev-parse", "HEAD")
    assert [(entry.name, entry.type, entry.size) for entry in bare.tree(filled, sha)] == [
        ("src", "tree", None),
        ("README.md", "blob", 9),
    ]
    assert [entry.name for entry in bare.tree(filled, sha, "src")] == ["a.py"]


@pytest.mark.parametrize("path", ["missing", "README.md", "../x", "/src", "src//", "src/../src", "a\0b", "./src"])
def test_what_is_no_folder_has_no_entries(filled, work, path):
    assert bare.tree(filled, work.git("rev-parse", "HEAD"), path) is None


def test_odd_names_are_read_back_as_they_are(repository, work, push):
    names = ["-rf", "a b", "ü.txt", ":(top)x", "*", "quote\"'", "new\nline", "HEAD:x"]
    sha = work.commit({f"d/{name}": name for name in names})
    push()
    assert {entry.name for entry in bare.tree(repository, sha, "d")} == set(names)
    assert {name: bare.blob(repository, sha, f"d/{name}") for name in names} == {name: name.encode() for name in names}


def test_a_file_is_read_whole_or_not_at_all(filled, work):
    sha = work.git("rev-parse", "HEAD")
    assert bare.blob(filled, sha, "README.md", max_bytes=9) == b"# Widget\n"
    with pytest.raises(bare.BlobTooLarge) as caught:
        bare.blob(filled, sha, "README.md", max_bytes=8)
    assert caught.value.size == 9
    assert bare.blob(filled, sha, "src") is None
    assert bare.blob(filled, sha, "src/b.py") is None
    assert bare.blob(filled, "0" * 40, "README.md") is None


def test_workflow_files_are_read_cut_at_the_bound_and_without_links(repository, work, push):
    folder = ".github/workflows"
    (work.folder / folder).mkdir(parents=True)
    (work.folder / folder / "link.yml").symlink_to("/etc/passwd")
    sha = work.commit({f"{folder}/ci.yml": "on: push", f"{folder}/deep/x.yml": "x", f"{folder}/big.yml": "y" * 3000})
    push()
    assert bare.files_under(repository, sha, folder, max_bytes=1001) == {
        f"{folder}/ci.yml": b"on: push",
        f"{folder}/deep/x.yml": b"x",
        f"{folder}/big.yml": b"y" * 1001,
    }
    assert bare.files_under(repository, sha, "nothing/here") == {}
    assert bare.files_under(repository, ZERO_SHA, folder) == {}


def test_commits_come_newest_first_and_by_path(repository, work, push):
    first = work.commit({"a": "1"}, "First\n\nBody line\n\nSecond part")
    second = work.commit({"b": "1"}, "Second")
    push()
    found = bare.commits(repository, "refs/heads/main")
    assert [commit.sha for commit in found] == [second, first]
    assert found[0].parents == (first,) and found[0].author_name == "Alice"
    assert found[1].body == "Body line\n\nSecond part"
    assert [commit.sha for commit in bare.commits(repository, second, path="a")] == [first]
    assert [commit.sha for commit in bare.commits(repository, second, skip=1, limit=1)] == [first]
    assert bare.commits(repository, "--all") == []
    assert bare.commit(repository, first).subject == "First"
    assert bare.commit(repository, "1" * 40) is None
    assert bare.count(repository, second) == 2 and bare.count(repository, second, before=first) == 1


def test_changed_paths_name_both_ends_of_a_rename(repository, work, push):
    first = work.commit({"old": "same\n" * 9, "kept": ""})
    work.git("mv", "old", "new")
    second = work.commit({}, "Rename")
    push()
    assert sorted(bare.changed_paths(repository, first, second)) == ["new", "old"]
    assert bare.changed_paths(repository, first, second, limit=1) is None
    assert bare.changed_paths(repository, "1" * 40, second) is None
    assert bare.changed_paths(repository, second, ZERO_SHA) is None


def test_the_changed_paths_of_a_new_branch_are_those_of_its_new_commits(repository, work, push):
    work.commit({"a": "1"})
    push()
    assert bare.changed_paths(repository, ZERO_SHA, work.git("rev-parse", "HEAD"), ref="refs/heads/main") == ["a"]
    work.commit({"b": "1"})
    tip = work.commit({"c": "1"})
    push("main:topic")
    assert bare.changed_paths(repository, ZERO_SHA, tip, ref="refs/heads/topic") == ["b", "c"]
    push("main:again")
    assert bare.changed_paths(repository, ZERO_SHA, tip, ref="refs/heads/again") is None


def test_a_difference_is_cut_at_a_line(repository, work, push):
    root = work.commit({"a": "1\n"}, "First")
    tip = work.commit({"a": "2\n", "b": "line\n" * 1000}, "Second")
    push()
    whole = bare.diff(repository, tip)
    assert not whole.truncated and "-1\n+2\n" in whole.text
    assert [(change.path, change.added, change.deleted) for change in whole.files] == [("a", 1, 1), ("b", 1000, 0)]
    part = bare.diff(repository, tip, max_bytes=500)
    assert part.truncated and len(part.text) <= 500 and part.text.endswith("\n")
    assert "+1\n" in bare.diff(repository, root).text
    assert bare.diff(repository, "1" * 40) is None


def test_ancestry(repository, work, push):
    first, second = work.commit({"a": "1"}), work.commit({"a": "2"})
    push()
    assert bare.is_ancestor(repository, first, second)
    assert not bare.is_ancestor(repository, second, first)
    assert not bare.is_ancestor(repository, "1" * 40, first)


def test_output_and_time_are_bounded(filled):
    with pytest.raises(bare.OutputTooLarge):
        bare.run(filled.path, ["cat-file", "--batch-all-objects", "--batch-check"], max_bytes=10)
    with pytest.raises(bare.GitTimeout):
        bare.run(filled.path, ["cat-file", "--batch-all-objects", "--batch-check"], deadline=0)
    with pytest.raises(bare.GitError, match="not a git command"):
        bare.run(filled.path, ["no-such-verb"])
