"""The edge values of every column type, as literals of SQL, for all that compare two ways to a value."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence

from contract.schema import Column
from stack.database import Database

MIN_TIMES = ("'-838:59:59'", "'838:59:59'", "'00:00:00'", "'-00:00:01'", "'24:00:00'", "'12:34:56'")
COLORS = ["blue", "it''s", "größe", "", 'quo"te', "back\\\\slash"]
MEMBERS = [f"m{n}" for n in range(64)]

# Column type, and the literals that are stored; NULL is stored besides.
CASES: dict[str, Sequence[str]] = {
    "tinyint": ("-128", "127", "0", "-1"),
    "tinyint unsigned": ("0", "255", "128"),
    "smallint": ("-32768", "32767", "0"),
    "smallint unsigned": ("0", "65535"),
    "mediumint": ("-8388608", "8388607", "-1", "0", "65536", "-65537"),
    "mediumint unsigned": ("0", "16777215", "8388608"),
    "int": ("-2147483648", "2147483647", "0"),
    "int unsigned": ("0", "4294967295"),
    "int(8) unsigned zerofill": ("0", "42", "4294967295"),
    "bigint": ("-9223372036854775808", "9223372036854775807", "0", "9007199254740993"),
    "bigint unsigned": ("0", "18446744073709551615", "9223372036854775808"),
    "bool": ("0", "1"),
    "year": ("0", "1901", "2155", "2026"),
    "decimal(1,0)": ("0", "9", "-9"),
    "decimal(5,2)": ("0", "-999.99", "999.99", "0.01", "-0.01", "-1"),
    "decimal(9,9)": ("0.123456789", "-0.000000001"),
    "decimal(10,0)": ("-9999999999", "1", "0"),
    "decimal(18,9)": ("123456789.987654321", "-123456789.000000001"),
    "decimal(20,1)": ("1234567890123456789.5", "-0.1", "100000000000000000.0"),
    "decimal(38,10)": ("-1234567890123456789012345678.0123456789",),
    "decimal(65,30)": (
        "99999999999999999999999999999999999.999999999999999999999999999999",
        "-99999999999999999999999999999999999.999999999999999999999999999999",
        "0.000000000000000000000000000001",
        "-10",
    ),
    "decimal(65,0)": ("9" * 65, "-1", "-" + "1" + "0" * 64),
    "decimal(12,2) unsigned zerofill": ("0", "7.5", "9999999999.99"),
    "float": (
        "0",
        "0.1",
        "-0.1",
        "3.4028235e38",
        "1.17549435e-38",
        "16777217",
        "1e-45",
        "123456.789",
        "1e10",
        "-0e0",
        "-7.1039005e-15",
        "-7.5849827e-6",
    ),
    "float unsigned": ("0", "1.5"),
    "float(7,2)": ("0", "-0e0", "1.59", "-35.83", "12345.67"),
    "double": (
        "0",
        "0.1",
        "-0.1",
        "1.7976931348623157e308",
        "2.2250738585072014e-308",
        "123456789012345680000",
        "-0e0",
        "-1.3287338771795252e-14",
        "-7.1039004857319486e-15",
        "-7.5849826704052335e-06",
    ),
    # As they are stored: 1.59 as 1.5899999999999999, and the like.
    "double(10,2)": ("0", "-0e0", "1.14", "1.59", "-1.59", "1.66", "35.83", "99999999.99"),
    "double(20,5) unsigned": ("1.00001", "7.12345", "35.8323", "123456789012.12345"),
    "bit(1)": ("b'0'", "b'1'"),
    "bit(7)": ("b'0'", "b'1010101'"),
    "bit(9)": ("b'100000001'",),
    "bit(64)": ("b'1'", "18446744073709551615", "0"),
    "date": ("'0000-00-00'", "'2024-00-10'", "'2024-02-00'", "'1000-01-01'", "'9999-12-31'", "'0001-01-01'"),
    "time": MIN_TIMES,
    **{
        f"time({n})": (*MIN_TIMES, f"'-838:59:58.{'9' * n}'", f"'00:00:00.{'0' * (n - 1)}1'", f"'-00:00:00.{'5' * n}'")
        for n in range(1, 7)
    },
    "datetime": ("'0000-00-00 00:00:00'", "'2024-00-00 23:59:59'", "'9999-12-31 23:59:59'", "'1000-01-01 00:00:00'"),
    **{
        f"datetime({n})": (
            f"'2026-07-31 16:00:00.{'1' * n}'",
            f"'9999-12-31 23:59:59.{'9' * n}'",
            "'0000-00-00 00:00:00'",
        )
        for n in range(1, 7)
    },
    "timestamp null": ("'0000-00-00 00:00:00'", "'1970-01-01 00:00:01'", "'2038-01-19 03:14:07'"),
    **{
        f"timestamp({n}) null": (f"'2026-03-29 01:30:00.{'7' * n}'", "'0000-00-00 00:00:00'", "'1970-01-01 00:00:01'")
        for n in range(1, 7)
    },
    "char(10)": ("''", "'abc'", "'   lead'", "'äöü€😀'"),
    "char(255)": ("repeat('ü', 255)", "'x'"),
    "varchar(20)": ("''", "'trail   '", "'tab\\tnl\\nquote\"back\\\\nul\\0x\\Z'", "'😀'", "'100%'", "char(127)"),
    "varchar(300)": ("repeat('€', 300)", "'short'"),
    "tinytext": ("'tiny'", "''"),
    "text": ("repeat('ab\"', 1000)",),
    "mediumtext": ("repeat('x', 70000)", "''"),
    "longtext": ("'long'",),
    "binary(5)": ("''", "'ab'", "x'0000'", "x'ff00ff0000'", "x'2020'"),
    "binary(255)": ("repeat('q', 255)", "''"),
    "varbinary(300)": ("x'00ff'", "''", "repeat(x'00', 300)"),
    "tinyblob": ("x'00'", "''"),
    "blob": ("repeat(x'fe', 1000)",),
    "mediumblob": ("repeat('a', 57)", "repeat('a', 58)"),
    "longblob": ("x'0d0a'",),
    "enum('{}')".format("','".join(COLORS)): tuple(f"'{color}'" for color in COLORS),
    "enum({})".format(",".join(f"'e{n}'" for n in range(300))): ("'e0'", "'e255'", "'e299'", "0"),
    "set('a','b','c')": ("''", "'a'", "'a,c'", "'c,b,a'"),
    "set({})".format(",".join(f"'{m}'" for m in MEMBERS[:20])): ("'m0,m19'", "''"),
    "set({})".format(",".join(f"'{m}'" for m in MEMBERS)): ("'m0,m63'", "''", "'{}'".format(",".join(MEMBERS))),
    "json": (
        "'null'",
        "'true'",
        "'[]'",
        "'{}'",
        "'\"\"'",
        "'-1'",
        "'18446744073709551615'",
        "'-9223372036854775808'",
        "'1.5'",
        "'1e0'",
        "'1e100'",
        "'-0.0'",
        "'0.1'",
        "'123456789012345680000'",
        "'1e-7'",
        "'1.0'",
        '\'{"bb": 1, "a": [1, 2, {"c": null}], "ccc": "x\\\\u0000\\\\"\\\\\\\\ü😀"}\'',
        "'[32767, 32768, 65535, 65536, -32769]'",
        "json_array(cast(1.50 as decimal(10,2)), date'2024-02-29', time'-01:02:03.5', timestamp'2024-01-01 00:00:00')",
        "json_array(cast('-838:59:59.000001' as time(6)), cast(-0.05 as decimal(30,20)), cast(x'00ff' as binary))",
        "json_array(repeat('x', 127), repeat('y', 128), repeat('z', 70000))",
        "json_array(cast(repeat('b', 57) as binary), cast(repeat('b', 58) as binary), b'101', cast(2020 as year))",
        "json_object('k', json_array(json_object('deep', json_array())))",
        "json_array(-2147483649, 4294967296, 2147483648)",
    ),
}
CHARSETS = {
    "latin1": ("'é€'", "x'81'", "x'8d9d'"),
    "utf8mb3": ("'é€'",),
    "ascii": ("'abc'",),
    "latin2": ("'łŁ'",),
    "ucs2": ("'é€漢'",),
    "utf16": ("'é€😀'",),
    "utf16le": ("'é😀'",),
    "utf32": ("'é😀'",),
    "gb18030": ("'漢字€😀'",),
    "gbk": ("'汉字'",),
    "gb2312": ("'汉字'",),
    "big5": ("'漢字'",),
    "sjis": ("'漢字カﾅ'", "x'815f'"),
    "cp932": ("'漢字～'", "x'8740'"),
    "ujis": ("'漢字'", "x'8fb0a1'", "x'8eb1'"),
    "eucjpms": ("'漢字～'",),
    "euckr": ("'한글똠'",),
    "cp1250": ("'řž€'",),
    "cp1251": ("'Привет'",),
    "cp1256": ("'سلام'",),
    "cp1257": ("'ąž'",),
    "koi8r": ("'Привет'",),
    "koi8u": ("'Їжак'", "x'95'"),
    "cp850": ("'éß'",),
    "cp852": ("'łž'",),
    "cp866": ("'Привет'", "x'fcfd'"),
    "greek": ("'αβγ'", "x'a1a2'"),
    "hebrew": ("'שלום'", "x'af'"),
    "latin5": ("'ığş'",),
    "latin7": ("'ąč'",),
    "tis620": ("'ไทย'",),
    "macce": ("'ěř'",),
    "macroman": ("'éü'",),
    "dec8": ("'éŒ'",),
    "hp8": ("'é'",),
    "swe7": ("'åÄö'",),
    "armscii8": ("'Աբ'",),
    "keybcs2": ("'ěř'",),
    "geostd8": ("'აბ'",),
}
CASES |= {
    f"{kind} character set {name}": values
    for name, values in CHARSETS.items()
    for kind in ("varchar(20)", "char(20)", "text")
}
CASES |= {
    "enum('é','ü') character set latin1": ("'é'", "'ü'"),
    "set('é','ü') character set gbk": ("'é,ü'", "''"),
    "varchar(20) character set utf8mb4 collate utf8mb4_bin": ("'x'",),
    "varchar(20) character set latin1 collate latin1_german1_ci": ("'x'",),
}
CASES |= {
    "enum('北京','größe, grün','a''b') character set gbk": ("'北京'", "'a''b'", "0"),
    "enum('a,b','c\\\\d') character set latin1": ("'a,b'", "'c\\\\d'"),
    "set('Ω','ω','а') collate utf8mb4_bin": ("'Ω,а'", "''", "'ω'"),
    "geometry": (
        "point(0, 0)", "st_geomfromtext('POINT(50.5 -8)', 4326)", "st_geomfromtext('LINESTRING(0 0, 1e300 -1e-300)')",
    ),
    "point": ("point(1.5, -2)", "st_geomfromtext('POINT(-90 180)', 4326)"),
    "linestring": ("st_geomfromtext('LINESTRING(0 0, 1 1, 2 0)')",),
    "polygon": ("st_geomfromtext('POLYGON((0 0, 4 0, 4 4, 0 0), (1 1, 2 1, 2 2, 1 1))')",),
    "multipoint": ("st_geomfromtext('MULTIPOINT(0 0, 1 1)')",),
    "multilinestring": ("st_geomfromtext('MULTILINESTRING((0 0, 1 1), (2 2, 3 3))')",),
    "multipolygon": ("st_geomfromtext('MULTIPOLYGON(((0 0, 4 0, 4 4, 0 0)))')",),
    "geometrycollection": (
        "st_geomfromtext('GEOMETRYCOLLECTION(POINT(1 2), LINESTRING(0 0, 1 1))')",
        "st_geomfromtext('GEOMETRYCOLLECTION EMPTY')",
    ),
}  # fmt: skip
CONTROLS = (
    "concat(char(1,2,3,4,5,6,7,8 using utf8mb4), char(11,12,13,14,15,16,26,27,28,29,30,31,127 using utf8mb4), '/')"
)
CASES |= {
    "varchar(40) collate utf8mb4_bin": (CONTROLS, "concat(char(0 using utf8mb4), '\\\\u000B')"),
    "char(40) character set utf16": (CONTROLS, "'  a'"),
    "text character set gbk": (CONTROLS, "'汉字'"),
}
DEEP = "concat(repeat('[', 99), '{{\"a\": 1}}', repeat(']', 99))"
OF_MYSQL = {
    "varchar(20) collate utf8mb4_0900_as_cs": ("'x'",),
    "json": (*CASES["json"], DEEP.replace("{{", "{").replace("}}", "}")),
}
OF_MYSQL_9 = {
    "vector(3)": (
        "to_vector('[1,-0.1,3.4028235e38]')", "to_vector('[16777217,0,-0]')", "x'010000000000008001000080'",
    ),
    "vector": ("to_vector(concat('[0.1', repeat(',0.3', 2047), ']'))",),
}  # fmt: skip
LONG, MIXED = "repeat('ab', 150)", "'not compressed'"
OF_MARIADB = {
    "uuid": (
        "'123e4567-e89b-12d3-a456-426614174000'", "'00000000-0000-0000-0000-000000000000'",
        "'01890a5d-ac96-774b-bcce-b302099a8057'", "'ffffffff-ffff-ffff-ffff-ffffffffff00'",
    ),
    "inet4": ("'10.0.0.255'", "'0.0.0.0'", "'32.32.32.32'"),
    "inet6": ("'2001:db8::ff00:42:8329'", "'::ffff:192.0.2.128'", "'::'", "'1::'", "'::1.2.3.4'"),
    "binary(4)": ("x'00'", "'ab'", "x'ff000000'"),
    "binary(16)": ("x'00'", "'ab'", "x'0123456789abcdef0123456789abcdef'"),
    "varchar(300) compressed": (LONG, "''", "'x'", CONTROLS),
    "text compressed character set gbk": ("repeat('汉字', 150)", "''"),
    "longtext compressed": (LONG, MIXED),
    "varbinary(300) compressed": (LONG, "x'00ff'"),
    "mediumblob compressed": ("repeat(x'00', 300)", "''"),
    "json": ("'{\"b\": [1, 2.50, null],  \"a\": 1e2}'", "'[]'", "'null'"),
    "varchar(9) character set utf8mb3 collate utf8mb3_uca1400_nopad_ai_ci": ("'é€'",),
    "text character set utf8mb4 collate utf8mb4_uca1400_as_cs": ("'😀\"\\\\'",),
}  # fmt: skip
NO_WORD = ("gb18030", "json")  # for MariaDB


def cases(server: Database) -> dict[str, Sequence[str]]:
    """What this server has."""
    if server.flavor == "mariadb":
        return {kind: literals for kind, literals in CASES.items() if not kind.endswith(NO_WORD)} | OF_MARIADB
    # Before the others: a type that has a charset in the binlog alone would shift theirs.
    return (OF_MYSQL_9 if server.name == "mysql" else {}) | CASES | OF_MYSQL


def spelling(server: Database) -> tuple[str, str]:
    """What this server has no words for, and what stands in its place."""
    return ("cast(2020 as year)", "2020") if server.name == "mysql80" else ("", "")


def inserts(kinds: dict[str, Sequence[str]]) -> list[str]:
    """One row per place in the longest list of values: a column repeats its own."""
    most = max(map(len, kinds.values()))
    rows = [", ".join(values[n % len(values)] for values in kinds.values()) for n in range(most)]
    nulls = ", ".join(["NULL"] * len(kinds))
    return [f"INSERT INTO edges.edge VALUES ({n}, {row})" for n, row in enumerate([*rows, nulls])]


def comparable(text: str | None, column: Column) -> object:
    """Floats are the same number, all else the same text."""
    if text is None or column.type not in ("float", "double", "vector"):
        return text
    numbers = json.loads(text) if column.type == "vector" else [float(text)]
    return [struct.pack("<d" if column.type == "double" else "<f", number) for number in numbers]


def pieces(rows: Sequence[bytes], column: Column) -> list[object]:
    """The column's own JSON text in each row."""
    found: list[object] = []
    for row in rows:
        text = row.decode()
        start = text.index(f'"{column.name}":') + len(column.name) + 3
        value, end = json.JSONDecoder().raw_decode(text, start)
        found.append(comparable(None if value is None else text[start:end], column))
    return found
