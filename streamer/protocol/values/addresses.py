"""MariaDB's UUID, INET4 and INET6, as the server prints them. The binlog leaves out the zero bytes at their end."""

from __future__ import annotations

from collections.abc import Callable

from contract import addresses
from streamer.protocol.values.reader import Field, Reader, prefixed


def uuid(_: Field) -> Reader:
    return _reader(addresses.uuid)


def inet4(_: Field) -> Reader:
    return _reader(addresses.inet4)


def inet6(_: Field) -> Reader:
    return _reader(addresses.inet6)


def _reader(text: Callable[[bytes], str]) -> Reader:
    return Reader('"%b"', ("{x}({v})",), read=prefixed(1), bound=lambda raw: text(raw).encode())
