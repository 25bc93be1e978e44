"""A column's text as UTF-8 bytes, whatever its character set, exactly as MySQL converts it.

In: a collation's number from a TABLE_MAP. Out: a `Charset`. Python's codecs do the work; where the servers'
own tables differ (tests/integration/test_decoder_charsets.py compares every code with them), `fixes` and `codes` say
how. Raises UnicodeDecodeError or ValueError for bytes that are no text, NoTextError for what its server alone takes
for one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial

from streamer.protocol.charset_tables import (
    ARMSCII8,
    BIG5,
    DEC8,
    EUCJPMS,
    GEOSTD8,
    KEYBCS2,
    LATIN1,
    SWE7,
    UJIS,
)

Decode = Callable[[bytes], str]
NOT_MAPPED = "?"  # what MySQL converts a code to that has no Unicode
NO_CODES: Mapping[bytes, str] = {}
CHARACTERS = 10_000  # of a character set, kept
ASCII = bytes(code if code < 0x80 else ord(NOT_MAPPED) for code in range(256))  # as servers convert what is none
_SURROGATE = frozenset(range(0xD8, 0xE0))  # first bytes
TWO = dict.fromkeys(range(0x81, 0xFF), 2)
SJIS = dict.fromkeys((*range(0x81, 0xA0), *range(0xE0, 0xFD)), 2)
EUC = dict.fromkeys((0x8E, *range(0xA1, 0xFF)), 2) | {0x8F: 3}


class NoTextError(Exception):
    """A value that its server keeps as text of the character set, and that has no Unicode."""


@dataclass(frozen=True)
class Charset:
    """`width`: bytes of its longest character. `decode` is None where the bytes are UTF-8 already."""

    name: str
    width: int
    decode: Decode | None = field(compare=False)

    def text(self, raw: bytes) -> str:
        return raw.decode() if self.decode is None else self.decode(raw)


def _codec(name: str, fixes: Mapping[str, str] | None = None) -> Decode:
    table = str.maketrans(dict(fixes)) if fixes else None

    def decode(raw: bytes) -> str:
        text = raw.decode(name)
        return text.translate(table) if table else text

    return decode


def _wide(
    name: str,
    fixes: Mapping[str, str] | None = None,
    sizes: Mapping[int, int] = TWO,
    codes: Mapping[bytes, str] = NO_CODES,
) -> Decode:
    """A multi-byte codec. `sizes`: bytes of a character by its first one, where that is more than one byte. `codes`:
    what Python does not know or takes for something else. What has no Unicode is one "?"."""
    whole = _codec(name, fixes)
    taken_for = {char for char in map(partial(_or_none, whole), codes) if char}

    def decode(raw: bytes) -> str:
        try:
            text = whole(raw)
        except UnicodeDecodeError:
            return "".join(map(char, _characters(raw, sizes)))
        if taken_for and not taken_for.isdisjoint(text):
            return "".join(map(char, _characters(raw, sizes)))
        return text

    @lru_cache(CHARACTERS)
    def char(code: bytes) -> str:
        return codes.get(code) or _or_none(whole, code) or NOT_MAPPED

    return decode


def _or_none(decode: Decode, code: bytes) -> str | None:
    try:
        return decode(code)
    except UnicodeDecodeError:
        return None


def _characters(raw: bytes, sizes: Mapping[int, int]) -> Iterator[bytes]:
    o = 0
    while o < len(raw):
        end = o + sizes.get(raw[o], 1)
        if end > len(raw):
            raise ValueError("a text that ends within a character")
        yield raw[o:end]
        o = end


def _ascii(raw: bytes) -> str:
    return raw.translate(ASCII).decode()


def _ucs2(raw: bytes) -> str:
    """Raises NoTextError for half of a character beyond 65,535, which its servers take for a character."""
    if len(raw) % 2:
        raise ValueError("a text that ends within a character")
    if not _SURROGATE.isdisjoint(raw[::2]):
        raise NoTextError("ucs2")
    return raw.decode("utf-16-be")


def _lenient(name: str, fixes: Mapping[str, str] | None = None, not_mapped: str = NOT_MAPPED) -> Decode:
    """A single-byte codec where MySQL converts each code that Python does not know to one character."""
    one = _codec(name, fixes)

    def char(code: int) -> str:
        try:
            return one(bytes((code,)))
        except UnicodeDecodeError:
            return not_mapped

    return _table("".join(map(char, range(256))))


def _table(chars: str) -> Decode:
    return lambda raw: "".join([chars[byte] for byte in raw])


CP1256 = dict.fromkeys("ٹڈکڑںھہے", NOT_MAPPED)
GREEK = {"‘": "ʽ", "’": "ʼ", "€": "?", "₯": "?", "ͺ": "?"}
EUCJPMS_FIXES = {"〜": "～", "‖": "∥", "−": "－", "¢": "￠", "£": "￡", "¬": "￢", "¦": "￤"}

_UTF8 = None
CHARSETS: tuple[tuple[str, int, Decode | None, tuple[range, ...]], ...] = (
    ("utf8mb4", 4, _UTF8, (range(45, 47), range(224, 248), range(255, 324))),
    ("utf8mb3", 3, _UTF8, (range(33, 34), range(76, 77), range(83, 84), range(192, 216), range(223, 224))),
    ("ascii", 1, _ascii, (range(11, 12), range(65, 66))),
    (
        "latin1",
        1,
        _table(LATIN1),
        (range(5, 6), range(8, 9), range(15, 16), range(31, 32), range(47, 50), range(94, 95)),
    ),
    ("binary", 1, None, (range(63, 64),)),
    ("ucs2", 2, _ucs2, (range(35, 36), range(90, 91), range(128, 152), range(159, 160))),
    ("utf16", 4, _codec("utf-16-be"), (range(54, 56), range(101, 125))),
    ("utf16le", 4, _codec("utf-16-le"), (range(56, 57), range(62, 63))),
    ("utf32", 4, _codec("utf-32-be"), (range(60, 62), range(160, 184))),
    ("gb18030", 4, _codec("gb18030", {"\ue7c7": "ḿ", "ḿ": "\ue7c7"}), (range(248, 251),)),
    ("big5", 2, _wide("big5", codes=BIG5), (range(1, 2), range(84, 85))),
    ("gb2312", 2, _wide("gb2312"), (range(24, 25), range(86, 87))),
    ("gbk", 2, _wide("gbk"), (range(28, 29), range(87, 88))),
    ("euckr", 2, _wide("cp949"), (range(19, 20), range(85, 86))),
    ("sjis", 2, _wide("shift_jis", {"＼": "\\"}, SJIS), (range(13, 14), range(88, 89))),
    ("cp932", 2, _wide("cp932", None, SJIS), (range(95, 97),)),
    ("ujis", 3, _wide("euc_jp", {"＼": "\\"}, EUC, UJIS), (range(12, 13), range(91, 92))),
    ("eucjpms", 3, _wide("euc_jp", EUCJPMS_FIXES, EUC, EUCJPMS), (range(97, 99),)),
    ("latin2", 1, _codec("iso8859_2"), (range(2, 3), range(9, 10), range(21, 22), range(27, 28), range(77, 78))),
    ("latin5", 1, _codec("iso8859_9"), (range(30, 31), range(78, 79))),
    ("latin7", 1, _codec("iso8859_13"), (range(20, 21), range(41, 43), range(79, 80))),
    ("cp850", 1, _codec("cp850"), (range(4, 5), range(80, 81))),
    ("cp852", 1, _codec("cp852"), (range(40, 41), range(81, 82))),
    ("cp866", 1, _codec("cp866", {"№": "ⁿ", "¤": "²"}), (range(36, 37), range(68, 69))),
    ("cp1250", 1, _lenient("cp1250"), (range(26, 27), range(34, 35), range(44, 45), range(66, 67), range(99, 100))),
    ("cp1251", 1, _lenient("cp1251"), (range(14, 15), range(23, 24), range(50, 53))),
    ("cp1256", 1, _codec("cp1256", CP1256), (range(57, 58), range(67, 68))),
    ("cp1257", 1, _lenient("cp1257"), (range(29, 30), range(58, 60))),
    ("koi8r", 1, _codec("koi8_r"), (range(7, 8), range(74, 75))),
    ("koi8u", 1, _codec("koi8_u", {"∙": "•"}), (range(22, 23), range(75, 76))),
    ("hebrew", 1, _lenient("iso8859_8", {"¯": "‾"}), (range(16, 17), range(71, 72))),
    ("greek", 1, _lenient("iso8859_7", GREEK), (range(25, 26), range(70, 71))),
    ("tis620", 1, _lenient("tis_620", not_mapped="\ufffd"), (range(18, 19), range(89, 90))),
    ("macce", 1, _codec("mac_latin2"), (range(38, 39), range(43, 44))),
    ("macroman", 1, _codec("mac_roman"), (range(39, 40), range(53, 54))),
    ("hp8", 1, _lenient("hp_roman8"), (range(6, 7), range(72, 73))),
    ("dec8", 1, _table(DEC8), (range(3, 4), range(69, 70))),
    ("swe7", 1, _table(SWE7), (range(10, 11), range(82, 83))),
    ("armscii8", 1, _table(ARMSCII8), (range(32, 33), range(64, 65))),
    ("keybcs2", 1, _table(KEYBCS2), (range(37, 38), range(73, 74))),
    ("geostd8", 1, _table(GEOSTD8), (range(92, 94),)),
)
BY_COLLATION: dict[int, Charset] = {
    number: Charset(name, width, decode) for name, width, decode, spans in CHARSETS for span in spans for number in span
}
# MariaDB: a thousand and twenty-four more for the same without blank padding, and collations of its own.
MARIADB = (
    ("utf8mb3", range(576, 579)), ("utf8mb4", range(608, 611)), ("ucs2", range(640, 643)), ("utf16", range(672, 675)),
    ("utf32", range(736, 739)), ("utf8mb3", range(2048, 2304)), ("utf8mb4", range(2304, 2560)),
    ("ucs2", range(2560, 2816)), ("utf16", range(2816, 3072)), ("utf32", range(3072, 3328)),
)  # fmt: skip
BY_NAME = {charset.name: charset for charset in BY_COLLATION.values()}
BY_COLLATION |= {1024 + number: charset for number, charset in BY_COLLATION.items() if number < 256}
BY_COLLATION |= {number: BY_NAME[name] for name, numbers in MARIADB for number in numbers}
BINARY = BY_COLLATION[63]
