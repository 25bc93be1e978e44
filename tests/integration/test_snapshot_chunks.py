"""Chunks by the key of any table hold each of its rows once: walked, and asked for, on each server."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain

from contract.names import quoted
from contract.schema import TableSchema
from spark.source import no_days
from spark.source.chunks import boundary_sql, conditions, table_sql, walk, walked
from spark.source.source import Source
from stack.database import Database
from tests.integration.decoding import pipeline, run

ROWS, SIZE = 60, 7
Value = Callable[[int], str]
WORDS = ("äb", "C", "ß", "ssa", "b''\\\\", "ñ", "e")


def word(n: int) -> str:
    return f"'{WORDS[n % len(WORDS)]}{n // len(WORDS) * 37 % 10}{n}'"


def raw(n: int, width: int) -> str:
    return f"x'{(n * 0x9E3779B97F4A7C15 % 2 ** (8 * width)):0{2 * width}x}'"


def uuid(n: int) -> str:
    """Of two kinds, whose order in the index is not that of their texts."""
    digits = f"{n * 0x9E3779B97F4A7C15F39CC0605CEDC835 % 2**128:032x}"
    return f"'{digits[:8]}-{digits[8:12]}-{'17'[n % 2]}{digits[13:16]}-8{digits[17:20]}-{digits[20:]}'"


# The columns, the key, and a row's key columns: those of all servers.
KEYS: dict[str, tuple[str, str, Value]] = {
    "sparse": ("k bigint", "k", lambda n: str((n - 30) ** 11)),
    "wide": ("k bigint unsigned", "k", lambda n: str(2**64 - 1 - n**9)),
    "decimals": ("k decimal(40,10)", "k", lambda n: f"{(-1) ** n * n**13}.{n:010d}"),
    "filled": ("k decimal(12,2) unsigned zerofill", "k", lambda n: f"{n**3}.5"),
    "no_days": ("d date, n int", "d, n", lambda n: f"'2026-02-30', {n}"),
    "pair": ("a smallint, b int", "a, b", lambda n: f"{n // 17 - 2}, {n * 7919 % 1000}"),
    "skewed": ("a int, b varchar(9), c int", "a, b, c", lambda n: f"{n // 55}, '{'aAäb'[n // 20]}', {n}"),
    "downwards": ("a int, b int", "a DESC, b", lambda n: f"{n % 5}, {n}"),
    "folded": ("k varchar(20)", "k", word),
    "blanks": ("k varchar(99)", "k", lambda n: f"concat(repeat(' ', {n}), 'x', repeat('ÿ', {n % 3}))"),
    "bytewise": ("k varchar(20) COLLATE utf8mb4_bin", "k", word),
    "fixed": ("k char(20)", "k", word),
    "german": ("k varchar(20) CHARACTER SET latin1 COLLATE latin1_german2_ci", "k", lambda n: f"'ä{n}ü'"),
    "undefined": ("k varchar(20) CHARACTER SET latin1", "k", lambda n: f"x'{0x81 + n % 2 * 12:02x}3{n // 8}3{n % 8}'"),
    "chinese": ("k varchar(20) CHARACTER SET gbk", "k", lambda n: f"'{'汉字一丁'[n % 4]}{n}'"),
    "japanese": ("k varchar(20) CHARACTER SET sjis", "k", lambda n: f"concat(_sjis x'815f', '{n}')"),
    "vendor": ("k varchar(20) CHARACTER SET cp932", "k", lambda n: f"concat(_cp932 x'{('879c', '81be')[n % 2]}', {n})"),
    "wide_text": ("k varchar(20) CHARACTER SET utf16", "k", lambda n: f"'{'😀é€'[n % 3]}{n}'"),
    "thai": ("k varchar(20) CHARACTER SET tis620", "k", lambda n: f"'{'เกแข'[n % 4]}{n}'"),
    "old_utf8": ("k varchar(20) CHARACTER SET utf8mb3", "k", lambda n: f"'{'é€'[n % 2]}{n}'"),
    "hashes": ("k binary(16)", "k", lambda n: raw(n, 16)),
    "zeros": ("k binary(4)", "k", lambda n: f"x'{n % 2:02x}{n:02x}'"),
    "bytes": ("k varbinary(9)", "k", lambda n: raw(n, 9) if n > 26 else f"repeat(x'{n % 3 * 127:02x}', {n // 3 + 1})"),
    "dates": ("k date", "k", lambda n: "'0000-00-00'" if not n else f"'20{n:02}-0{n % 3}-1{n % 10}'"),
    "moments": ("k datetime(6)", "k", lambda n: f"'2026-01-01 00:00:{n:02}.{n * 97 % 10**6:06}'"),
    "seconds": ("k timestamp(3)", "k", lambda n: f"'2026-03-29 0{n % 4}:30:{n:02}.{n:03}'"),
    "lengths": ("k time(2)", "k", lambda n: f"'{(n - 30) * 27}:59:58.{n:02}'"),
    "bits": ("k bit(64)", "k", lambda n: str(2**64 - 1 - n * 2**57)),
    "few_bits": ("a bit(1), b bit(9)", "a, b", lambda n: f"{n % 2}, {n * 8}"),
    "years": ("a year, b int", "a, b", lambda n: f"{0 if n < 40 else 1901 + n}, {n}"),
    "members": ("a enum('z','b','a'), b int", "a, b", lambda n: f"{n % 3 + 1}, {n}"),
    "behind": ("b int, a enum('z','b','a'), c bit(9)", "b, a, c", lambda n: f"{n // 12}, {n % 3 + 1}, {n // 3 % 4}"),
    "begins": ("k varchar(20)", "k(7)", word),
    "parted": ("a int, b int", "a, b", lambda n: f"{n % 4}, {n}"),
    "od`d {?} -- t'": ("`na``me ?'\"\\` int, `ö.ü` varchar(9)", "`na``me ?'\"\\`, `ö.ü`", lambda n: f"{n // 9}, '{n}'"),
    "one": ("k int", "k", lambda n: "5" if not n else ""),
    "empty": ("k varchar(20)", "k", lambda n: ""),
    "keyless": ("k int", "", str),
}  # fmt: skip
PARTS = "PARTITION BY HASH (b) PARTITIONS 3"
CHS = ["ch", "ll", "ñ", "c", "l", "n", "d"]
OF_MYSQL = {
    "old_folded": ("k varchar(20) COLLATE utf8mb4_0900_ai_ci", "k", word),
    "cased": ("k varchar(20) COLLATE utf8mb4_0900_as_cs", "k", word),
    "unpadded": ("k varchar(99) COLLATE utf8mb4_0900_bin", "k", lambda n: f"concat('x', repeat(' ', {n}))"),
    "spanish": ("k varchar(20) COLLATE utf8mb4_es_trad_0900_ai_ci", "k", lambda n: f"'{CHS[n % 7]}{n}'"),
}
OF_MARIADB = {
    "uuids": ("k uuid", "k", uuid),
    "addresses": ("k inet6", "k", lambda n: f"'2001:db8::{n * 1117 % 65536:x}'"),
    "old_addresses": ("a inet4, b int", "a, b", lambda n: f"'10.{n % 3 * 100}.0.{n}', {n}"),
    "cased": ("k varchar(20) COLLATE utf8mb4_uca1400_as_cs", "k", word),
    "unpadded": ("k varchar(99) COLLATE utf8mb4_uca1400_nopad_ai_ci", "k", lambda n: f"concat('x', repeat(' ', {n}))"),
}


def keys_of(server: Database) -> dict[str, tuple[str, str, Value]]:
    lacking = {"mysql80": {"unpadded"}}.get(server.name, set())  # came with 8.0.17
    own = OF_MARIADB if server.flavor == "mariadb" else OF_MYSQL
    return {name: made for name, made in (KEYS | own).items() if name not in lacking}


def create(server: Database) -> None:
    statements = []
    for name, (columns, key, value) in keys_of(server).items():
        primary, parts = f", PRIMARY KEY ({key})" if key else "", PARTS if name == "parted" else ""
        statements.append(f"CREATE TABLE {quoted(name)} ({columns}, v int{primary}) {parts}")
        if rows := [f"({found}, {n})" for n in range(ROWS) if (found := value(n))]:
            statements.append(f"INSERT INTO {quoted(name)} VALUES {', '.join(rows)}")
    run(server, "DROP DATABASE IF EXISTS keyed", "CREATE DATABASE keyed")
    run(server, "SET sql_mode = 'ALLOW_INVALID_DATES', NAMES utf8mb4", *statements, database="keyed")


def test_each_row_of_any_key_is_in_one_chunk(server: Database) -> None:
    create(server)
    with Source(pipeline(server, "keyed.*")) as source:
        for name in keys_of(server):
            schema = source.schema("keyed", name)
            assert schema is not None
            boundaries = list(walk(schema, SIZE, source.row))
            names = [f"k{at}" for at in range(len(walked(schema)))]
            found = [asked(source, schema, one) for one in conditions(names, boundaries)]
            assert sorted(chain(*found)) == sorted(asked(source, schema, "1 = 1")), name
            if name in ("years", "members", "keyless", "begins"):
                assert boundaries == [], name
            elif name in ("behind", "downwards"):  # of 12 rows alike in what can be walked
                assert [len(chunk) for chunk in found] == [12] * 5 + [0]
            elif name not in ("one", "empty"):
                assert [len(chunk) for chunk in found] == [SIZE] * (ROWS // SIZE) + [ROWS % SIZE], name
            if boundaries:  # as a snapshot goes on that was killed
                rest = conditions(names, boundaries[3:], boundaries[2])
                assert [asked(source, schema, one) for one in rest] == found[3:], name
                columns = [schema.column(key) for key in schema.key[: len(boundaries[0])]]
                sql = no_days.asked(boundary_sql(schema, columns, boundaries[0], SIZE), server.flavor)
                [step] = source.named(f"EXPLAIN FORMAT=TRADITIONAL {sql}")
                assert "filesort" not in (step["Extra"] or ""), f"{name}: each chunk would cost all that is left"
            if name in ("pair", "folded", "chinese", "hashes", "moments"):
                assert plan(source, schema, conditions(names, boundaries)[-1]) == [("range", "PRIMARY")], name


def test_a_table_is_as_large_as_it_is_now(server: Database) -> None:
    """A server may have kept the estimate that somebody asked for when it was empty."""
    run(server, "DROP DATABASE IF EXISTS keyed", "CREATE DATABASE keyed", "CREATE TABLE keyed.t (id int PRIMARY KEY)")
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT table_rows FROM information_schema.tables WHERE table_schema = 'keyed'")
    run(server, f"INSERT INTO keyed.t VALUES {', '.join(f'({n})' for n in range(500))}", "ANALYZE TABLE keyed.t")
    run(server, "INSERT INTO keyed.t SELECT id + 500 FROM keyed.t")
    with Source(pipeline(server, "keyed.*")) as source:
        assert source.about("keyed", "t") > 500


def asked(source: Source, schema: TableSchema, condition: str) -> list[int]:
    return sorted(number for (number,) in source.rows(f"SELECT v FROM {derived(schema)} WHERE {condition}"))


def plan(source: Source, schema: TableSchema, condition: str) -> list[tuple[str, str]]:
    steps = source.named(f"EXPLAIN FORMAT=TRADITIONAL SELECT v FROM {derived(schema)} WHERE {condition}")
    return [(step["type"], step["key"]) for step in steps]


def derived(schema: TableSchema) -> str:
    """As the snapshot asks: of a table whose columns are the key's by number."""
    keys = [f"{quoted(name)} AS k{at}" for at, name in enumerate(schema.key)]
    return f"(SELECT {', '.join([*keys, 'v'])} FROM {table_sql(schema)}) AS q"
