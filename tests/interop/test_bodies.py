"""Is a body read to its end, within its limit, and not kept when its client leaves?"""

import asyncio
import hashlib

import pytest

from ci.interop import bodies
from ci.interop.bodies import BadBody, ClientGone, content_range, declared_length, spool


def receiving(*pieces, complete=True):
    messages = [{"type": "http.request", "body": piece, "more_body": True} for piece in pieces]
    if complete:
        messages.append({"type": "http.request", "body": b"", "more_body": False})

    async def receive():
        return messages.pop(0) if messages else {"type": "http.disconnect"}

    return receive


def spooled(*pieces, limit=10**9, complete=True, **given):
    async def read():
        async with spool(receiving(*pieces, complete=complete), limit=limit, **given) as (file, size):
            data = file.read()
            assert size == len(data)
        assert file.closed
        return data

    return asyncio.run(read())


@pytest.mark.parametrize("size", [0, 1, 256 * 1024 - 1, 256 * 1024, 256 * 1024 + 1, 3_000_000])
def test_a_body_of_any_size_comes_to_a_file(size):
    data = (b"0123456789" * (size // 10 + 1))[:size]
    pieces = [data[start : start + 60_000] for start in range(0, size, 60_000)]
    assert spooled(*pieces) == data


def test_a_digest_is_fed_with_all_of_it():
    digest = hashlib.md5()
    spooled(b"a" * 300_000, b"b" * 300_000, digest=digest)
    assert digest.digest() == hashlib.md5(b"a" * 300_000 + b"b" * 300_000).digest()


def test_the_limit_is_the_last_size_that_passes():
    assert spooled(b"1234", b"5", limit=5) == b"12345"
    with pytest.raises(BadBody, match="larger than 5 bytes") as error:
        spooled(b"1234", b"56", limit=5)
    assert error.value.status == 413


def test_far_over_the_limit_it_stops_reading(monkeypatch):
    monkeypatch.setattr(bodies, "_OVERSHOOT", 10)
    with pytest.raises(BadBody, match="larger than 5 bytes") as error:
        spooled(b"x" * 16, limit=5, complete=False)
    assert error.value.status == 413
    with pytest.raises(BadBody, match="larger than 5 bytes"):
        spooled(limit=5, headers={"content-length": "16"}, complete=False)


def test_a_client_that_leaves_is_told_apart_from_one_that_ends():
    with pytest.raises(ClientGone):
        spooled(b"12345", complete=False)


def test_a_body_is_as_long_as_it_says():
    assert spooled(b"12345", headers={"content-length": "5"}) == b"12345"
    with pytest.raises(BadBody) as error:
        spooled(b"1234", headers={"content-length": "5"})
    assert error.value.status == 400


@pytest.mark.parametrize("text", ["-1", "1e3", "", "0x1", "1" * 30, "１"])
def test_a_length_that_is_no_number_is_refused(text):
    with pytest.raises(BadBody):
        declared_length({"content-length": text})


def test_a_small_body_is_read_whole_or_refused():
    assert asyncio.run(bodies.read(receiving(b"12", b"345"), limit=5)) == b"12345"
    with pytest.raises(BadBody):
        asyncio.run(bodies.read(receiving(b"12", b"3456"), limit=5))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("bytes 0-0/1", (0, 1, 1)),
        ("bytes 0-9/*", (0, 10, None)),
        (" bytes 33554432-33554433/33554434", (33554432, 33554434, 33554434)),
    ],
)
def test_a_content_range_is_read(text, expected):
    assert content_range(text) == expected


@pytest.mark.parametrize(
    "text", ["", "bytes", "bytes 1-0/*", "bytes 0-1/1", "bytes */5", "bytes -1-2/*", "bytes 0-" + "9" * 30 + "/*"]
)
def test_a_content_range_that_is_none_is_refused(text):
    with pytest.raises(BadBody) as error:
        content_range(text)
    assert error.value.status == 400
