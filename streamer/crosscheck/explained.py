"""Values that differ because of a defect of mysql-replication: what it gives must follow from the very bytes that ours
was read from. What does not is no defect of it that is known, and is told as unexplained.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from datetime import datetime, time, timedelta
from decimal import Decimal
from functools import cache
from ipaddress import ip_address
from typing import Any
from uuid import UUID

from contract.schema import Column
from streamer.protocol.charsets import BY_NAME, Charset, NoTextError

# By which codec it reads a character set, where that has another name; UTF-16 and 32 in most machines' byte order.
CODECS = {
    "latin1": "cp1252", "koi8r": "koi8_r", "koi8u": "koi8_u", "utf16": "utf-16-le", "utf16le": "utf-16-le",
    "utf32": "utf-32-le",
}  # fmt: skip
UNKNOWN = "utf8"  # by which it reads text of a collation that it does not know
OPAQUE = "base64:type"


def text(column: Column, ours: str, theirs: Any) -> bool:
    """The bytes that its text was made of are ours by the column's character set."""
    charset = BY_NAME.get(column.charset or "")
    if charset is None:
        return False
    if column.type == "enum":
        return bool(theirs == _member(charset, ours))
    if column.type == "set":
        return bool(theirs == {_member(charset, member) for member in ours.split(",")})  # no member holds a comma
    return _of_same_bytes(charset, ours, theirs)


def _member(charset: Charset, ours: str) -> str:
    """As it reads members: as UTF-8, without what is none."""
    known = _bytes(charset.name)
    return b"".join(known.get(char, b"") for char in ours).decode(errors="ignore")


@cache
def _bytes(name: str) -> Mapping[str, bytes]:
    """A character set's codes of one byte and of two."""
    charset, found = BY_NAME[name], dict[str, bytes]()
    for code in range(0x100 if charset.width == 1 else 0x10000):
        raw = code.to_bytes(1 if code < 0x100 else 2)
        text = _read(charset, raw)
        if text is not None and len(text) == 1:
            found.setdefault(text, raw)
    return found


def _of_same_bytes(charset: Charset, ours: str, theirs: Any) -> bool:
    """Bytes are as they were, for want of a codec."""
    if isinstance(theirs, bytes):
        return _read(charset, theirs) == ours
    codecs = (CODECS.get(charset.name, charset.name), UNKNOWN)
    return isinstance(theirs, str) and any(_was_read(charset, codec, ours, theirs) for codec in codecs)


def _was_read(charset: Charset, codec: str, ours: str, theirs: str) -> bool:
    """By the codec; where that has several codes for a character, by any of them."""
    try:
        raw = theirs.encode(codec)
    except (UnicodeEncodeError, LookupError):
        return False
    if _read(charset, raw) == ours:
        return True
    return charset.width in (2, 3) and len(ours) == len(theirs) and all(
        our == their or any(_read(charset, code) == our for code in _codes(codec).get(their, ()))
        for our, their in zip(ours, theirs, strict=True)
    )  # fmt: skip


@cache
def _codes(codec: str) -> Mapping[str, Sequence[bytes]]:
    """Those of two bytes, by their character."""
    found: dict[str, list[bytes]] = {}
    for code in range(0x8140, 0x10000):
        raw = code.to_bytes(2)
        try:
            found.setdefault(raw.decode(codec), []).append(raw)
        except UnicodeDecodeError:
            continue
    return found


def _read(charset: Charset, raw: bytes) -> str | None:
    try:
        return charset.text(raw)
    except (ValueError, NoTextError):
        return None


def negative_time(column: Column, ours: str, theirs: Any) -> bool:
    """Below zero, a TIME and its fraction are one number in two's complement, of which it makes two."""
    if not ours.startswith("-") or not column.fsp:
        return False
    clock, _, digits = ours[1:].partition(".")
    hours, minutes, seconds = map(int, clock.split(":"))
    bits = (column.fsp + 1) // 2 * 8
    scale = 10 if column.fsp % 2 else 1
    stored = (hours << 12 | minutes << 6 | seconds) << bits | int(digits) * scale
    first = -((1 << 23 + bits) - stored >> bits)
    part = -stored & (1 << bits) - 1
    part -= part >> bits - 1 << bits  # it takes its highest bit for a sign
    wrong = timedelta(
        hours=first >> 12 & 1023, minutes=first >> 6 & 63, seconds=first & 63,
        microseconds=int(part / scale) * 10 ** (6 - column.fsp),
    )  # fmt: skip
    return bool(theirs == -wrong)


def address(column: Column, ours: str, theirs: Any) -> bool:
    """The bytes of MariaDB's UUID, INET4 and INET6, without zeros at their end."""
    kept = UUID(ours).bytes if column.type == "uuid" else ip_address(ours).packed
    return bool(kept.rstrip(b"\0") == (theirs or b""))


def opaque(ours: Any, theirs: Any) -> bool:
    """A leaf of JSON that JSON has no type for."""
    match theirs:
        case Decimal():
            return isinstance(ours, (int, Decimal)) and not isinstance(ours, bool) and ours == theirs
        case datetime():
            midnight = theirs.time() == time()
            return ours == theirs.isoformat(" ", "microseconds") or (midnight and ours == theirs.date().isoformat())
        case time():
            return isinstance(ours, str) and ours.removeprefix("-") == theirs.isoformat("microseconds")
        case "0000-00-00 00:00:00":
            return ours in ("0000-00-00", "0000-00-00 00:00:00.000000", "00:00:00.000000")
        case str():
            return isinstance(ours, str) and ours.startswith(OPAQUE) and _plain(ours) == theirs
    return False


def _plain(ours: str) -> str | None:
    """Its text of what is kept in base64 here."""
    try:
        kept = ours.removeprefix(OPAQUE).partition(":")[2].replace("\n", "")
        return base64.b64decode(kept, validate=True).decode(errors="ignore")
    except binascii.Error:
        return None
