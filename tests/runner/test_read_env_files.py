"""How are GITHUB_ENV, GITHUB_OUTPUT and their kin read?"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ci.runner.env_files import EnvFiles, FileError, blocked, pairs, paths, read, without_effect
from ci.runner.environment import RESERVED


def test_lines_and_blocks_are_read() -> None:
    text = "a=1\r\n\nb==x=\nc<<END\nfirst\n\n  a=2\nEND\nd=x<<y\ne<<EOF\nEOF\n"
    assert pairs(text, "GITHUB_OUTPUT") == {"a": "1", "b": "=x=", "c": "first\n\n  a=2", "d": "x<<y", "e": ""}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("junk", "Invalid format 'junk'"),
        ("a<<", "Invalid format"),
        ("a<<EOF\nx\n EOF\n", "Matching delimiter not found 'EOF'"),
        ("=x", "name of a value is empty"),
        ("<<EOF\nx\nEOF", "name of a value is empty"),
        ("a=" + "x" * 1_048_577, "larger than 1024 KiB"),
    ],
)
def test_mistakes_are_named(text: str, message: str) -> None:
    with pytest.raises(FileError, match=message):
        pairs(text, "GITHUB_ENV")


def test_node_options_are_refused_and_names_of_the_runner_are_known() -> None:
    names = ["Node_Options", "GITHUB_SHA", "GITHUB_TOKEN", "CI", "MINE"]
    assert set(blocked(names)) == {"Node_Options"}
    assert without_effect(names, reserved=RESERVED) == ["GITHUB_SHA"]


def test_a_byte_order_mark_is_no_part_of_the_first_name(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"\xef\xbb\xbfa=\xff")
    assert pairs(read(file, "GITHUB_ENV"), "GITHUB_ENV") == {"a": "\ufffd"}


def test_anything_but_a_small_regular_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "big").write_bytes(b"x" * 100)
    with pytest.raises(FileError, match="no longer a regular file"):
        read(tmp_path / "pipe", "GITHUB_ENV")
    with pytest.raises(FileError, match="larger than"):
        read(tmp_path / "big", "GITHUB_ENV", limit=99)
    assert read(tmp_path / "absent", "GITHUB_ENV") == ""


def test_paths_keep_their_order() -> None:
    assert paths("/a\n\n /b c \r\n") == ["/a", "/b c"]


def test_each_step_has_files_of_its_own(tmp_path: Path) -> None:
    one, two = EnvFiles.reserve(tmp_path / "new"), EnvFiles.reserve(tmp_path / "new")
    assert not (tmp_path / "new").exists()
    one.create()
    two.create()
    assert not set(one.all()) & set(two.all())
    assert all(file.stat().st_mode & 0o077 == 0 for file in one.all())
    one.remove()
    assert not any(file.exists() for file in one.all()) and all(file.exists() for file in two.all())
