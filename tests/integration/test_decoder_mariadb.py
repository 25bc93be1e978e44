"""What only MariaDB's binlog has: its GTIDs, compressed events, types that look like others."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from socket import socket
from typing import Any

import pymysql
import pytest

from stack.mariadb import MariaDB
from streamer.connection import BinlogConnection
from streamer.definitions import Definitions
from streamer.definitions_since import Ahead
from streamer.errors import UnclearTypeError, UnsupportedTypeError
from streamer.flavors import FLAVORS
from streamer.patience import Stopping
from streamer.protocol.model import Commit, Ddl, Item, RowsBatch
from streamer.protocol.position import WRAP
from streamer.transaction import BinlogDecoder
from tests.integration.decoding import (
    chunks,
    executed,
    found_of,
    items,
    nothing,
    pipeline,
    recorded,
    rows,
    run,
    shape,
    source,
)

ROOM = ["DROP DATABASE IF EXISTS own", "CREATE DATABASE own"]
TABLE = "CREATE TABLE t (id int primary key, v text)"


@pytest.fixture(autouse=True)
def room(mariadb: MariaDB) -> None:
    run(mariadb, *ROOM, "USE own", TABLE)


def test_gtids_and_places(mariadb: MariaDB) -> None:
    """Pitfall "Binlog files over 4 GiB": inside a transaction of MariaDB 11.4 log_pos is 0."""
    with recorded(mariadb) as found:
        run(mariadb, "INSERT INTO t VALUES (1, 'a'), (2, 'b')", "DELETE FROM t", database="own")
        run(mariadb, "SET gtid_domain_id = 5, gtid_seq_no = 40", "INSERT INTO t VALUES (3, 'c')", database="own")
    assert shape(found) == ["c", "Commit", "d", "Commit", "c", "Commit"]
    commits = [item for item in found if isinstance(item, Commit)]
    assert commits[2].gtid == "5-1-40"
    assert commits[1].gtid.startswith("0-1-")
    assert int(commits[1].gtid.split("-")[2]) == int(commits[0].gtid.split("-")[2]) + 1
    with mariadb.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SHOW MASTER STATUS")
        assert commits[-1].pos == cursor.fetchone()[1], "behind the transaction's last event"
    assert all(one.tx_pos < one.pos for one in commits)
    assert [one.pos for one in commits[:2]] == [one.tx_pos for one in commits[1:]]


class FarEnd:
    """A cursor to which the binlog ends by 4 GiB further than it does."""

    def __init__(self, cursor: Any) -> None:
        self._cursor = cursor
        self.asked = ""

    def execute(self, statement: str, values: Any = None) -> None:
        self.asked = statement
        self._cursor.execute(statement, values)

    def fetchone(self) -> Any:
        row = self._cursor.fetchone()
        return (row[0], row[1] + WRAP, *row[2:]) if self.asked == "SHOW MASTER STATUS" else row

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cursor, name)


def test_what_was_executed_is_known_where_the_binlog_ends_beyond_4_gib(mariadb: MariaDB) -> None:
    """Pitfall "Binlog files over 4 GiB": MariaDB's own function tells nothing of such a place."""
    with mariadb.connect() as connection, connection.cursor() as cursor:
        found = FLAVORS["mariadb"].facts(FarEnd(cursor))
    assert found is not None
    assert found.pos > WRAP
    assert found.executed == executed(mariadb) != nothing(mariadb)


def test_compressed_events_are_the_same_as_plain_ones(mariadb: MariaDB) -> None:
    """Pitfall "Compressed transactions": `log_bin_compress`, events 165 to 171."""
    statements = [
        "INSERT INTO t VALUES (1, repeat('ab', 5000)), (2, NULL)",
        "UPDATE t SET v = repeat('c', 9000) WHERE id = 1",
        "DELETE FROM t",
        "ALTER TABLE t ADD COLUMN w int " + "/* " + "much " * 200 + "*/",
        "ALTER TABLE t DROP COLUMN w",
    ]
    with recorded(mariadb) as plain:
        run(mariadb, *statements, database="own")
    run(mariadb, "SET GLOBAL log_bin_compress = ON, GLOBAL log_bin_compress_min_len = 10")
    try:
        with recorded(mariadb) as compressed:
            run(mariadb, *statements, database="own")
    finally:
        run(mariadb, "SET GLOBAL log_bin_compress = OFF, GLOBAL log_bin_compress_min_len = 256")
    assert shape(compressed) == shape(plain)
    assert rows(compressed) == rows(plain)
    assert [one.statement for one in compressed if hasattr(one, "statement")] == [
        one.statement for one in plain if hasattr(one, "statement")
    ]
    size = [sum(item.pos - item.tx_pos for item in some if isinstance(item, Commit)) for some in (plain, compressed)]
    assert size[1] < size[0] / 5, "it was compressed"


def test_an_alter_in_two_phases_is_told_once_and_not_where_it_was_given_up(mariadb: MariaDB) -> None:
    """Its binlog has the statement when it begins, and again when it has ended, in whatever way."""
    two_phases, add = "SET binlog_alter_two_phase = ON", "ALTER TABLE t ADD c int DEFAULT 5"
    unique = "ALTER TABLE t ADD UNIQUE (c), ADD d int DEFAULT 6"
    begin = executed(mariadb)
    with recorded(mariadb) as found:
        run(mariadb, "INSERT INTO t VALUES (1, 'a'), (2, 'b')", two_phases, add, database="own")
        with pytest.raises(pymysql.IntegrityError):
            run(mariadb, two_phases, unique, database="own")
        run(mariadb, "INSERT INTO t VALUES (3, 'c', 7)", database="own")
    written = b"".join(chunks(mariadb, begin, executed(mariadb)))
    assert (written.count(add.encode()), written.count(unique.encode())) == (2, 2)
    assert [item.statement for item in found if isinstance(item, Ddl)] == [add]
    assert shape(found) == ["c", "Commit", "Commit", "Ddl", "Commit", "Commit", "Commit", "c", "Commit"]
    assert rows(found)[-1] == ("c", {"id": 3, "v": "c", "c": 7})


def test_a_transaction_that_is_read_again_from_its_middle(mariadb: MariaDB) -> None:
    begin = executed(mariadb)
    run(mariadb, "INSERT INTO t VALUES (1, 'a')", database="own")
    middle = executed(mariadb)
    run(mariadb, "FLUSH BINARY LOGS", "INSERT INTO t VALUES (2, 'b')", database="own")
    end = executed(mariadb)
    whole = list(items(mariadb, begin, end))
    assert [row["id"] for _, row in rows(list(items(mariadb, middle, end)))] == [2]  # type: ignore[index]
    assert [row["id"] for _, row in rows(whole)] == [1, 2]  # type: ignore[index]


# MariaDB's metadata cannot tell UUID and INET6 from BINARY(16): information_schema supplements it, and doubt stops.
UNCLEAR = {"uuid": "uuid()", "inet6": "'::1'", "inet4": "'10.0.0.1'", "binary(16)": "'x'"}


@pytest.mark.parametrize("kind", UNCLEAR)
def test_a_type_that_the_binlog_does_not_tell_is_told_of_before(mariadb: MariaDB, kind: str) -> None:
    run(mariadb, f"CREATE TABLE odd (id int primary key, c {kind})", database="own")
    [finding] = found_of(pipeline(mariadb, include="own.*"))
    assert (finding.level, finding.name) == ("warning", "type")
    assert f"the type of c ({kind}) in own.odd" in finding.what


AFTER = {
    "another type": ["ALTER TABLE odd MODIFY c binary(16)"],
    "another column": ["ALTER TABLE odd CHANGE c d uuid"],
    "another table": ["CREATE TABLE new (id int primary key, c binary(16))", "RENAME TABLE odd TO old, new TO odd"],
    "no table": ["DROP TABLE odd"],
}


@pytest.mark.parametrize("case", AFTER)
def test_rows_of_before_their_table_was_altered_are_a_doubt_that_stops(mariadb: MariaDB, case: str) -> None:
    run(mariadb, "CREATE TABLE odd (id int primary key, c uuid)", database="own")
    begin = executed(mariadb)
    run(mariadb, "INSERT INTO t VALUES (1, 'a')", "INSERT INTO odd VALUES (1, uuid())", *AFTER[case], database="own")
    given: list[Item] = []
    with pytest.raises(UnclearTypeError, match=r"rows of own\.odd.*new snapshot"):
        given.extend(items(mariadb, begin, executed(mariadb)))
    assert shape(given) == ["c", "Commit"], "nothing of the row itself, which a start behind it would not take back"


CLOCKS = {"the same second": "SET timestamp = DEFAULT", "a time to come": "SET timestamp = UNIX_TIMESTAMP() + 1000"}


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("compressed", ["OFF", "ON"])
def test_a_table_that_took_the_name_is_a_doubt_whatever_the_clock_says(
    mariadb: MariaDB, clock: str, compressed: str
) -> None:
    run(mariadb, f"SET GLOBAL log_bin_compress = {compressed}, GLOBAL log_bin_compress_min_len = 10")
    try:
        begin = executed(mariadb)
        run(mariadb, "CREATE TABLE odd (id int primary key, c uuid)",
            "CREATE TABLE new (id int primary key, c binary(16))", CLOCKS[clock],
            "INSERT INTO odd VALUES (1, uuid())", "SET timestamp = DEFAULT", "RENAME TABLE odd TO old, new TO odd",
            "INSERT INTO odd VALUES (2, 'x')", database="own")  # fmt: skip
    finally:
        run(mariadb, "SET GLOBAL log_bin_compress = OFF, GLOBAL log_bin_compress_min_len = 256")
    given: list[Item] = []
    with pytest.raises(UnclearTypeError, match=r"rows of own\.odd.*behind these rows"):
        given.extend(items(mariadb, begin, executed(mariadb)))
    assert rows(given) == []


def test_a_table_that_is_made_and_filled_at_once_is_no_doubt(mariadb: MariaDB) -> None:
    value = "123e4567-e89b-12d3-a456-426655440000"
    with recorded(mariadb) as found:
        run(mariadb, "CREATE TABLE odd (id int primary key, c uuid)", f"INSERT INTO odd VALUES (1, '{value}')",
            f"CREATE TABLE more AS SELECT 2 AS id, CAST('{value}' AS uuid) AS c", database="own")  # fmt: skip
    assert rows(found) == [("c", {"id": 1, "c": value}), ("c", {"id": 2, "c": value})]


def test_rows_behind_an_alter_that_is_read_are_no_doubt(mariadb: MariaDB) -> None:
    value = "123e4567-e89b-12d3-a456-426655440000"
    insert = "INSERT INTO odd (id, c) VALUES ({}, '{}')"
    run(mariadb, "CREATE TABLE odd (id int primary key, c uuid)", database="own")
    seen = executed(mariadb)
    decoder = BinlogDecoder(lambda db, table: True, definitions=Definitions(source(mariadb), lambda: seen))
    connection = BinlogConnection(source(mariadb), seen.copy())
    incoming = connection.chunks()

    def written(*statements: str) -> list[Item]:
        run(mariadb, *statements, database="own")
        end, found = executed(mariadb), list[Item]()
        while not seen.issuperset(end):
            for item in decoder.feed(next(incoming)):
                found.append(item)
                seen.add_all([item.gtid] if isinstance(item, Commit) else [])
        return found

    assert rows(written(insert.format(1, value))) == [("c", {"id": 1, "c": value})]
    # One that does not name the column leaves it as it was, also where the next one was made before this one is read.
    others = ["ALTER TABLE odd ADD d int", insert.format(2, value), "ALTER TABLE odd ADD INDEX (d)", "DO SLEEP(1.1)"]
    found = written(*others, insert.format(3, value), "ALTER TABLE odd DROP d, ENGINE = Aria")
    assert rows(found) == [("c", {"id": n, "c": value, "d": None}) for n in (2, 3)]
    found = written(insert.format(4, value), "ALTER TABLE odd MODIFY c binary(16)", insert.format(5, "x"))
    assert rows(found) == [("c", {"id": 4, "c": value}), ("c", {"id": 5, "c": "eAAAAAAAAAAAAAAAAAAAAA=="})]
    connection.close()


# What may stand in the lag, and how many rows are read of its table, in which there was one before.
HARMLESS = {
    "analyze": "ANALYZE TABLE {0}",
    "optimize": "OPTIMIZE TABLE {0}",
    "repair": "REPAIR TABLE {0}",
    "truncate": "TRUNCATE TABLE {0}",
    "create_index": "CREATE INDEX i ON {0} (v)",
    "grant": "GRANT SELECT ON own.{0} TO headrace",
    "view": "CREATE VIEW of_{0} AS SELECT * FROM {0}",
    "trigger": "CREATE TRIGGER on_{0} AFTER INSERT ON {0} FOR EACH ROW SET @x = 1",
    "copy": "CREATE TABLE copy_of_{0} LIKE {0}",
    "child": "CREATE TABLE child_of_{0} (id int primary key, c uuid, v int, FOREIGN KEY (id) REFERENCES {0} (id))",
    "engine": "ALTER TABLE {0} ENGINE = InnoDB",
    "alter": "ALTER TABLE {0} ADD w int",
}
UUID = "123e4567-e89b-12d3-a456-426655440000"


def test_statements_in_the_lag_that_define_nothing_anew_leave_no_doubt(mariadb: MariaDB) -> None:
    """Also those that make the table's CREATE_TIME later than its rows."""
    tables = {f"lag_{case}": statement for case, statement in HARMLESS.items()}
    run(mariadb, *(f"CREATE TABLE {name} (id int primary key, c uuid, v int)" for name in tables), database="own")
    begin = executed(mariadb)
    row = f"INSERT INTO {{}} (id, c) VALUES ({{}}, '{UUID}')"
    run(mariadb, *(row.format(name, 1) for name in tables), "DO SLEEP(1.1)",
        *(statement.format(name) for name, statement in tables.items()),
        *(row.format(name, 2) for name in tables), database="own")  # fmt: skip
    batches = [item for item in items(mariadb, begin, executed(mariadb)) if isinstance(item, RowsBatch)]
    seen = [(batch.table.table, json.loads(row)["c"]) for batch in batches for row in batch.rows]
    assert seen == [(name, UUID) for name in (*tables, *tables)]


def test_rows_of_another_server_are_not_judged_by_this_ones_clock(mariadb: MariaDB) -> None:
    """A replica made the table later than the rows that it passes on; a definition without the binlog, of this server's
    own rows, is told by its clock."""
    run(mariadb, "CREATE TABLE odd (id int primary key, c uuid)", database="own")
    begin, row = executed(mariadb), f"INSERT INTO odd VALUES ({{}}, '{UUID}')"
    run(mariadb, "SET timestamp = 1000000, server_id = 77", row.format(1), database="own")
    assert len(rows(list(items(mariadb, begin, executed(mariadb))))) == 1
    begin = executed(mariadb)
    run(mariadb, row.format(2), "DO SLEEP(1.1)", "SET sql_log_bin = 0", "ALTER TABLE odd ADD v int", database="own")
    with pytest.raises(UnclearTypeError, match=r"own\.odd.*since these rows"):
        list(items(mariadb, begin, executed(mariadb)))


class Counted:
    """A meanwhile that counts, and goes away at its `last` call."""

    def __init__(self, last: int = 1_000_000) -> None:
        self.calls, self.last = 0, last

    def __call__(self) -> None:
        self.calls += 1
        if self.calls >= self.last:
            raise Stopping


def test_the_lag_is_read_once_for_all_tables_and_what_cannot_wait_goes_on_meanwhile(
    mariadb: MariaDB, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = [f"odd{n}" for n in range(5)]
    run(mariadb, *(f"CREATE TABLE {name} (id int primary key, c uuid)" for name in tables), database="own")
    seen = executed(mariadb)
    large = (f"INSERT INTO t SELECT seq + {n * 20}, repeat('x', 60000) FROM seq_1_to_17" for n in range(40))
    run(mariadb, *(f"INSERT INTO {name} VALUES (1, '{UUID}')" for name in tables), *large, "CREATE TABLE last (id int)",
        database="own")  # fmt: skip
    asked: list[int] = []
    received = BinlogConnection._received

    def counted(connection: BinlogConnection, sock: socket) -> Iterator[bytes]:
        asked.append(0)
        for chunk in received(connection, sock):
            asked[-1] += len(chunk)
            yield chunk

    monkeypatch.setattr(BinlogConnection, "_received", counted)
    end, now = source(mariadb).gtids(str(executed(mariadb))), int(time.time())
    hasty = Counted(last=20)
    definitions = Definitions(source(mariadb), lambda: seen, Ahead(hasty))

    def ask(name: str) -> str:
        return definitions.of("own", name, ["c"], now, f"0-1-{10**9}")["c"].type

    with pytest.raises(Stopping):
        ask("odd0")
    assert 1_000_000 < asked[0] < 20_000_000, "it is heard in the middle"
    assert definitions.ahead.reading_for == ""
    hasty.last = 1_000_000
    assert [ask(name) for name in tables] == ["uuid"] * 5
    assert len(asked) == 2, "the second goes on from there, and the others need none"
    assert asked[1] < 40_000_000 - asked[0] + 5_000_000
    assert hasty.calls > 40
    definitions.ahead.durable = lambda: seen
    for taken in (end, seen):  # it goes on; another attempt begins again at the checkpoint
        attempt = Definitions(source(mariadb), taken.copy, definitions.ahead)
        assert attempt.of("own", "odd2", ["c"], now, f"0-1-{10**9}")["c"].type == "uuid"
    assert len(asked) == 2, "nothing is read anew"
    run(mariadb, "ALTER TABLE odd0 ADD v int", "ALTER TABLE odd1 MODIFY c binary(16)", database="own")
    again = Definitions(source(mariadb), lambda: seen, definitions.ahead)
    with pytest.raises(UnclearTypeError, match="odd1"):
        again.of("own", "odd1", ["c"], now, f"0-1-{10**9}")
    assert asked[2] < 10_000, "what is newer alone"
    with pytest.raises(UnclearTypeError, match="odd1"):
        again.of("own", "odd1", ["c"], now, f"0-1-{10**9}")
    assert end.issuperset(seen)


def test_hidden_columns_are_left_out_and_a_users_own_of_that_name_is_not(mariadb: MariaDB) -> None:
    """A UNIQUE key on long texts has a column DB_ROW_HASH_n, which no query shows, in the binlog alone."""
    with recorded(mariadb) as found:
        run(mariadb, "CREATE TABLE h (id int primary key, url varchar(1000) unique, v text, unique (v))",
            "INSERT INTO h VALUES (1, 'a', NULL), (2, NULL, 'b')", "ALTER TABLE h ADD c int",
            "INSERT INTO h VALUES (3, 'd', 'e', 4)", "UPDATE h SET url = 'f' WHERE id = 3",
            "DELETE FROM h WHERE id = 3",
            "CREATE TABLE own (id int primary key, DB_ROW_HASH_1 bigint unsigned, url varchar(1000) unique)",
            "INSERT INTO own VALUES (1, 2, 'g')", database="own")  # fmt: skip
    third = {"id": 3, "url": "d", "v": "e", "c": 4}
    assert rows(found) == [
        ("c", {"id": 1, "url": "a", "v": None}),
        ("c", {"id": 2, "url": None, "v": "b"}),
        ("c", third),
        ("u", third),
        ("u", third | {"url": "f"}),
        ("d", third | {"url": "f"}),
        ("c", {"id": 1, "DB_ROW_HASH_1": 2, "url": "g"}),
    ]
    columns = [[c.name for c in item.table.columns] for item in found if isinstance(item, RowsBatch)]
    assert columns[0] == ["id", "url", "v"], "what the schema topic tells"


# One by transactions (bigint unsigned) is never logged as rows.
PERIOD = (
    "a timestamp(6) GENERATED ALWAYS AS ROW START, b timestamp(6) GENERATED ALWAYS AS ROW END, "
    "PERIOD FOR SYSTEM_TIME (a, b)"
)
ODD = {
    "system-versioned": "CREATE TABLE odd (id int primary key) WITH SYSTEM VERSIONING",
    "without a key": "CREATE TABLE odd (id int) WITH SYSTEM VERSIONING",
    "its own columns": f"CREATE TABLE odd (id int primary key, {PERIOD}) WITH SYSTEM VERSIONING",
    "sequence": "CREATE SEQUENCE odd",
}
USED = {"sequence": "DO NEXT VALUE FOR odd"}


GONE = [case for case in ODD if case != "its own columns"]  # of names that a user gave, it is not told from any other


@pytest.mark.parametrize(
    ("case", "after"), [*((case, "DO 1") for case in ODD), *((case, "DROP TABLE odd") for case in GONE)]
)
def test_a_table_whose_rows_no_query_shows_stops_also_where_it_comes_later(
    mariadb: MariaDB, case: str, after: str
) -> None:
    begin = executed(mariadb)
    run(mariadb, "INSERT INTO t VALUES (1, 'a')", ODD[case], USED.get(case, "INSERT INTO odd (id) VALUES (1)"), after,
        database="own")  # fmt: skip
    given: list[Item] = []
    with pytest.raises(UnsupportedTypeError, match=r"own\.odd.*no query shows.*tables\.exclude"):
        given.extend(items(mariadb, begin, executed(mariadb)))
    assert rows(given) == [("c", {"id": 1, "v": "a"})]


def test_tables_that_look_like_those_go_on(mariadb: MariaDB) -> None:
    with recorded(mariadb) as found:
        run(mariadb, "CREATE TABLE odd (id int primary key, row_start timestamp(6) not null, row_end timestamp(6) not "
            "null)", "INSERT INTO odd VALUES (1, '2024-01-01', '2024-01-02')",
            "CREATE TABLE gone (id int primary key, made timestamp(6) not null, changed timestamp(6) not null)",
            "INSERT INTO gone VALUES (2, '2024-01-01', '2024-01-02')", "DROP TABLE gone", database="own")  # fmt: skip
    assert [row["id"] for _, row in rows(found)] == [1, 2]  # type: ignore[index]
