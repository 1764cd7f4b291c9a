"""How does a whole log lie in one file, readable from any line? zstd frames, then an index that zstd itself skips."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Iterator
from typing import IO, NamedTuple

from django.core.files.storage import default_storage

from ci.storage.log_lines import compress, decompress

FRAME_LINES = 1000
FRAME_BYTES = 1024 * 1024
# zstd frame format, RFC 8878 section 3.1.2: decoders skip a frame with this magic number, so `zstdcat` reads the file.
_SKIPPABLE = 0x184D2A50
_ENTRY = struct.Struct("<IIQI")
_FOOTER = struct.Struct("<I4s")
_MARK = b"FLOG"


class Frame(NamedTuple):
    """Where lines first_line … first_line + line_count - 1 lie in the file, in bytes."""

    first_line: int
    line_count: int
    position: int
    length: int


class BlobDamaged(Exception):
    """The file is not a log that `write` finished."""


def write(target: IO[bytes], blocks: Iterable[bytes]) -> int:
    """Write decompressed blocks of lines as frames of about FRAME_LINES lines; the number of lines."""
    frames: list[Frame] = []
    position = line = 0
    for lines in _regroup(blocks):
        data = compress(lines)
        target.write(data)
        frames.append(Frame(line, len(lines), position, len(data)))
        position += len(data)
        line += len(lines)
    index = b"".join(_ENTRY.pack(*frame) for frame in frames) + _FOOTER.pack(len(frames), _MARK)
    target.write(struct.pack("<II", _SKIPPABLE, len(index)) + index)
    return line


def _regroup(blocks: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Small appends make many small chunks: gather their lines into frames of one size."""
    lines: list[bytes] = []
    size = 0
    for block in blocks:
        for text in block.split(b"\n")[:-1]:
            line = text + b"\n"
            lines.append(line)
            size += len(line)
            if len(lines) >= FRAME_LINES or size >= FRAME_BYTES:
                yield lines
                lines, size = [], 0
    if lines:
        yield lines


def read(name: str, *, first_line: int) -> Iterator[tuple[int, bytes]]:
    """(number of its first line, decompressed block) from the frame that holds `first_line` on.

    Raises FileNotFoundError, BlobDamaged; zstandard.ZstdError while iterating.
    """
    with default_storage.open(name, "rb") as source:
        for frame in _read_index(source):
            if frame.first_line + frame.line_count <= first_line:
                continue
            source.seek(frame.position)
            yield frame.first_line, decompress(source.read(frame.length))


def _read_index(source: IO[bytes]) -> list[Frame]:
    end = source.seek(0, os.SEEK_END) or source.tell()
    if end < _FOOTER.size:
        raise BlobDamaged("too short")
    source.seek(end - _FOOTER.size)
    count, mark = _FOOTER.unpack(source.read(_FOOTER.size))
    size = count * _ENTRY.size
    if mark != _MARK or size + _FOOTER.size > end:
        raise BlobDamaged("no index at its end")
    source.seek(end - _FOOTER.size - size)
    return [Frame(*entry) for entry in _ENTRY.iter_unpack(source.read(size))]
