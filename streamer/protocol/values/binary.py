"""BINARY, VARBINARY, BLOBs, BIT and geometries: base64 in one line; BIT(1) is true or false."""

from __future__ import annotations

from binascii import b2a_base64
from collections.abc import Callable

from streamer.protocol.values.compressed import inflated
from streamer.protocol.values.reader import Field, Reader, prefixed


def base64(raw: bytes) -> bytes:
    return b2a_base64(raw, newline=False)


def varying(field: Field) -> Reader:
    if field.compressed:
        return Reader('"%b"', ("{x}({v})",), read=prefixed(field.size), bound=lambda raw: base64(inflated(raw)))
    return Reader('"%b"', ("{x}({v})",), read=prefixed(field.size), bound=base64)


def fixed(field: Field) -> Reader:
    """BINARY(n): the binlog leaves the zero bytes at its end away."""
    return Reader('"%b"', ("{x}({v})",), read=prefixed(field.size), bound=_padded(field.column.length or 0))


def _padded(length: int) -> Callable[[bytes], bytes]:
    return lambda raw: b2a_base64(raw.ljust(length, b"\0"), newline=False)


def bit(field: Field) -> Reader:
    if field.column.length == 1:
        return Reader("%b", ("{x}[{0}]",), "B", bound=(b"false", b"true"))
    return Reader('"%b"', ("{x}({0})",), f"{field.size}s", bound=base64)


def geometry(field: Field) -> Reader:
    """The server keeps the SRID in four bytes, then WKB."""
    args = ("{x}({v}[4:])", 'int.from_bytes({v}[:4], "little")')
    return Reader('{"wkb":"%b","srid":%d}', args, read=prefixed(field.size), bound=base64)
