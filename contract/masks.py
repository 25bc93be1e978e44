"""Column masks: what takes the place of a value, in the stream, in a snapshot and in the verification alike.

A mask works on the text of the wire value (contract/types.py): a string without its quotes and escapes, a number's
digits, `true` or `false`, the base64 of bytes. It gives a text, so a masked column is text in the schema topic and in
the lake; the mask `null` leaves the column's type, and no value. A NULL stays NULL under every mask.

The server itself masks a snapshot's rows and those that a check reads: an unmasked value does not leave it. The secret
of a hash reaches it as two variables of the session (`session`), never in a statement.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

from contract import types
from contract.schema import Column
from contract.types import INEXACT, Type
from contract.wire_sql import char, quote, quote_in_mariadb

Kind = Literal["null", "hash", "truncate", "obfuscate", "keep_last"]
STAR = "*"
BLOCK = 64  # bytes of a block of SHA-256
INNER, OUTER = "@headrace_inner", "@headrace_outer"


@dataclass(frozen=True)
class Mask:
    """`n`: how many characters `truncate` leaves at the beginning, `keep_last` at the end. `secret`: of `hash`."""

    kind: Kind
    n: int = 0
    secret: bytes = field(default=b"", repr=False)

    @property
    def name(self) -> str:
        return f"{self.kind}({self.n})" if self.n else self.kind


def shown(column: Column, mask: Mask) -> Column:
    """The column as the schema topic has it."""
    if mask.kind == "null":
        return column.model_copy(update={"nullable": True, "mask": mask.name})
    kind, length = ("varchar", 2 * hashlib.sha256().digest_size) if mask.kind == "hash" else ("longtext", None)
    return Column(
        name=column.name, type=kind, length=length, charset="utf8mb4", nullable=column.nullable, mask=mask.name
    )


def takes(column: Column, mask: Mask) -> bool:
    """Whether the column's values have one text that a mask could work on."""
    return mask.kind == "null" or column.type not in INEXACT


def text_of(mask: Mask) -> Callable[[str], str | None]:
    """Masks the text of a value; None is NULL."""
    n = mask.n
    if mask.kind == "hash":
        return _hash(mask.secret)
    if mask.kind == "truncate":
        return lambda text: text[:n]
    if mask.kind == "obfuscate":
        return lambda text: STAR * len(text)
    if mask.kind == "keep_last":
        return lambda text: STAR * (len(text) - n) + text[-n:] if len(text) > n else STAR * len(text)
    return lambda text: None


def _hash(secret: bytes) -> Callable[[str], str]:
    """HMAC-SHA256 in hexadecimal: the pads are hashed once."""
    inner, outer = (hashlib.sha256(pad) for pad in _pads(secret))

    def mask(text: str) -> str:
        first, second = inner.copy(), outer.copy()
        first.update(text.encode())
        second.update(first.digest())
        return second.hexdigest()

    return mask


def _pads(secret: bytes) -> tuple[bytes, bytes]:
    """RFC 2104."""
    block = (hashlib.sha256(secret).digest() if len(secret) > BLOCK else secret).ljust(BLOCK, b"\0")
    return bytes(byte ^ 0x36 for byte in block), bytes(byte ^ 0x5C for byte in block)


def session(secret: bytes) -> dict[str, str]:
    """The variables that a session of the server sets before it makes hashes."""
    inner, outer = _pads(secret)
    return {INNER: f"0x{inner.hex()}", OUTER: f"0x{outer.hex()}"}


def type_of(column: Column, mask: Mask, flavor: str) -> Type:
    """The type table's row of the masked value: its SQL works on the unmasked column."""
    made = types.of(shown(column, mask), flavor)
    if mask.kind == "null":
        return replace(
            made,
            snapshot_sql=lambda x: "'null'",
            checksum_sql=lambda x: "''",
            missing_sql=lambda x: "true",
            text_sql=lambda x: "null",
            number_sql=None,
        )
    plain = types.of(column, flavor).text_sql
    assert plain is not None  # `takes`
    text, digest = _sql(mask), mask.kind != "hash"  # as of long texts
    json = quote_in_mariadb if flavor == "mariadb" else quote
    if mask.kind in ("hash", "obfuscate"):  # nothing in them is escaped
        json = "concat('\"', {}, '\"')".format
    return replace(
        made,
        snapshot_sql=lambda x: json(text(plain(x))),
        checksum_sql=lambda x: f"sha2({text(plain(x))}, 256)" if digest else text(plain(x)),
        text_sql=lambda x: text(plain(x)),
    )


def _sql(mask: Mask) -> Callable[[str], str]:
    n, length = mask.n, "char_length({})".format
    stars = f"repeat('{STAR}', {{}})".format
    if mask.kind == "hash":
        first = f"sha2(concat({INNER}, cast({{}} as binary)), 256)".format
        return lambda x: char(f"sha2(concat({OUTER}, unhex({first(x)})), 256)")
    if mask.kind == "truncate":
        return lambda x: f"left({x}, {n})"
    if mask.kind == "obfuscate":
        return lambda x: char(stars(length(x)))
    return lambda x: char(
        f"if({length(x)} > {n}, concat({stars(f'{length(x)} - {n}')}, right({x}, {n})), {stars(length(x))})"
    )
