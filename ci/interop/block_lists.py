"""Which blocks does a client of Azure's storage name, and in which order? In XML, of which only the plainest is read.

https://learn.microsoft.com/rest/api/storageservices/put-block-list
"""

from __future__ import annotations

import base64
import binascii
from typing import Any
from xml.parsers import expat

MOST_BYTES = 8 * 1024 * 1024
_MOST_BLOCKS = 50_000
_LONGEST_ID = 64  # bytes, before base64
_ROOT = "BlockList"
_ENTRIES = ("Latest", "Uncommitted", "Committed")


class BadBlockList(Exception):
    """The document is no block list; the message says why."""


def is_block_id(text: str) -> bool:
    """Whether it is base64 of 1 to 64 bytes, as Azure's are."""
    try:
        return 0 < len(base64.b64decode(text, validate=True)) <= _LONGEST_ID
    except (binascii.Error, ValueError):
        return False


def block_ids(document: bytes) -> list[str]:
    """The ids in their order. Raises BadBlockList; a document type, and so any entity, is refused before it is read."""
    reader = _Reader()
    try:
        reader.parser.Parse(document, True)
    except expat.ExpatError as error:
        raise BadBlockList(f"The block list is not well-formed XML: {error}.") from None
    except (ValueError, LookupError):
        raise BadBlockList("The encoding of the block list is not understood; use UTF-8.") from None
    return reader.found


class _Reader:
    def __init__(self) -> None:
        self.found: list[str] = []
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartDoctypeDeclHandler = self._refuse
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text
        self._open: list[str] = []
        self._characters = ""

    def _refuse(self, *_: Any) -> None:
        raise BadBlockList("A block list has no document type.")

    def _start(self, name: str, _: Any) -> None:
        expected = (_ROOT,) if not self._open else _ENTRIES if len(self._open) == 1 else ()
        if name not in expected:
            raise BadBlockList("A block list is <BlockList> with <Latest>, <Uncommitted> or <Committed> in it.")
        self._open.append(name)
        self._characters = ""

    def _text(self, text: str) -> None:
        self._characters += text
        if len(self._characters) > 1000:
            raise BadBlockList("The block list has an entry that is too long.")

    def _end(self, _: str) -> None:
        self._open.pop()
        text, self._characters = self._characters.strip(), ""
        if not self._open:
            return
        if not is_block_id(text):
            raise BadBlockList("The block list has an entry that is not base64 of 1 to 64 bytes.")
        if len(self.found) >= _MOST_BLOCKS:
            raise BadBlockList(f"A block list has at most {_MOST_BLOCKS} entries.")
        self.found.append(text)
