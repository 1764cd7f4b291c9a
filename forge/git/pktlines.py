"""How do git's pkt-lines and side bands look on the wire? (git: gitprotocol-common, gitprotocol-pack)"""

from __future__ import annotations

from collections.abc import Iterator

FLUSH = b"0000"
DATA, PROGRESS, ERROR = b"\1", b"\2", b"\3"  # side bands
MAX_PACKET = 65520  # bytes, its four digits of length included


class MalformedPacket(Exception):
    """The bytes are no pkt-line."""


def packet(data: bytes) -> bytes:
    return b"%04x" % (len(data) + 4) + data


def on_band(band: bytes, data: bytes) -> bytes:
    """`data` in as many packets of a side band as it takes."""
    size = MAX_PACKET - 5
    return b"".join(packet(band + data[start : start + size]) for start in range(0, len(data), size))


class PacketReader:
    """Takes a stream of pkt-lines apart, however it is cut."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, chunk: bytes) -> Iterator[bytes | None]:
        """The data of every packet that is now whole; None for a flush packet.

        Raises MalformedPacket. Stop iterating to leave the rest: `rest()` gives it.
        """
        self._buffer += chunk
        while (size := self._next_size()) is not None and len(self._buffer) >= size:
            data = None if size == 4 and self._buffer[:4] == FLUSH else bytes(self._buffer[4:size])
            del self._buffer[:size]
            yield data

    def rest(self) -> bytes:
        return bytes(self._buffer)

    def _next_size(self) -> int | None:
        if len(self._buffer) < 4:
            return None
        try:
            size = int(bytes(self._buffer[:4]), 16)
        except ValueError:
            raise MalformedPacket("a pkt-line must begin with four hexadecimal digits") from None
        if size in (1, 2, 3) or size > MAX_PACKET:
            raise MalformedPacket(f"a pkt-line cannot have the length {size}")
        return max(size, 4)
