"""Is a block list read as its client meant it, and anything that could cost or read more refused?"""

import base64

import pytest

from ci.interop.block_lists import BadBlockList, block_ids, is_block_id


def encoded(number):
    return base64.b64encode(f"{number:032d}".encode()).decode()


def test_the_ids_come_in_their_order():
    document = "<?xml version='1.0'?>\n<BlockList>\n <Latest>Yg==</Latest><Committed> YQ== </Committed>\n</BlockList>\n"
    assert block_ids(document.encode()) == ["Yg==", "YQ=="]
    assert block_ids(document.encode("utf-16")) == ["Yg==", "YQ=="]


def test_an_empty_list_is_one():
    assert block_ids(b"<BlockList/>") == []
    assert block_ids(b"<BlockList></BlockList>") == []


def test_as_many_blocks_as_azure_allows_and_no_more():
    entries = "".join(f"<Latest>{encoded(number)}</Latest>" for number in range(50_000))
    assert len(block_ids(f"<BlockList>{entries}</BlockList>".encode())) == 50_000
    with pytest.raises(BadBlockList, match="at most 50000"):
        block_ids(f"<BlockList>{entries}<Latest>YQ==</Latest></BlockList>".encode())


@pytest.mark.parametrize(
    "document",
    [
        "<!DOCTYPE BlockList><BlockList/>",
        "<!DOCTYPE x [<!ENTITY % p SYSTEM 'http://127.0.0.1:1/x'>%p;]><BlockList/>",
        "<BlockList><Latest><Latest>YQ==</Latest></Latest></BlockList>",
        "<BlockList><Other>YQ==</Other></BlockList>",
        "<BlockList><Latest/></BlockList>",
        "<BlockList><Latest>" + "YQ" * 600 + "</Latest></BlockList>",
        "<BlockList/><BlockList/>",
        "YQ==",
    ],
)
def test_what_is_no_block_list_is_refused(document):
    with pytest.raises(BadBlockList):
        block_ids(document.encode())


@pytest.mark.parametrize(
    ("text", "right"), [("YQ==", True), ("YQ", False), ("", False), ("ü", False), ("Y Q==", False)]
)
def test_an_id_is_base64(text, right):
    assert is_block_id(text) is right


def test_an_id_has_at_most_64_bytes():
    assert is_block_id(base64.b64encode(b"x" * 64).decode())
    assert not is_block_id(base64.b64encode(b"x" * 65).decode())
