"""How many fields has a message, before it is parsed? A byte or two of it may become a hundred in memory.

Source: the Protocol Buffers documentation, "Encoding".
"""

from __future__ import annotations

_VARINT, _FIXED64, _BYTES, _GROUP, _GROUP_END, _FIXED32 = range(6)


def has_more_fields(raw: bytes, most: int, *, within: int = 0) -> bool:
    """Whether there are more than `most` fields: of the message, and of what its field `within` holds.

    Bytes that are no message have as many as can be read of them; parsing them says what is wrong.
    """
    if len(raw) <= 2 * most:  # the least that a field takes
        return False
    count = 0
    stretches = [(0, len(raw))]
    while stretches:
        position, end = stretches.pop()
        is_outer = end == len(raw) and position == 0
        while position < end:
            count += 1
            if count > most:
                return True
            tag, position = _varint(raw, position, end)
            kind = tag & 7
            if kind == _VARINT:
                _, position = _varint(raw, position, end)
            elif kind == _BYTES:
                length, position = _varint(raw, position, end)
                if is_outer and tag >> 3 == within:
                    stretches.append((position, min(position + length, end)))
                position += length
            else:
                position += {_FIXED64: 8, _FIXED32: 4}.get(kind, 0)
    return False


def _varint(raw: bytes, position: int, end: int) -> tuple[int, int]:
    """The number at `position`, and where the next field begins: beyond the end where it is cut off."""
    number = shift = 0
    while position < end:
        byte = raw[position]
        position += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, position
        shift += 7
        if shift >= 70:
            break
    return 0, end
