"""MariaDB's UUID, INET4 and INET6, as the server prints them.

Source: MariaDB's source documentation, sql/sql_type_inet.cc and sql_type_uuid.h. The binlog leaves the zero bytes at a
value's end away.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby

from streamer.protocol.values.reader import Field, Reader, prefixed


def uuid(_: Field) -> Reader:
    return _reader(_uuid)


def inet4(_: Field) -> Reader:
    return _reader(_inet4)


def inet6(_: Field) -> Reader:
    return _reader(_inet6)


def _reader(text: Callable[[bytes], str]) -> Reader:
    return Reader('"%b"', ("{x}({v})",), read=prefixed(1), bound=lambda raw: text(raw).encode())


def _uuid(raw: bytes) -> str:
    digits = raw.ljust(16, b"\0").hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def _inet4(raw: bytes) -> str:
    return ".".join(map(str, raw.ljust(4, b"\0")))


def _inet6(raw: bytes) -> str:
    """The first of the longest runs of zeros is left out; the last four bytes of what stands for an IPv4 address are
    printed as one."""
    raw = raw.ljust(16, b"\0")
    parts = [int.from_bytes(raw[at : at + 2], "big") for at in range(0, 16, 2)]
    begin, end = _gap(parts)
    mapped = parts[:5] == [0] * 5 and parts[5] == 0xFFFF
    compatible = parts[:6] == [0] * 6 and parts[6] != 0
    words = [f"{part:x}" for part in parts]
    if mapped or compatible:
        words[6:] = [_inet4(raw[12:])]
    if begin == end:
        return ":".join(words)
    return ":".join(words[:begin]) + "::" + ":".join(words[end:])


def _gap(parts: list[int]) -> tuple[int, int]:
    at, best = 0, (0, 0)
    for zero, run in groupby(part == 0 for part in parts):
        size = len(list(run))
        if zero and size > best[1] - best[0]:
            best = (at, at + size)
        at += size
    return best
