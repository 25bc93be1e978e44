"""A proxy before Kafka that lets a partition's leader refuse a producer's first batch, as one does that is not yet told
that it leads: the batch is sent to a partition that there is not, and the answer says NOT_LEADER_OR_FOLLOWER.

The answer is kept back for a moment, so that a producer that sends its next batch meanwhile has sent it.
"""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from struct import pack_into, unpack_from

from tests.integration.proxy import Proxy

PRODUCE, FLEXIBLE = 0, 9  # a request's key; the version from which on lengths are of variable size
NOBODYS, NOT_LEADER = 99, 6
KEPT_SECONDS = 1.0


class RefusingProxy(Proxy):
    """`refused`: when the batch is sent. `meanwhile`: how many more were sent before its answer was given."""

    def __init__(self, server: int) -> None:
        super().__init__(server)
        self.topic = ""
        self.refused, self._next = threading.Event(), threading.Event()
        self.meanwhile = 0
        self._open: tuple[int, int, int] | None = None  # correlation, version and partition of the refused one

    def refuse(self, topic: str) -> None:
        """The topic's next batch, and no other one."""
        self.refused.clear()
        self._next.clear()
        self.topic, self.meanwhile = topic, 0

    def _forward(self, source: socket.socket, target: socket.socket, answers: bool) -> None:
        with suppress(OSError):
            while frame := _frame(source):
                (self._answer if answers else self._request)(frame)
                target.sendall(len(frame).to_bytes(4, "big") + frame)
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _request(self, frame: bytearray) -> None:
        key, version, correlation = unpack_from(">hhi", frame)
        if key != PRODUCE or not self.topic or (found := _partition(frame, version, self.topic)) is None:
            return
        if self.refused.is_set():
            self.meanwhile += self._open is not None
            self._next.set()
            return
        self._open = correlation, version, unpack_from(">i", frame, found)[0]
        pack_into(">i", frame, found, NOBODYS)
        self.refused.set()

    def _answer(self, frame: bytearray) -> None:
        if self._open is None or unpack_from(">i", frame)[0] != self._open[0]:
            return
        at = frame.find(self.topic.encode()) + len(self.topic) + (1 if self._open[1] >= FLEXIBLE else 4)
        if unpack_from(">i", frame, at)[0] == NOBODYS:
            pack_into(">ih", frame, at, self._open[2], NOT_LEADER)
            self._next.wait(KEPT_SECONDS)
            self._open = None


def _partition(frame: bytes, version: int, topic: str) -> int | None:
    """Where in a request the number of the topic's first partition stands, a name that no other one begins with; the
    topic, then how many partitions there are: https://kafka.apache.org/protocol#The_Messages_Produce"""
    at = frame.find(topic.encode())
    return None if at < 0 else at + len(topic) + (1 if version >= FLEXIBLE else 4)


def _frame(source: socket.socket) -> bytearray:
    """A request or an answer without its length; empty at the end."""
    if not (size := _read(source, 4)):
        return bytearray()
    return _read(source, int.from_bytes(size, "big"))


def _read(source: socket.socket, size: int) -> bytearray:
    read = bytearray()
    while len(read) < size:
        if not (data := source.recv(size - len(read))):
            return bytearray()
        read += data
    return read
