"""THE type table: MySQL type -> wire value -> Spark type -> SQL cast of a snapshot -> checksum text.

Wire values (contracts.md, "exact before handy"): `number` a JSON number with all its digits, `text` a JSON
string, `bool`, `floating` the shortest round trip. Every part asks this table and nothing else; a type that is
not in it stops with UnknownTypeError.

`snapshot_sql` gives, inside the server with the session in UTC and group_concat_max_len at its greatest, a utf8mb4
text that is the wire value as JSON, or SQL NULL. `checksum_sql` and `checksum_spark` give texts that are equal exactly
when the stored values are; they are None for a VECTOR, whose floats Spark compares. A text that the server makes NULL
because it is longer than max_allowed_packet must never pass for a NULL value: `missing_sql` alone says which values
are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from contract import float_sql
from contract.schema import Column
from contract.wire_sql import base64, char, char_of, elements, quote, quote_in_mariadb, signed


class UnknownTypeError(ValueError):
    """A column whose type is not in the table."""


@dataclass(frozen=True)
class Type:
    """`spark`: the lake's column type (a DDL word). `wire`: the type its wire value has in Spark's
    from_json, from which `parse` (an expression over the named column) makes the lake's value. `missing_sql`: the
    condition under which the lake has no value. `text_sql`: the wire value without quotes and escapes; None where
    it has parts. `number_sql`: the value as a number that is exactly the wire value; None where a text is needed."""

    wire: str
    spark: str
    parse: Callable[[str], str]
    snapshot_sql: Callable[[str], str]
    checksum_sql: Callable[[str], str] | None
    checksum_spark: Callable[[str], str] | None
    missing_sql: Callable[[str], str] = "{} is null".format
    text_sql: Callable[[str], str] | None = None
    number_sql: Callable[[str], str] | None = None

    @property
    def free(self) -> bool:
        """Whether its checksum text may be any text, also such as stands between two of them."""
        return self.spark == "string" and self.checksum_spark is _same

    def column_sql(self, x: str) -> str:
        """The wire value in a column of its own: as a number, which costs its reader much less than a text, or as a
        text without JSON around it, where it has no parts."""
        return (self.number_sql or self.text_sql or self.snapshot_sql)(x)


def of(column: Column, flavor: str = "mysql") -> Type:
    """The row of a column's type. `flavor`: whose SQL it is to give. Raises UnknownTypeError."""
    if not known(column.type, flavor):
        raise UnknownTypeError(f"column {column.name}: type {column.type!r} is not in contract/types.py")
    made = TABLE[column.type](column)
    if column.unfit == "string" and may_not_fit(column):
        return _as_text(made)
    if flavor == "mysql" and column.charset == "ascii":
        return _of_ascii(made)
    if flavor == "mariadb" and made.snapshot_sql is quote:
        return replace(made, snapshot_sql=quote_in_mariadb)
    return made


def _of_ascii(made: Type) -> Type:
    """MySQL 8.0 keeps bytes that are no ASCII, and copies them into a utf8mb4 text as they are; by way of another
    character set each is the "?" of every other conversion."""
    asked, checked, told = made.snapshot_sql, made.checksum_sql, made.text_sql
    way = "convert({} using latin1)".format
    return replace(
        made,
        snapshot_sql=lambda x: asked(way(x)),
        checksum_sql=checked and (lambda x: checked(way(x))),
        text_sql=told and (lambda x: told(way(x))),
    )


def _as_text(made: Type) -> Type:
    """The wire value itself, so that nothing of it is lost."""
    return replace(
        made,
        spark="string",
        parse=_same,
        missing_sql=Type.missing_sql,
        checksum_sql=made.text_sql,
        checksum_spark=_same,
    )


def may_not_fit(column: Column) -> bool:
    """Whether the column may have values that the lake's type for it cannot hold: zero and partial dates. A DECIMAL of
    more than 38 digits and TIME are texts in the lake in any case, which hold all."""
    return column.type in MOMENTS and column.mask is None


def known(kind: str, flavor: str = "mysql") -> bool:
    """Whether the table has DATA_TYPE `kind` of the flavor."""
    return SPELLINGS.get(kind, kind) in TABLE and kind not in LACKING.get(flavor, ())


def _same(x: str) -> str:
    return x


def _string(x: str) -> str:
    return f"cast({x} as string)"


_signed = "cast({} as signed)".format  # of an unsigned type JDBC's reader would make a decimal


def _integer(column: Column) -> Type:
    wide = column.type == "bigint" and column.unsigned
    spark = "decimal(20,0)" if wide else "bigint"
    digits = "cast({0}+0 as char character set utf8mb4)".format  # a sum has no ZEROFILL
    return Type(spark, spark, _same, digits, digits, _string, text_sql=digits, number_sql=None if wide else _signed)


def _fixed(spark: str, scale: int) -> Callable[[str], str]:
    """The text of a number with so many digits behind the point, where the lake's column is of another type and the
    value has no more of them: a column that was widened is so in the lake from the next change of a row on. Spark knows
    a column's type before it reads a row, so where it is the same this costs nothing."""

    def text(x: str) -> str:
        plain = f"cast({x} as string)"
        bare = f"trim(trailing '0' from if(instr({plain}, '.') > 0, {plain}, concat({plain}, '.')))"
        behind = f"(length({bare}) - instr({bare}, '.'))"
        filled = f"trim(trailing '.' from rpad({bare}, length({bare}) - {behind} + {scale}, '0'))"
        return f"if(typeof({x}) = '{spark}' or {behind} > {scale}, {plain}, {filled})"

    return text


def _year(column: Column) -> Type:
    digits = "cast(cast({} as unsigned) as char character set utf8mb4)".format
    return Type("bigint", "bigint", _same, digits, digits, _string, text_sql=digits, number_sql=_signed)


def _decimal(column: Column) -> Type:
    precision, scale = column.precision or 10, column.scale or 0
    spark = f"decimal({precision},{scale})" if precision <= 38 else "string"
    plain = f"cast({{}} as decimal({precision},{scale}))".format  # without ZEROFILL
    return Type(
        "string",
        spark,
        lambda x: f"cast({x} as {spark})",
        lambda x: quote(plain(x)),
        lambda x: char(plain(x)),
        _fixed(spark, scale) if precision <= 38 else _string,
        text_sql=lambda x: char_of(plain(x), precision + 3),  # a sign, a zero and a point
    )


def _floating(column: Column) -> Type:
    # Through DOUBLE: MySQL's text of a FLOAT has 6 digits, of a DOUBLE the shortest round trip. Times one, for MySQL
    # before 8.0.17 has no cast to it, and minus zero plus zero would lose its sign. The text of a DOUBLE that is no
    # column has 22 characters at most, which may be too few for one that is no FLOAT.
    spark = "float" if column.type == "float" else "double"
    times_one = "({} * 1e0)".format
    wide = times_one if column.type == "float" else _same

    def text(x: str) -> str:
        return char_of(wide(x), 48)  # 35 at most: a sign, `0.`, 15 zeros and 17 digits; more zeros become an exponent

    return Type(
        "double",
        spark,
        lambda x: f"cast({x} as {spark})",
        lambda x: signed(text(x)),
        lambda x: float_sql.source_text(times_one(x)),
        float_sql.spark_text,
        text_sql=text,
        number_sql=wide,
    )


def rounded(made: Type) -> Type:
    """Of a DOUBLE(10,2): its own text has two digits behind the point, while what is stored, and so in the binlog, may
    be 1.5899999999999999, or any other value that a copy of another column left there."""

    def text(x: str) -> str:
        own = char_of(x, 310)
        size = f"if(abs({x}) < 1e99, {char_of(f'abs({x}) * 1e0', 48)}, {char_of(f'abs({x})', 310)})"
        return f"concat(if({own} like '-%', '-', ''), {size})"

    return replace(made, snapshot_sql=lambda x: signed(text(x)), text_sql=text, number_sql=None)


def _text(column: Column) -> Type:
    return Type("string", "string", _same, quote, char, _same, text_sql=char)


def _digest(x: str) -> str:
    """Short for whatever length: MySQL makes no text that is longer than max_allowed_packet."""
    return f"sha2({x}, 256)"


def _long_text(column: Column) -> Type:
    return replace(_text(column), checksum_sql=lambda x: _digest(char(x)), checksum_spark=_digest)


def _binary(column: Column) -> Type:
    return Type(
        "string",
        "binary",
        lambda x: f"unbase64({x})",
        lambda x: f"concat('\"', {base64(x)}, '\"')",
        _digest,
        _digest,
        text_sql=base64,
    )


def _bit(column: Column) -> Type:
    if (column.length or 1) == 1:
        number = "cast({} as unsigned)".format
        truth = "if({0} is null, null, if({0}, 'true', 'false'))".format
        return Type(
            "boolean",
            "boolean",
            _same,
            truth,
            lambda x: char(number(x)),
            lambda x: f"cast(cast({x} as int) as string)",
            text_sql=truth,
        )
    # A longer one reads as a binary string of its full width; its hex is a number's, without leading zeros.
    width = ((column.length or 1) + 7) // 8 * 2
    return replace(
        _binary(column),
        checksum_sql=lambda x: f"lpad(lower(hex({x})), {width}, '0')",
        checksum_spark=lambda x: f"lower(hex({x}))",
    )


MOMENTS = ("date", "datetime", "timestamp")
# What the lake has no value for (a zero or partial date, or a day that its month does not have, which sql_mode
# ALLOW_INVALID_DATES lets in) is null there, and so it is in the checksum.
NOT_WHOLE = (
    "({0} is null or month({0}) = 0 or day({0}) = 0 or (day({0}) > 28 and day({0}) > case when month({0}) in "
    "(4, 6, 9, 11) then 30 when month({0}) <> 2 then 31 when mod(year({0}), 4) <> 0 or (mod(year({0}), 100) = 0 and "
    "mod(year({0}), 400) <> 0) then 28 else 29 end))"
).format


def _date(column: Column) -> Type:
    return Type("string", "date", lambda x: f"try_cast({x} as date)", quote, char, _string, NOT_WHOLE, char)


def _time(column: Column) -> Type:
    return _text(column)


def _moment(column: Column) -> Callable[[str], str]:
    """Spark's text of a moment ends with its last digit that is not 0; MySQL's has all of the type's."""
    if not column.fsp:
        return _string
    width = len("yyyy-MM-dd HH:mm:ss.") + column.fsp
    dotted = "if(length(cast({0} as string)) = 19, concat(cast({0} as string), '.'), cast({0} as string))".format
    return lambda x: f"rpad({dotted(x)}, {width}, '0')"


def _datetime(column: Column) -> Type:
    parse = "try_cast({} as timestamp_ntz)".format
    return Type("string", "timestamp_ntz", parse, quote, char, _moment(column), NOT_WHOLE, char)


def _timestamp(column: Column) -> Type:
    iso = "concat(replace(cast({} as char character set utf8mb4),' ','T'),'Z')".format
    parse = "try_cast({} as timestamp)".format
    return Type("string", "timestamp", parse, lambda x: f"json_quote({iso(x)})", char, _moment(column), NOT_WHOLE, iso)


def _geometry(column: Column) -> Type:
    """The bytes that the server keeps: SRID, then WKB with x before y whatever the axes of the SRS (ST_AsBinary would
    turn them). MariaDB keeps no bytes at all where INSERT IGNORE puts NULL into a column that has none."""
    wkb, srid = "substr({}, 5)".format, "cast(ifnull(st_srid({}), 0) as char character set utf8mb4)".format
    made = "named_struct('wkb', unbase64({0}.wkb), 'srid', {0}.srid)".format
    return Type(
        "struct<wkb:string,srid:bigint>",
        "struct<wkb:binary,srid:bigint>",
        lambda x: f"if({x} is null, null, {made(x)})",
        lambda x: f"""concat('{{"wkb":"', {base64(wkb(x))}, '","srid":', {srid(x)}, '}}')""",
        lambda x: f"concat({srid(x)}, ' ', {_digest(wkb(x))})",
        lambda x: f"concat(cast({x}.srid as string), ' ', {_digest(f'{x}.wkb')})",
    )


def _vector(column: Column) -> Type:
    """Floats, made of their bits: the server's own text of a VECTOR has six digits of each."""
    return Type("array<double>", "array<float>", lambda x: f"cast({x} as array<float>)", elements, None, None)


GEOMETRIES = (
    "geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon", "geometrycollection",
)  # fmt: skip
SPELLINGS = {"geomcollection": "geometrycollection"}  # DATA_TYPE of MySQL 8 -> this table's name
LACKING = {"mariadb": ("vector",)}  # MariaDB has it from 11.7 on, and in its binlog it is no type of its own
# Not for a primary key: texts of a float from the snapshot and the stream are only the same number; of a geometry a key
# holds but the beginning.
INEXACT = ("float", "double", "vector", *GEOMETRIES)
TABLE: dict[str, Callable[[Column], Type]] = {
    **dict.fromkeys(("tinyint", "smallint", "mediumint", "int", "bigint"), _integer),
    "year": _year,
    "decimal": _decimal,
    **dict.fromkeys(("float", "double"), _floating),
    **dict.fromkeys(("char", "varchar", "tinytext", "enum", "set", "uuid", "inet4", "inet6"), _text),
    **dict.fromkeys(("text", "mediumtext", "longtext", "json"), _long_text),
    **dict.fromkeys(("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"), _binary),
    "bit": _bit,
    "date": _date,
    "time": _time,
    "datetime": _datetime,
    "timestamp": _timestamp,
    **dict.fromkeys(GEOMETRIES, _geometry),
    "vector": _vector,
}
