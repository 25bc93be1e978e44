"""The texts of MariaDB's UUID, INET4 and INET6, as the server prints them: of their bytes, without zeros at their end.

Source: MariaDB's source documentation, sql/sql_type_inet.cc and sql_type_uuid.h.
"""

from __future__ import annotations

from itertools import groupby


def uuid(raw: bytes) -> str:
    digits = raw.ljust(16, b"\0").hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def inet4(raw: bytes) -> str:
    return ".".join(map(str, raw.ljust(4, b"\0")))


def inet6(raw: bytes) -> str:
    """The first of the longest runs of zeros is left out; the last four bytes of what stands for an IPv4 address are
    printed as one."""
    raw = raw.ljust(16, b"\0")
    parts = [int.from_bytes(raw[at : at + 2], "big") for at in range(0, 16, 2)]
    begin, end = _gap(parts)
    mapped = parts[:5] == [0] * 5 and parts[5] == 0xFFFF
    compatible = parts[:6] == [0] * 6 and parts[6] != 0
    words = [f"{part:x}" for part in parts]
    if mapped or compatible:
        words[6:] = [inet4(raw[12:])]
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
