"""Text of any character set, ENUM and SET members: JSON strings in UTF-8, escaped as MySQL's JSON_QUOTE does."""

from __future__ import annotations

import re
from collections.abc import Callable

from streamer.errors import UnsupportedTypeError
from streamer.protocol.charsets import ASCII, NoTextError
from streamer.protocol.values.compressed import inflated
from streamer.protocol.values.reader import Field, Reader, prefixed

LIMIT = 1_000  # combinations of a SET kept as text
# Translates the bytes that JSON escapes, and the one that half a character begins with, into another one and leaves the
# rest: a text that it does not change needs no second look. CPython gives such a text back without a copy, which makes
# this the cheapest test.
PLAIN = bytes(byte if byte >= 32 and byte not in b'"\\\xed' else ord("?") for byte in range(256))
_HALF = re.compile(rb"\xed[\xa0-\xbf]")  # a surrogate, which MariaDB's utf8mb3 and utf8mb4 take for a character
_UNSAFE = re.compile(rb'[\x00-\x1f"\\]')
_ESCAPES = {bytes((byte,)): b"\\u%04x" % byte for byte in range(32)}
_ESCAPES |= {b"\b": b"\\b", b"\t": b"\\t", b"\n": b"\\n", b"\f": b"\\f", b"\r": b"\\r", b'"': b'\\"', b"\\": b"\\\\"}


def escape(raw: bytes) -> bytes:
    """UTF-8 text as it stands between the quotes of a JSON string. Raises UnsupportedTypeError for half a character."""
    if _HALF.search(raw):
        raise _no_text("a column", "utf8mb3 or utf8mb4")
    return _UNSAFE.sub(lambda match: _ESCAPES[match[0]], raw)


def quoted(text: str) -> bytes:
    return b'"' + escape(text.encode()) + b'"'


def text(field: Field) -> Reader:
    assert field.charset is not None
    read = prefixed(field.size)
    if field.compressed:
        plain = _converter(field)
        return Reader('"%b"', ("{x}({v})",), read=read, bound=lambda raw: plain(inflated(raw)))
    if field.charset.decode is None:
        return Reader('"%b"', ("{v}",), read=read, escaped=True)
    if field.charset.name == "ascii":  # nearly always UTF-8 as it is
        mended = "if not {v}.isascii(): {v} = {v}.translate({x})"
        return Reader('"%b"', ("{v}",), read=(*read, mended), escaped=True, bound=ASCII)
    return Reader('"%b"', ("{x}({v})",), read=read, bound=_converter(field))


def _converter(field: Field) -> Callable[[bytes], bytes]:
    charset = field.charset
    assert charset is not None

    def convert(raw: bytes) -> bytes:
        try:
            return escape(charset.text(raw).encode())
        except NoTextError:
            raise _no_text(f"column {field.column.name}", charset.name) from None

    return convert


def _no_text(what: str, charset: str) -> UnsupportedTypeError:
    cause = f"a value holds a surrogate, half of a character, which is no text outside {charset}; queries differ on it"
    hint = (
        "Change the column to utf8mb4 and mend the value, or exclude the table in the pipeline file; then take a new "
        "snapshot of the table"
    )
    return UnsupportedTypeError("read", f"{what} of the character set {charset}", cause, hint)


def enum(field: Field) -> Reader:
    """Index 0 is the empty text that MySQL stores for what was no member."""
    members = (b'""', *map(quoted, field.column.members))
    return Reader("%b", ("{x}[{0}]",), {1: "B", 2: "H"}[field.size], bound=members)


class Sets(dict[int, bytes]):
    """The JSON text by the members' bits, made when first asked for."""

    def __init__(self, members: tuple[str, ...]) -> None:
        super().__init__()
        self._members = members

    def __missing__(self, bits: int) -> bytes:
        if bits >> len(self._members):
            raise ValueError("a set has a member that its table does not have")
        if len(self) >= LIMIT:
            self.clear()
        chosen = [member for place, member in enumerate(self._members) if bits >> place & 1]
        made = self[bits] = quoted(",".join(chosen))
        return made


def set_(field: Field) -> Reader:
    layout, number = {1: ("B", "{0}"), 2: ("H", "{0}"), 3: ("HB", "{0} | {1} << 16"), 4: ("I", "{0}"), 8: ("Q", "{0}")}[
        field.size
    ]
    return Reader("%b", (f"{{x}}[{number}]",), layout, bound=Sets(field.column.members))
