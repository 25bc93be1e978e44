"""MySQL's binary JSON -> the text that MySQL prints for it, `{"a": 1, "b": [true, 1.0]}`.

Source: MySQL's source documentation, sql-common/json_binary.h (the format) and json_dom.cc (the text).
Raises ValueError, IndexError or struct.error for what is no document.
"""

from __future__ import annotations

from binascii import b2a_base64
from struct import Struct

from streamer.protocol.values.decimals import size_of, unpacker
from streamer.protocol.values.reader import Field, Reader, prefixed
from streamer.protocol.values.text import escape

OBJECT, ARRAY = (0, 1), (2, 3)
LITERAL, STRING, OPAQUE = 4, 12, 15
LITERALS = (b"null", b"true", b"false")
read_size, read_offset = Struct("<H").unpack_from, Struct("<I").unpack_from
# Of an object's or array's kind: bytes of an offset or count, its reader, and which values stand in an offset's place.
SMALL, LARGE = (2, read_size, (LITERAL, 5, 6)), (4, read_offset, (LITERAL, 5, 6, 7, 8))
SIZES = {0: SMALL, 1: LARGE, 2: SMALL, 3: LARGE}
NUMBERS = {5: "h", 6: "H", 7: "i", 8: "I", 9: "q", 10: "Q"}
READ_NUMBER = {kind: Struct("<" + code).unpack_from for kind, code in NUMBERS.items()}
DOUBLE = 11
read_double = Struct("<d").unpack_from
read_packed = Struct("<q").unpack_from
# Column types inside opaque values.
TIMESTAMP, DATE, TIME, DATETIME, DECIMAL = 7, 10, 11, 12, 246
DEPTH = 200  # MySQL refuses documents deeper than 100


def json(field: Field) -> Reader:
    return Reader('"%b"', ("{x}({v})",), read=prefixed(field.size), bound=wire)


def wire(raw: bytes) -> bytes:
    return escape(document(raw))


def document(raw: bytes) -> bytes:
    """UTF-8. No bytes at all are MySQL's way to keep a JSON null."""
    return value(raw[0], raw, 1, Room(raw)) if raw else b"null"


class Room:
    """How much of a document may still be read: offsets that lead in circles would never end, and of a small document
    that leads to one long text again and again a very large one would come. Each member and element takes three bytes
    at least."""

    __slots__ = ("depth", "left")

    def __init__(self, raw: bytes) -> None:
        self.left = len(raw)
        self.depth = DEPTH

    def enter(self, count: int) -> None:
        self.left -= 3 * count
        self.depth -= 1
        if self.left < 0 or self.depth < 0:
            raise ValueError("a JSON document with more in it than it has bytes, or nested too deep")

    def text(self, found: bytes) -> bytes:
        self.left -= len(found)
        if self.left < 0:
            raise ValueError("a JSON document with more text in it than it has bytes")
        return found


def value(kind: int, d: bytes, o: int, room: Room) -> bytes:
    """The text of the value of this kind at `o`."""
    if kind == STRING:
        return b'"' + escape(room.text(_sized(d, o))) + b'"'
    if kind in READ_NUMBER:
        return b"%d" % READ_NUMBER[kind](d, o)[0]
    if kind in OBJECT:
        pairs = [b'"%b": %b' % (escape(name), value(one, d, at, room)) for name, one, at in members(kind, d, o, room)]
        room.depth += 1
        return b"{" + b", ".join(pairs) + b"}"
    if kind in ARRAY:
        values = [value(one, d, at, room) for one, at in elements(kind, d, o, room)]
        room.depth += 1
        return b"[" + b", ".join(values) + b"]"
    if kind == LITERAL:
        return LITERALS[d[o]]
    if kind == DOUBLE:
        return double(read_double(d, o)[0])
    if kind == OPAQUE:
        return _opaque(d[o], room.text(_sized(d, o + 1)))
    raise ValueError(f"a JSON value of unknown kind {kind}")


def members(kind: int, d: bytes, start: int, room: Room) -> list[tuple[bytes, int, int]]:
    """An object's names, each with its value's kind and place. One level deeper: who is done with it goes back."""
    width, read, inlined = SIZES[kind]
    count = read(d, start)[0]
    room.enter(count)
    keys = start + 2 * width
    values = keys + count * (width + 2)
    found = []
    for at in range(values, values + count * (width + 1), width + 1):
        key = start + read(d, keys)[0]
        one = d[at]
        place = at + 1 if one in inlined else start + read(d, at + 1)[0]
        found.append((room.text(d[key : key + read_size(d, keys + width)[0]]), one, place))
        keys += width + 2
    return found


def elements(kind: int, d: bytes, start: int, room: Room) -> list[tuple[int, int]]:
    """An array's values: kind and place of each. One level deeper, too."""
    width, read, inlined = SIZES[kind]
    count = read(d, start)[0]
    room.enter(count)
    first = start + 2 * width
    places = range(first, first + count * (width + 1), width + 1)
    return [(d[at], at + 1 if d[at] in inlined else start + read(d, at + 1)[0]) for at in places]


def _sized(d: bytes, o: int) -> bytes:
    """Bytes behind their length, seven bits a byte, the lowest first, in five bytes at most."""
    length = 0
    for shift in range(0, 35, 7):
        byte = d[o]
        o += 1
        length |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
    else:
        raise ValueError("a JSON text's length that does not end")
    if o + length > len(d):
        raise ValueError("a JSON text longer than its document")
    return d[o : o + length]


def _opaque(kind: int, data: bytes) -> bytes:
    if kind == DECIMAL:
        precision, scale = data[0], data[1]
        return unpacker(precision, scale)(data[2 : 2 + size_of(precision, scale)])
    if kind in (DATE, TIME, DATETIME, TIMESTAMP):
        return b'"' + _moment(kind, read_packed(data, 0)[0]) + b'"'
    lines = [b2a_base64(data[at : at + 57], newline=False) for at in range(0, len(data), 57)]
    return b'"base64:type%d:%b"' % (kind, b"\\n".join(lines))  # MySQL breaks its base64 into lines of 76 characters


def _moment(kind: int, packed: int) -> bytes:
    sign, packed = (b"-", -packed) if packed < 0 else (b"", packed)
    whole, micros = packed >> 24, packed & 0xFFFFFF
    clock = b"%02d:%02d:%02d.%06d" % (
        whole >> 12 & (0x3FF if kind == TIME else 31),
        whole >> 6 & 63,
        whole & 63,
        micros,
    )
    if kind == TIME:
        return sign + clock
    year, month = divmod(whole >> 22, 13)
    day = b"%04d-%02d-%02d" % (year, month, whole >> 17 & 31)
    return day if kind == DATE else day + b" " + clock


def double(value: float) -> bytes:
    """The shortest digits that read back as the same number, laid out as MySQL does (dtoa.cc, my_gcvt)."""
    mantissa, _, power = f"{value!r}".partition("e")
    sign = "-" if mantissa.startswith("-") else ""
    whole, _, behind = mantissa.lstrip("-").partition(".")
    digits = (whole + behind).lstrip("0")
    point = len(whole) + int(power or 0) - (len(whole + behind) - len(digits))  # of 0.digits
    digits = digits.rstrip("0")
    if not digits:
        return f"{sign}0.0".encode()
    if -15 < point <= max(15, len(digits) - 1):
        return (sign + _fixed(digits, point)).encode()
    tail = "." + digits[1:] if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{tail}e{point - 1}".encode()


def _fixed(digits: str, point: int) -> str:
    if point <= 0:
        return "0." + "0" * -point + digits
    return digits[:point].ljust(point, "0") + "." + (digits[point:] or "0")
