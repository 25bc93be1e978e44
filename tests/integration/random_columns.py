"""Hypothesis strategies: the types of a server, with random values as SQL literals."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from contract.types import INEXACT
from stack.database import Database

Literals = SearchStrategy[str]
CHARSETS = (
    "utf8mb4", "utf8mb3", "latin1", "latin2", "gbk", "big5", "sjis", "cp932", "euckr", "gb2312", "ujis", "eucjpms",
    "ucs2", "utf16", "utf16le", "utf32", "cp1251", "cp1256", "koi8u", "greek", "hebrew", "tis620", "cp850", "armscii8",
)  # fmt: skip
# Characters of many sets, controls and what JSON escapes.
SAMPLE = "\0\x01\x08\t\n\x0b\f\r\x1a\x1f\"\\/'% aZ~\x7f£é€ßŁžПриїαΩשלاไ漢字汉한글ｱ＼〜～−－¥‾①Ⅲ髙纊\ue000\ufffd😀𠀀"
TEXTS = st.text(st.one_of(st.sampled_from(SAMPLE), st.characters(exclude_categories=["Cs"])), max_size=40)
# What an ENUM or a SET of a character set may have in its members: letters of its own, with bytes that SQL takes for
# something else, and of two units. A letter that it lacks would be refused, or a question mark.
LETTERS = {
    "utf8mb4": "äßЖ漢😀", "latin1": "äß€Ÿ", "latin2": "ŁžßÉ", "gbk": "北漢Ж誠乗", "big5": "漢功許α", "sjis": "漢ソ表ｱЖ",
    "cp932": "漢ソ表ｱ①", "euckr": "한글漢Ж", "gb2312": "北京Жβ", "ujis": "漢あｱЖ", "eucjpms": "漢あｱ①", "ucs2": "äЖ漢✜",
    "utf16": "äЖ漢😀✜", "utf16le": "äЖ漢😀", "utf32": "äЖ漢😀", "cp1251": "Приїя", "cp1256": "سلام", "koi8r": "Приёя",
    "koi8u": "ПриїЮ", "greek": "αβΩώ", "hebrew": "שלאת", "tis620": "ไทย", "cp850": "äßéÑ", "armscii8": "Աբգ",
}  # fmt: skip
BYTES = st.binary(max_size=60)
INTEGERS = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}
PATHS = ("$", "$[0]", "$[1]", "$[last]", "$.a", "$.b", '$."a b"', "$.a[0]", "$.a.b", "$[0].a")
LAST = datetime(2038, 1, 19, 3, 14, 7)  # of a TIMESTAMP


@dataclass(frozen=True)
class Kind:
    """A column's type as it is spelled, and its values."""

    spelled: str
    literals: Literals

    @property
    def name(self) -> str:
        return self.spelled.partition("(")[0].partition(" ")[0]

    @property
    def prefix(self) -> str:
        """Whether a primary key takes the column: none of it, as a whole, or a prefix that it `must` or `may` have."""
        if self.name in (*INEXACT, "json") or "COMPRESSED" in self.spelled:
            return "none"
        if self.name.endswith(("text", "blob")):
            return "must"
        return "may" if self.name.endswith(("char", "binary")) else "whole"


def kinds_of(server: Database) -> list[SearchStrategy[Kind]]:
    found = [_integers(), _decimals(), _floats(), _bits(), _days(), _times(), _moments(), _texts(), _bytes(), _chosen()]
    if server.flavor == "mariadb":
        return [*found, _mariadb(), _geometries(nested=False)]
    return [*found, _documents(), _geometries(nested=True), *([_vectors()] if server.name == "mysql" else [])]


def _kind(spelled: str, literals: Literals) -> SearchStrategy[Kind]:
    return st.just(Kind(spelled, literals))


def quoted(text: str) -> str:
    return f"_utf8mb4 x'{text.encode().hex()}'"


def _hex(raw: bytes) -> str:
    return f"x'{raw.hex()}'"


def _integers() -> SearchStrategy[Kind]:
    def of(name: str, unsigned: bool) -> SearchStrategy[Kind]:
        bits = INTEGERS[name]
        low, high = (0, 2**bits - 1) if unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        return _kind(name + " unsigned" * unsigned, st.integers(low, high).map(str))

    years = st.one_of(st.just(0), st.integers(1901, 2155)).map(str)
    return st.one_of(
        st.tuples(st.sampled_from(list(INTEGERS)), st.booleans()).flatmap(lambda x: of(*x)), _kind("year", years)
    )


def _decimals() -> SearchStrategy[Kind]:
    def of(precision: int, scale: int) -> SearchStrategy[Kind]:
        limit = 10**precision - 1
        numbers = st.integers(-limit, limit).map(
            lambda n: f"{'-' * (n < 0)}{abs(n) // 10**scale}.{abs(n) % 10**scale:0{scale}d}"
        )
        return _kind(
            f"decimal({precision},{scale})", numbers.map(lambda text: text.rstrip(".") if scale else text.split(".")[0])
        )

    sizes = st.integers(1, 65).flatmap(lambda p: st.tuples(st.just(p), st.integers(0, min(p, 30))))
    return sizes.flatmap(lambda size: of(*size))


def _floats() -> SearchStrategy[Kind]:
    """Of all sizes, and many of those near one: a server's text of them has the longest row of digits."""
    near = st.builds(lambda digits, power: digits * 10.0**power, st.floats(-10, 10), st.integers(-20, 20))
    singles = st.one_of(st.floats(width=32, allow_nan=False, allow_infinity=False), near).map(_literal)
    doubles = st.one_of(st.floats(allow_nan=False, allow_infinity=False), near).map(_literal)
    return st.one_of(_kind("float", singles), _kind("double", doubles))


def _literal(x: float) -> str:
    return repr(x) if "e" in repr(x) else f"{x!r}e0"


def _bits() -> SearchStrategy[Kind]:
    return st.integers(1, 64).flatmap(lambda n: _kind(f"bit({n})", st.integers(0, 2**n - 1).map(str)))


def _day() -> SearchStrategy[str]:
    """Zero, partial, and real ones."""
    parts = st.tuples(st.integers(0, 9999), st.integers(0, 12), st.integers(0, 28))
    partial = parts.map(lambda d: f"{d[0]:04d}-{d[1]:02d}-{d[2]:02d}")
    return st.one_of(st.just("0000-00-00"), partial, st.dates().map(str))


def _clock(hours: int, fsp: int) -> SearchStrategy[str]:
    parts = st.tuples(st.integers(0, hours), st.integers(0, 59), st.integers(0, 59), st.integers(0, 10**fsp - 1))
    return parts.map(lambda t: f"{t[0]:02d}:{t[1]:02d}:{t[2]:02d}" + (f".{t[3]:0{fsp}d}" if fsp else ""))


def _days() -> SearchStrategy[Kind]:
    return _kind("date", _day().map(lambda day: f"'{day}'"))


def _times() -> SearchStrategy[Kind]:
    def of(fsp: int) -> SearchStrategy[Kind]:
        times = st.tuples(st.sampled_from(["", "-"]), _clock(838, fsp)).map(lambda t: f"'{t[0]}{t[1]}'")
        return _kind(f"time({fsp})", times)

    return st.integers(0, 6).flatmap(of)


def _moments() -> SearchStrategy[Kind]:
    def of(fsp: int) -> SearchStrategy[Kind]:
        moments = st.tuples(_day(), _clock(23, fsp)).map(lambda t: f"'{t[0]} {t[1]}'")
        seconds = st.datetimes(datetime(1970, 1, 1, 0, 0, 1), LAST).map(lambda at: at.isoformat(" ", "microseconds"))
        stamps = st.one_of(st.sampled_from(["0000-00-00 00:00:00.000000", f"{LAST}.000000"]), seconds)
        stamps = stamps.map(lambda text: "'" + text[: 20 + fsp].rstrip(".") + "'")
        return st.one_of(_kind(f"datetime({fsp})", moments), _kind(f"timestamp({fsp})", stamps))

    return st.integers(0, 6).flatmap(of)


def _texts() -> SearchStrategy[Kind]:
    charset = st.sampled_from(CHARSETS)
    spelled = st.sampled_from(["char(40)", "varchar(40)", "varchar(300)", "tinytext", "text", "mediumtext", "longtext"])
    return st.builds(lambda kind, name: Kind(f"{kind} CHARACTER SET {name}", TEXTS.map(quoted)), spelled, charset)


def _bytes() -> SearchStrategy[Kind]:
    spelled = ["binary(60)", "varbinary(60)", "varbinary(300)", "tinyblob", "blob", "mediumblob", "longblob"]
    return st.sampled_from(spelled).flatmap(lambda kind: _kind(kind, BYTES.map(_hex)))


def _chosen() -> SearchStrategy[Kind]:
    """ENUM and SET. A member may hold a comma, but for a SET's; equal ones, blanks at the end apart, are none."""

    def of(kind: str, charset: str, members: Sequence[str]) -> SearchStrategy[Kind]:
        listed = ", ".join("'" + member.replace("\\", "\\\\").replace("'", "''") + "'" for member in members)
        size = len(members)
        numbers = st.integers(0, size if kind == "enum" else 2**size - 1).map(str)
        return _kind(f"{kind}({listed}) CHARACTER SET {charset} COLLATE {charset}_bin", numbers)

    def made(kind: str, charset: str) -> SearchStrategy[Kind]:
        letters = "abc'\"\\ " + "," * (kind == "enum") + LETTERS[charset] * 2
        word = st.text(st.sampled_from(letters), min_size=1, max_size=6).map(lambda text: text + "z")
        members = st.lists(word, min_size=1, max_size=64, unique=True)
        return members.flatmap(lambda found: of(kind, charset, found))

    kinds = st.tuples(st.sampled_from(["enum", "set"]), st.sampled_from(list(LETTERS)))
    return kinds.flatmap(lambda chosen: made(*chosen))


def _documents() -> SearchStrategy[Kind]:
    numbers = st.one_of(st.integers(-(2**63), 2**64 - 1), st.floats(allow_nan=False, allow_infinity=False))
    leaves = st.one_of(st.none(), st.booleans(), numbers, TEXTS)
    keys = st.one_of(st.sampled_from(["a", "b", "a b", ""]), TEXTS)
    nested: Callable[[SearchStrategy[Any]], SearchStrategy[Any]] = lambda inner: st.one_of(  # noqa: E731
        st.lists(inner, max_size=5), st.dictionaries(keys, inner, max_size=5)
    )
    texts = st.recursive(leaves, nested, max_leaves=20).map(lambda value: f"cast({quoted(json.dumps(value))} as json)")
    opaque = ["cast(-1.50 as decimal(10,2))", "date'2024-02-29'", "cast('-838:59:59.000001' as time(6))",
              "timestamp'2024-01-01 00:00:00.5'", "x'00ff'", "cast(18446744073709551615 as unsigned)"]  # fmt: skip
    return _kind("json", st.one_of(texts, st.sampled_from(opaque).map(lambda value: f"json_array({value}, {value})")))


def _geometries(nested: bool) -> SearchStrategy[Kind]:
    """`nested`: with collections in collections, which are NULL to MariaDB."""
    number = st.floats(-90, 90).map(lambda x: f"{x:.6f}")
    point = st.tuples(number, number).map(" ".join)
    line = st.lists(point, min_size=2, max_size=5, unique=True).map(", ".join)
    ring = st.lists(point, min_size=3, max_size=5, unique=True).map(lambda found: ", ".join([*found, found[0]]))
    polygon = _several(ring.map("({})".format))
    bodies = {
        "point": point,
        "linestring": line,
        "polygon": polygon,
        "multipoint": _several(point),
        "multilinestring": _several(line.map("({})".format)),
        "multipolygon": _several(polygon.map("({})".format)),
    }
    texts = {kind: body.map(f"{kind}({{}})".format) for kind, body in bodies.items()}
    empty = st.just("geometrycollection empty")
    parts = st.recursive(st.one_of(empty, *texts.values()), _collection) if nested else st.one_of(*texts.values())
    texts["geometrycollection"] = st.one_of(empty, _collection(parts))
    texts["geometry"] = st.one_of(*texts.values())
    srid = st.sampled_from([0, 4326])

    def of(kind: str) -> SearchStrategy[Kind]:
        return _kind(kind, st.builds(lambda text, s: f"st_geomfromtext('{text}', {s})", texts[kind], srid))

    return st.sampled_from(list(texts)).flatmap(of)


def _several(parts: SearchStrategy[str]) -> SearchStrategy[str]:
    return st.lists(parts, min_size=1, max_size=3).map(", ".join)


def _collection(parts: SearchStrategy[str]) -> SearchStrategy[str]:
    return _several(parts).map("geometrycollection({})".format)


def _vectors() -> SearchStrategy[Kind]:
    element = st.floats(width=32, allow_nan=False, allow_infinity=False, allow_subnormal=False)

    def of(size: int) -> SearchStrategy[Kind]:
        vectors = st.lists(element, min_size=size, max_size=size)
        return _kind(f"vector({size})", vectors.map(lambda found: f"to_vector('{json.dumps(found)}')"))

    return st.integers(1, 12).flatmap(of)


def _mariadb() -> SearchStrategy[Kind]:
    sixteen = st.one_of(
        st.binary(min_size=16, max_size=16),
        st.lists(st.sampled_from([0, 0, 1, 32, 255]), min_size=16, max_size=16).map(bytes),
    )
    words = sixteen.map(lambda raw: ":".join(raw[at : at + 2].hex() for at in range(0, 16, 2)))
    four = st.lists(st.sampled_from([0, 1, 32, 127, 255]), min_size=4, max_size=4)
    return st.one_of(
        _kind("uuid", st.uuids().map(lambda value: f"'{value}'")),
        _kind("inet6", words.map(lambda text: f"'{text}'")),
        _kind("inet4", four.map(lambda parts: f"'{'.'.join(map(str, parts))}'")),
        _kind("binary(16)", sixteen.map(_hex)),
        _kind("binary(4)", four.map(bytes).map(_hex)),
        _kind("varchar(300) COMPRESSED CHARACTER SET utf8mb4", TEXTS.map(lambda text: quoted(text * 7))),
        _kind("mediumblob COMPRESSED", BYTES.map(lambda raw: _hex(raw * 9))),
        _kind("text COMPRESSED CHARACTER SET gbk", TEXTS.map(lambda text: quoted(text * 3))),
        _kind(
            "json",
            st.recursive(TEXTS, lambda inner: st.lists(inner, max_size=3)).map(lambda value: quoted(json.dumps(value))),
        ),
    )
