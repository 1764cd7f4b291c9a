"""Bodies piece by piece, as the server hands them on."""

import asyncio
import gzip
import zlib

import pytest

from forge.git import bodies
from forge.git.bodies import PIECE, BadBody, ClientGone, RequestBody


def receiver(*chunks: bytes, ends: bool = True):
    messages = [{"type": "http.request", "body": chunk, "more_body": True} for chunk in chunks]
    if ends:
        messages[-1]["more_body"] = False
    messages.append({"type": "http.disconnect"})

    async def receive():
        return messages.pop(0)

    return receive


def read(*chunks: bytes, encoding: str = "", max_bytes: int = 10**9, ends: bool = True) -> list[bytes]:
    async def read():
        body = RequestBody(receiver(*chunks, ends=ends), encoding=encoding, max_bytes=max_bytes)
        return [piece async for piece in body]

    return asyncio.run(read())


def test_a_bomb_is_unpacked_in_small_pieces_and_cut_off_at_the_limit():
    packed = gzip.compress(b"0" * 50_000_000, mtime=0)
    seen = []

    async def explode():
        body = RequestBody(receiver(packed), encoding="gzip", max_bytes=1_000_000)
        async for piece in body:
            seen.append(len(piece))  # noqa: PERF401 - what came before the end counts

    with pytest.raises(BadBody, match="larger than 1000000 bytes") as caught:
        asyncio.run(explode())
    assert caught.value.status == 413
    assert max(seen) <= PIECE and sum(seen) <= 1_000_000


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_however_it_is_cut_gzip_is_undone(size):
    text = bytes(range(256)) * 2000
    packed = gzip.compress(text[:1000], mtime=0) + gzip.compress(text[1000:], mtime=0)
    chunks = [packed[start : start + size] for start in range(0, len(packed), size)]
    assert b"".join(read(*chunks, encoding="gzip")) == text


def test_the_limit_itself_is_allowed():
    assert read(b"12", b"34", max_bytes=4) == [b"12", b"34"]
    with pytest.raises(BadBody):
        read(b"12", b"345", max_bytes=4)


@pytest.mark.parametrize(
    "packed",
    [b"plain", zlib.compress(b"x"), gzip.compress(b"x" * 99, mtime=0)[:-1], gzip.compress(b"x", mtime=0) + b"y"],
)
def test_what_is_not_whole_gzip_is_refused(packed):
    with pytest.raises(BadBody) as caught:
        read(packed, encoding="gzip")
    assert caught.value.status == 400


def test_a_client_that_leaves_is_noticed():
    with pytest.raises(ClientGone):
        read(b"half", ends=False)


def test_a_client_that_falls_silent_is_given_up(monkeypatch):
    monkeypatch.setattr(bodies, "PATIENCE", 0.01)

    async def wait():
        body = RequestBody(asyncio.Event().wait, encoding="", max_bytes=9)
        return [piece async for piece in body]

    with pytest.raises(ClientGone):
        asyncio.run(wait())


def test_reading_goes_on_where_it_stopped():
    async def read_twice():
        body = RequestBody(receiver(b"1", b"2", b"3"), encoding="", max_bytes=9)
        first = await anext(aiter(body))
        return first, [piece async for piece in body], body.complete

    assert asyncio.run(read_twice()) == (b"1", [b"2", b"3"], True)
