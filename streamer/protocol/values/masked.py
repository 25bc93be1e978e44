"""A masked column: its value is read as ever, and the mask takes the place of what the row would say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import orjson

from contract.masks import Mask, text_of
from streamer.protocol.values.reader import Reader
from streamer.protocol.values.text import quoted


def masked(reader: Reader, mask: Mask) -> Reader:
    if mask.kind == "null":
        return replace(reader, form="%b", args=('b"null"',), escaped=False)
    value = f"{reader.form.encode()!r} % ({', '.join(map(_first_of_two, reader.args))},)"
    return replace(
        reader,
        form="%b",
        args=(f"{{x}}[1]({value})",),
        first=tuple(map(_first_of_two, reader.first)),
        read=tuple(map(_first_of_two, reader.read)),
        bound=(reader.bound, _cover(mask)),
    )


def _first_of_two(piece: str) -> str:
    """`{x}` holds the mask as well."""
    return piece.replace("{x}", "{x}[0]")


def _cover(mask: Mask) -> Callable[[bytes], bytes]:
    """From the wire value's JSON to the masked one's."""
    text = text_of(mask)

    def cover(wire: bytes) -> bytes:
        if wire[:1] != b'"':
            plain = wire.decode()
        elif b"\\" in wire:
            plain = orjson.loads(wire)
        else:
            plain = wire[1:-1].decode()
        found = text(plain)
        return b"null" if found is None else quoted(found)

    return cover
