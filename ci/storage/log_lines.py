"""How does a log line become bytes and come back? `<ISO time>\\t<text>\\n`, whatever the text was."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import zstandard

MAX_LINE_BYTES = 64 * 1024
MAX_TIME_LENGTH = 40
CUT_MARK = " […]"
_ZSTD_LEVEL = 3
# Twice what one chunk or frame may hold: a damaged header must not ask for all memory.
_MAX_CHUNK_BYTES = 64 * 1024 * 1024
# A line is one line, and PostgreSQL and browsers take neither NUL nor half a surrogate pair.
_FORBIDDEN_IN_TEXT = str.maketrans({"\0": "\N{REPLACEMENT CHARACTER}", "\n": "\N{SYMBOL FOR LINE FEED}"})
_FORBIDDEN_IN_TIME = str.maketrans(dict.fromkeys("\0\n\r\t", " "))


class LogLine(NamedTuple):
    number: int
    time: str
    text: str


def encode_line(time: str, text: str) -> bytes:
    """One line as it is stored: cleaned, and its text cut at MAX_LINE_BYTES with a mark."""
    if len(text) > MAX_LINE_BYTES:
        text = text[: MAX_LINE_BYTES + 1]  # so that cleaning a line of a gigabyte costs no more than this one
    text = text.removesuffix("\n").removesuffix("\r")
    # Looking is a tenth of the work of translating, and hardly any line has what is looked for.
    if "\0" in text or "\n" in text:
        text = text.translate(_FORBIDDEN_IN_TEXT)
    raw = text.encode("utf-8", "replace")
    if len(raw) > MAX_LINE_BYTES:
        raw = raw[:MAX_LINE_BYTES].decode("utf-8", "ignore").encode() + CUT_MARK.encode()
    time = time[:MAX_TIME_LENGTH]
    if not time.isprintable():
        time = time.translate(_FORBIDDEN_IN_TIME)
    stamp = time.encode("utf-8", "replace")
    return stamp + b"\t" + raw + b"\n"


def decode_lines(block: bytes, *, first_line: int) -> list[LogLine]:
    """The lines of one decompressed block whose first line has the number `first_line`."""
    result = []
    for number, raw in enumerate(block.split(b"\n")[:-1], first_line):
        time, _, text = raw.decode("utf-8", "replace").partition("\t")
        result.append(LogLine(number, time, text))
    return result


def texts_only(block: bytes) -> bytes:
    """The block without its times."""
    return b"".join(line.partition(b"\t")[2] + b"\n" for line in block.split(b"\n")[:-1])


def compress(lines: Sequence[bytes]) -> bytes:
    # A compressor shared by threads crashes the process, so each call makes its own.
    return zstandard.ZstdCompressor(level=_ZSTD_LEVEL).compress(b"".join(lines))


def decompress(data: bytes) -> bytes:
    """Raises zstandard.ZstdError when damaged."""
    if zstandard.frame_content_size(data) > _MAX_CHUNK_BYTES:
        raise zstandard.ZstdError("the frame claims to be larger than any that is written")
    return zstandard.ZstdDecompressor().decompress(data, max_output_size=_MAX_CHUNK_BYTES)
