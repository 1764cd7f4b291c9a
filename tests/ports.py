"""Which TCP port may a server of the tests have, so that nobody else gets it meanwhile?"""

from __future__ import annotations

import socket

_RESERVED: list[socket.socket] = []


def reserve_port() -> int:
    """A port of 127.0.0.1 that is this process's until it ends, however often a server on it is ended and started.

    A port that is only looked up may be given to another program before the server listens, and between its end and
    its next start. The socket that is kept never listens; bound with SO_REUSEADDR it keeps everybody away who asks for
    any port, and nobody who asks for this one with that option, as servers do (socket(7) and ip(7) of Linux).
    """
    kept = socket.socket()
    kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    kept.bind(("127.0.0.1", 0))
    _RESERVED.append(kept)
    return int(kept.getsockname()[1])
