"""Which files does hashFiles take, and what does it answer?"""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from ci.runner.hash_files import HashError, hash_files


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("mix.lock", "lib/a.ex", "lib/deep/b.ex", "lib/deep/c.txt", ".hidden/d.ex", "odd[1].ex"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    (tmp_path / "loop").symlink_to(tmp_path)
    return tmp_path


def of(*contents: str) -> str:
    return hashlib.sha256(b"".join(hashlib.sha256(text.encode()).digest() for text in contents)).hexdigest()


@pytest.mark.parametrize(
    ("patterns", "files"),
    [
        (["mix.lock"], ["mix.lock"]),
        (["lib/*.ex"], ["lib/a.ex"]),
        (["lib/**/*.ex", "mix.lock"], ["lib/a.ex", "lib/deep/b.ex", "mix.lock"]),
        (["**/*.ex", "!lib/deep/**"], [".hidden/d.ex", "lib/a.ex", "odd[1].ex"]),
        (["lib"], ["lib/a.ex", "lib/deep/b.ex", "lib/deep/c.txt"]),
        (["lib/deep/?.[et]x[t]"], ["lib/deep/c.txt"]),
        (["# comment\nmix.lock\n"], ["mix.lock"]),
    ],
)
def test_patterns_choose_files(tree: Path, patterns: list[str], files: list[str]) -> None:
    assert hash_files(tree, patterns) == of(*files)


def test_nothing_found_is_an_empty_text(tree: Path) -> None:
    assert hash_files(tree, ["*.none", "../*"]) == ""


def test_a_pattern_that_cannot_be_read_is_an_error(tree: Path) -> None:
    with pytest.raises(HashError, match="cannot read the pattern"):
        hash_files(tree, ["[z-a]"])
