"""Which names does a filter pattern take? (the examples of GitHub's cheat sheet, and hostile ones)"""

import time

import pytest

from ci.workflow.patterns import ignores, included, matches, skips

TAKES = [
    ("feature/*", "feature/my-branch"),
    ("feature/**", "feature/mona/the/octocat"),
    ("*", "main"),
    ("**", "a/b/c"),
    ("*feature", "mona-feature"),
    ("v2*", "v2.0"),
    ("v[12].[0-9]+.[0-9]+", "v1.10.1"),
    ("*.jsx?", "page.js"),
    ("*.jsx?", "page.jsx"),
    ("**.js", "src/js/app.js"),
    ("docs/*", "docs/file.txt"),
    ("docs/**", "docs/mona/octocat.txt"),
    ("docs/**/*.md", "docs/README.md"),
    ("docs/**/*.md", "docs/a/markdown/file.md"),
    ("**/docs/**", "docs/hello.md"),
    ("**/docs/**", "dir/docs/my-file.txt"),
    ("**/README.md", "README.md"),
    ("**/*src/**", "my-src/code/js/app.js"),
    ("**/migrate-*.sql", "db/sept/migrate-v1.sql"),
    (r"\!file", "!file"),
    (r"a\*", "a*"),
    ("a[b-d]e", "ace"),
    ("ab+", "abbb"),
    ("[", "["),
    ("a[]b", "a[]b"),
    ("+x", "+x"),
    ("grün/*", "grün/ä"),
]
LEAVES = [
    ("feature/*", "feature/a/b"),
    ("*", "a/b"),
    ("docs/*", "docs/a/b"),
    (".yml", "fyml"),
    ("v[12].[0-9]+", "v3.1"),
    ("*.jsx?", "page.jsxx"),
    ("**/docs/**", "mydocs/a"),
    (r"a\*", "ab"),
    ("Main", "main"),
    ("ab+", "a"),
    ("", "a"),
    ("main", ""),
]


@pytest.mark.parametrize(("pattern", "name"), TAKES)
def test_it_takes(pattern: str, name: str) -> None:
    assert matches(pattern, name)


@pytest.mark.parametrize(("pattern", "name"), LEAVES)
def test_it_leaves(pattern: str, name: str) -> None:
    assert not matches(pattern, name)


def test_the_last_pattern_that_matches_decides() -> None:
    assert not included(["a*", "!ab"], "ab")
    assert included(["!ab", "a*"], "ab")
    assert included(["a*", "!ab", "ab"], "ab")


def test_an_empty_list_neither_skips_nor_ignores() -> None:
    assert not skips([], ["a"])
    assert not ignores([], ["a"])


def test_all_names_must_be_ignored() -> None:
    assert ignores(["*.md"], ["a.md", "b.md"])
    assert not ignores(["*.md"], ["a.md", "b.c"])


@pytest.mark.parametrize(
    "pattern", ["*a" * 500, "**/" * 500 + "x", "a?" * 1000 + "b", "*+" * 1000, "[a-z]+" * 500, "**" * 999 + "x"]
)
def test_a_hostile_pattern_takes_no_long_time(pattern: str) -> None:
    started = time.thread_time()
    assert not matches(pattern, "a" * 4000 + "/!")
    assert time.thread_time() - started < 10
