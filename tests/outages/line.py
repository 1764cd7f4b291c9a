"""How is a connection lost at a named point, every time? The thread's connection goes over a line that can be cut."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from django.db import connection

_COMMIT = b"COMMIT"
_READY = b"Z\x00\x00\x00\x05I"  # ReadyForQuery, idle: the last that the server says of a commit


class Line:
    """A PostgreSQL address that passes everything on, until a COMMIT comes after `cut`: then both its ends hang up.

    `cut("before")`: the server never hears of the commit. `cut("after")`: it is done, and nobody is told.
    """

    def __init__(self, folder: Path, upstream: dict[str, Any]) -> None:
        self.cuts = 0
        self._upstream = upstream
        self._where = ""
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / ".s.PGSQL.5432"))
        self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self, where: str) -> None:
        self._where = where

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = self._connect()
                cut = threading.Event()
                for words in ((client, server, cut), (server, client, cut)):
                    threading.Thread(target=self._pass, args=words, daemon=True).start()

    def _connect(self) -> socket.socket:
        host, port = str(self._upstream["HOST"]), self._upstream["PORT"] or 5432
        if not host.startswith("/"):
            return socket.create_connection((host, int(port)))
        server = socket.socket(socket.AF_UNIX)
        server.connect(f"{host}/.s.PGSQL.{port}")
        return server

    def _pass(self, source: socket.socket, target: socket.socket, cut: threading.Event) -> None:
        """One direction, until either end hangs up; then both ends are."""
        with contextlib.suppress(OSError):
            while piece := source.recv(65536):
                if self._where and _COMMIT in piece:
                    where, self._where = self._where, ""
                    self.cuts += 1
                    if where == "before":
                        break
                    cut.set()
                    target.sendall(piece)
                    continue
                if cut.is_set():
                    if piece.endswith(_READY):
                        break
                    continue
                target.sendall(piece)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


@contextmanager
def over_a_line() -> Iterator[Line]:
    """Inside, this thread reaches the database over a line; other threads' new connections do too."""
    given = dict(connection.settings_dict)
    with TemporaryDirectory(prefix="line-") as folder:
        line = Line(Path(folder), given)
        connection.close()
        connection.settings_dict |= {"HOST": folder, "PORT": "5432"}
        try:
            yield line
        finally:
            connection.close()
            connection.settings_dict |= {"HOST": given["HOST"], "PORT": given["PORT"]}
            line.close()
