"""A TCP proxy that cuts its connections: when it is told to, or by itself once so much has come through. Or it swallows
what it should forward, as a network does that is cut somewhere on the way."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress

HOST = "127.0.0.1"


class Proxy:
    """Listens on `port` and forwards to the server's. While it is cut it listens to nobody."""

    def __init__(self, server: int) -> None:
        self.server = server
        self.lock = threading.Lock()
        self.ends: set[socket.socket] = set()
        self.left: int | None = None
        self.flows = threading.Event()  # cleared, nothing goes through, and nobody hears of it
        self.flows.set()
        self.listener = socket.create_server((HOST, 0))
        self.port: int = self.listener.getsockname()[1]
        self._listen()

    def cut_after(self, answered: int) -> None:
        """Once the server has answered with so many bytes more."""
        self.left = answered

    def cut(self) -> None:
        self.left = None
        _close(self.listener)
        with self.lock:
            ends, self.ends = self.ends, set()
        for end in ends:
            _close(end)

    @property
    def is_cut(self) -> bool:
        return self.listener.fileno() < 0

    def mend(self) -> None:
        self.listener = socket.create_server((HOST, self.port))
        self._listen()

    def _listen(self) -> None:
        threading.Thread(target=self._accept, args=(self.listener,), daemon=True).start()

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                server = socket.create_connection((HOST, self.server))
                with self.lock:
                    self.ends |= {client, server}
                for pair in ((client, server, False), (server, client, True)):
                    threading.Thread(target=self._forward, args=pair, daemon=True).start()

    def _forward(self, source: socket.socket, target: socket.socket, answers: bool) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                self.flows.wait()
                target.sendall(data)
                if answers and self.left is not None:
                    self.left -= len(data)
                    if self.left <= 0:
                        self.cut()
        for end in (source, target):
            _close(end)


def _close(end: socket.socket) -> None:
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()
