"""Which files do the lines of a `path` input mean, and which names a `pattern`?"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ci.runner.builtin.globs import Globber, escape
from ci.runner.builtin.name_patterns import matches
from ci.runner.builtin.step import Failure


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tree").resolve()
    for name in ("a/x.txt", "a/b/y.txt", "a/b/.hidden/z", "a/b/.dot", "c.log", "[set]/q", "we ird/ü%#*"):
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name)
    os.symlink("x.txt", root / "a/link")
    os.symlink("nowhere", root / "a/broken")
    os.symlink("..", root / "a/b/up")
    os.symlink("loop", root / "a/loop")
    return root


def found(tree: Path, *lines: str, hidden: bool = False, descendants: bool = True) -> list[str]:
    globber = Globber(lines, cwd=tree, home=tree / "a")
    names = (os.path.relpath(path, tree) for path, _ in globber.find(descendants=descendants, hidden=hidden))
    return sorted(name for name in names if descendants is False or (tree / name).is_file())


@pytest.mark.parametrize(
    ("lines", "names"),
    [
        ("a", "a/b/y.txt a/link a/x.txt"),
        ("./a/", "a/b/y.txt a/link a/x.txt"),
        ("a/*", "a/b/y.txt a/link a/x.txt"),
        ("a/*.txt", "a/x.txt"),
        ("a/**/*.txt", "a/b/y.txt a/x.txt"),
        ("**/y.txt", "a/b/y.txt"),
        ("a\n!a/b", "a/link a/x.txt"),
        ("a\n!**/*.txt\na/b/y.txt", "a/b/y.txt a/link"),
        ("!a/b\na", "a/b/y.txt a/link a/x.txt"),
        ("a/?.txt", "a/x.txt"),
        ("[ac].log\n# a/x.txt", "c.log"),
        ("[!c].log", ""),
        ("~/x.txt", "a/x.txt"),
        ("\\[set\\]", "[set]/q"),
        ("we ird/ü%#[*]", "we ird/ü%#*"),
        ("a/x.txt/", ""),
        ("nothing/**", ""),
    ],
)
def test_lines_mean_what_githubs_glob_finds(tree: Path, lines: str, names: str) -> None:
    expected = [names] if "ird" in names else names.split()
    assert found(tree, *lines.split("\n")) == expected


def test_what_begins_with_a_dot_is_found_when_asked_for(tree: Path) -> None:
    assert found(tree, "a/b", hidden=True)[:2] == ["a/b/.dot", "a/b/.hidden/z"]
    assert found(tree, "a/b/.hidden") == []


def test_links_to_folders_are_followed_until_they_come_back(tree: Path) -> None:
    assert found(tree, "a/b") == ["a/b/up/link", "a/b/up/x.txt", "a/b/y.txt"]


def test_without_descendants_a_folder_is_itself(tree: Path) -> None:
    assert found(tree, "a/b", "**/.hidden", hidden=True, descendants=False) == ["a/b", "a/b/.hidden"]


@pytest.mark.parametrize("line", ["../x", "a/../b", "a/./b", "!"])
def test_paths_that_wander_are_refused(tree: Path, line: str) -> None:
    with pytest.raises(Failure, match="Invalid pattern"):
        found(tree, line)


def test_searched_paths_end_before_the_first_wildcard_and_leave_out_those_below_others(tree: Path) -> None:
    globber = Globber(["a/*/x", "a/b/y.txt", "c.log", "!d", "[c]/*"], cwd=tree, home=tree)
    assert globber.search_paths() == [f"{tree}/a", f"{tree}/c.log", f"{tree}/c"]


def test_an_escaped_path_means_just_itself(tree: Path) -> None:
    assert found(tree, escape(f"{tree}/[set]")) == ["[set]/q"]


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("*", "bin-linux bin-macos docs"),
        ("bin-*", "bin-linux bin-macos"),
        ("!bin-*", ".dot docs"),
        ("!!docs", "docs"),
        ("#docs", ""),
        ("d?cs", "docs"),
        ("[cd]ocs", "docs"),
        ("[!x]ocs", "docs"),
        ("bin-{linux,macos}", "bin-linux bin-macos"),
        ("{bin-{linux,x},docs}", "bin-linux docs"),
        ("bin-!(linux)", "bin-macos"),
        ("@(docs|bin-+(a|c|m|o|s))", "bin-macos docs"),
        (".d*", ".dot"),
        ("docs{", ""),
    ],
)
def test_patterns_mean_what_minimatch_matches(pattern: str, names: str) -> None:
    assert [name for name in (".dot", "bin-linux", "bin-macos", "docs") if matches(name, pattern)] == names.split()


def test_numbers_in_braces_are_counted_and_not_without_end() -> None:
    assert [name for name in ("v1", "v2", "v3", "v4") if matches(name, "v{2..3}")] == ["v2", "v3"]
    for pattern in ("{1..999}{1..999}", "x" * 501):
        with pytest.raises(Failure):
            matches("v1", pattern)
