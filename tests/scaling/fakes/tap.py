"""What if an engine cannot be reached, or never answers? A socket before it, that passes on, refuses or holds."""

from __future__ import annotations

import contextlib
import socket
import threading
from enum import Enum
from pathlib import Path


class Way(Enum):
    OPEN = "all is passed on"
    SHUT = "connections are closed at once"
    HELD = "connections are taken and nothing is passed on"


class Tap:
    """Listens at a unix socket for one engine; a `target` is a unix socket's path or host and port."""

    def __init__(self, target: str | tuple[str, int], path: Path | None = None) -> None:
        self.way = Way.OPEN
        self._target = target
        self._sockets: set[socket.socket] = set()
        self._lock = threading.Lock()
        if path is not None:
            self._listener = socket.socket(socket.AF_UNIX)
            self._listener.bind(str(path))
            self.address = f"unix://{path}"
        else:
            self._listener = socket.socket()
            self._listener.bind(("127.0.0.1", 0))
            self.address = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._listener.listen(64)
        threading.Thread(target=self._accept, daemon=True).start()

    def turn(self, way: Way) -> None:
        """Connections made before are cut, so that none stays open through a client's pool."""
        with self._lock:
            self.way = way
            self._cut()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            self._cut()

    def _cut(self) -> None:
        for connection in self._sockets:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self._sockets.clear()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(near,), daemon=True).start()

    def _serve(self, near: socket.socket) -> None:
        with near:
            with self._lock:
                way = self.way
                self._sockets.add(near)
            if way is Way.SHUT:
                return
            if way is Way.HELD:
                with contextlib.suppress(OSError):
                    while near.recv(65536):
                        pass
                return
            with contextlib.suppress(OSError), self._connect() as far:
                with self._lock:
                    self._sockets.add(far)
                back = threading.Thread(target=_pump, args=(far, near), daemon=True)
                back.start()
                _pump(near, far)
                back.join()

    def _connect(self) -> socket.socket:
        if isinstance(self._target, tuple):
            return socket.create_connection(self._target, timeout=None)
        far = socket.socket(socket.AF_UNIX)
        far.connect(self._target)
        return far


def _pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)
