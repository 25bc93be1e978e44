"""What was committed is given, and nothing else: XA, rollbacks, savepoints, tables without transactions.

The rows that the decoder gives, applied in order, are the server's tables as they are after the statements.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from io import FileIO
from itertools import count
from random import Random, SystemRandom
from tempfile import mkstemp

import pymysql
import pytest

from contract.gtid import GtidSet
from stack.database import Database
from streamer.errors import UnsupportedTransactionError
from streamer.protocol.held import PreparedXa
from streamer.protocol.model import Commit, Ddl, Item, RowsBatch
from tests.integration.decoding import executed, items, recorded, rows, run, shape

# A duplicate key, no such table, or one that is there, no savepoint of the name, XA with nothing prepared, or what XA
# does not do; and both kinds of tables at once, on a server with GTIDs.
REFUSED = (1050, 1051, 1062, 1146, 1305, 1397, 1398, 1399, 1402, 1785, 4091)
TABLES = {"i": "InnoDB", "m": "MyISAM", "made": "InnoDB"}


@pytest.fixture(autouse=True)
def room(server: Database) -> Iterator[None]:
    make_tables(server)
    yield
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("XA RECOVER")
        for form, first, _, data in cursor.fetchall():
            data = data.decode() if isinstance(data, bytes) else data
            cursor.execute(f"XA ROLLBACK '{data[:first]}', '{data[first:]}', {form}")


def make_tables(server: Database) -> None:
    run(server, "DROP DATABASE IF EXISTS ends", "CREATE DATABASE ends")
    for name, engine in list(TABLES.items())[:2]:
        run(server, f"CREATE TABLE ends.{name} (id int primary key, v varchar(50)) ENGINE={engine}")


def tried(server: Database, statements: Sequence[str]) -> None:
    """In one session; what the server refuses is passed by, as an application might."""
    with server.connect(database="ends") as connection, connection.cursor() as cursor:
        for statement in statements:
            try:
                cursor.execute(statement)
            except pymysql.MySQLError as error:
                if error.args[0] not in REFUSED:
                    raise


Tables = dict[str, dict[int, str | None]]


def applied(found: Sequence[Item], before: Tables | None = None) -> Tables:
    """The tables that the rows make."""
    tables: Tables = before or {name: {} for name in TABLES}
    for batch in (item for item in found if isinstance(item, RowsBatch)):
        table, read = tables[batch.table.table], [json.loads(row) for row in batch.rows]
        for gone in {"c": [], "u": read[::2], "d": read}[batch.op]:
            del table[gone["id"]]
        for row in {"c": read, "u": read[1::2], "d": []}[batch.op]:
            table[row["id"]] = row["v"]
    return tables


def stored(server: Database) -> Tables:
    tables: Tables = {}
    with server.connect(database="ends") as connection, connection.cursor() as cursor:
        cursor.execute("SHOW TABLES")
        there = {name for (name,) in cursor.fetchall()}
        for name in TABLES:
            if name in there:
                cursor.execute(f"SELECT id, v FROM {name}")
            tables[name] = dict(cursor.fetchall()) if name in there else {}
    return tables


XA = ["XA START 'g','b',3", "INSERT INTO i VALUES (1, 'a'), (2, 'b')", "UPDATE i SET v = 'c' WHERE id = 2"]
XA_PREPARED = [*XA, "XA END 'g','b',3", "XA PREPARE 'g','b',3"]
TRIGGER = "CREATE TRIGGER tr AFTER INSERT ON i FOR EACH ROW INSERT INTO m VALUES (NEW.id + 1000, NEW.v)"
TEMPORARY = "CREATE TEMPORARY TABLE temp (id int primary key)"
CASES = {
    "XA COMMIT": [*XA_PREPARED, "XA COMMIT 'g','b',3"],
    "XA COMMIT ONE PHASE": [*XA, "XA END 'g','b',3", "XA COMMIT 'g','b',3 ONE PHASE"],
    "XA ROLLBACK of a prepared one": [*XA_PREPARED, "XA ROLLBACK 'g','b',3"],
    "XA ROLLBACK of one that is not": [*XA, "XA END 'g','b',3", "XA ROLLBACK 'g','b',3"],
    "XA without changes": ["XA START 'e'", "SELECT * FROM i", "XA END 'e'", "XA PREPARE 'e'", "XA COMMIT 'e'"],
    "XA with a table without transactions": [
        "XA START 'n'", "INSERT INTO i VALUES (6, 'a')", "INSERT INTO m VALUES (6, 'a')", "XA END 'n'",
        "XA PREPARE 'n'", "XA ROLLBACK 'n'",
    ],
    "XA with a savepoint": [
        "XA START 's'", "INSERT INTO i VALUES (7, 'a')", "SAVEPOINT s", "INSERT INTO i VALUES (8, 'a')",
        "ROLLBACK TO s", "XA END 's'", "XA PREPARE 's'", "XA COMMIT 's'",
    ],
    "no transactions": ["INSERT INTO m VALUES (10, 'a')", "UPDATE m SET v = 'b'", "DELETE FROM m WHERE id = 1"],
    "no transactions, rolled back": ["BEGIN", "INSERT INTO m VALUES (11, 'a')", "ROLLBACK"],
    "half of a statement": ["INSERT INTO m VALUES (40, 'a'), (41, 'a'), (40, 'again')"],
    "both kinds of tables, rolled back": [
        "BEGIN", "INSERT INTO i VALUES (14, 'a')", "INSERT INTO m VALUES (14, 'a')", "INSERT INTO i VALUES (15, 'a')",
        "ROLLBACK",
    ],
    "both kinds in one statement": [
        "INSERT INTO i VALUES (18, 'a')", "INSERT INTO m VALUES (18, 'a')", "BEGIN",
        "UPDATE i, m SET i.v = 'z', m.v = 'z' WHERE i.id = m.id", "ROLLBACK",
    ],
    "a trigger into the other kind": [
        TRIGGER, "BEGIN", "INSERT INTO i VALUES (24, 'a')", "SAVEPOINT s", "INSERT INTO i VALUES (25, 'a')",
        "ROLLBACK TO s", "INSERT INTO i VALUES (26, 'a')", "COMMIT", "BEGIN",
        "INSERT INTO i VALUES (27, 'a')", "ROLLBACK",
    ],
    "savepoints": [
        "BEGIN", "SAVEPOINT s", "INSERT INTO i VALUES (20, 'a')", "SAVEPOINT `t u`", "INSERT INTO i VALUES (21, 'a')",
        "INSERT INTO m VALUES (21, 'a')", "ROLLBACK TO `t u`", "INSERT INTO i VALUES (22, 'a')", "ROLLBACK WORK TO S",
        "INSERT INTO i VALUES (23, 'a')", "RELEASE SAVEPOINT s", "COMMIT",
    ],
    "savepoints in other quotes": [
        TRIGGER, "SET sql_mode = 'ANSI_QUOTES'", "BEGIN", "INSERT INTO i VALUES (28, 'a')", "SAVEPOINT a",
        'SAVEPOINT "a savepoint ""b"""', "INSERT INTO i VALUES (29, 'a')", 'ROLLBACK TO "a savepoint ""B"""',
        "INSERT INTO i VALUES (30, 'a')", 'ROLLBACK TO "A"', "SET sql_mode = '', sql_quote_show_create = 0",
        "SAVEPOINT plain", "INSERT INTO i VALUES (31, 'a')", "ROLLBACK TO SAVEPOINT plain", "SAVEPOINT `t u``v`",
        "INSERT INTO i VALUES (32, 'a')", "ROLLBACK TO `t u``v`", "INSERT INTO i VALUES (33, 'a')", "COMMIT",
    ],
    "a temporary table, rolled back": [
        TEMPORARY, "BEGIN", "INSERT INTO i VALUES (30, 'a')", "DROP TEMPORARY TABLE temp", "ROLLBACK",
        "BEGIN", "INSERT INTO i VALUES (31, 'a')", TEMPORARY, "INSERT INTO i VALUES (32, 'a')", "ROLLBACK",
    ],
    "a temporary table and savepoints": [
        TEMPORARY, "BEGIN", "INSERT INTO i VALUES (33, 'a')", "SAVEPOINT a", "INSERT INTO i VALUES (34, 'a')",
        "DROP TEMPORARY TABLE temp", "SAVEPOINT b", "INSERT INTO i VALUES (35, 'a')", "ROLLBACK TO b",
        "INSERT INTO i VALUES (36, 'a')", "ROLLBACK TO a", "INSERT INTO i VALUES (37, 'a')", "COMMIT",
    ],
    "a commit that DDL implies": [
        "BEGIN", "INSERT INTO i VALUES (50, 'a')", "CREATE TABLE made (id int primary key, v varchar(9))",
        "INSERT INTO made VALUES (1, 'a')", "ROLLBACK",
    ],
    "a statement that fails inside": [
        "BEGIN", "INSERT INTO i VALUES (60, 'a')", "INSERT INTO i VALUES (61, 'a'), (60, 'again')", "COMMIT",
    ],
    "LOCK TABLES": [
        "LOCK TABLES i WRITE, m WRITE", "INSERT INTO i VALUES (70, 'a')", "INSERT INTO m VALUES (70, 'a')",
        "UNLOCK TABLES",
    ],
}  # fmt: skip


def test_rows_are_what_was_committed(server: Database) -> None:
    """Pitfall "Transactions that end in ROLLBACK, savepoints, XA PREPARE/COMMIT/ROLLBACK"."""
    followed(server, CASES)


def program(random: Random) -> list[str]:
    """A transaction as it may come."""
    row = count(random.randrange(10) * 100)
    name = partial(random.choice, "abc")
    steps: list[Callable[[], str]] = [
        lambda: f"INSERT INTO i VALUES ({next(row)}, 'a'), ({next(row)}, 'a')",
        lambda: f"INSERT INTO i VALUES ({next(row)}, 'a')",
        lambda: f"INSERT INTO i VALUES ({next(row)}, 'a'), ({next(row) - 1}, 'again')",
        lambda: f"INSERT INTO m VALUES ({next(row)}, 'a')",
        lambda: f"UPDATE i SET v = 'b{next(row)}' WHERE id % 3 = {random.randrange(3)}",
        lambda: f"DELETE FROM i WHERE id % 5 = {random.randrange(5)}",
        lambda: f"SAVEPOINT {name()}", lambda: f"ROLLBACK TO {name()}", lambda: f"RELEASE SAVEPOINT {name()}",
        lambda: f"CREATE TEMPORARY TABLE temp{name()} (id int)", lambda: f"DROP TEMPORARY TABLE temp{name()}",
    ]  # fmt: skip
    inside = [random.choice(steps)() for _ in range(random.randrange(1, 12))]
    if random.random() < 0.6:
        implied = "CREATE TABLE IF NOT EXISTS made (id int primary key, v varchar(9))"
        return ["BEGIN", *inside, random.choice(["COMMIT", "ROLLBACK", implied])]
    end = random.choice((["XA PREPARE 'x'", "XA COMMIT 'x'"], ["XA PREPARE 'x'", "XA ROLLBACK 'x'"],
                         ["XA COMMIT 'x' ONE PHASE"], ["XA ROLLBACK 'x'"]))  # fmt: skip
    return ["XA START 'x'", *inside, "XA END 'x'", *end]


def test_rows_of_random_transactions_are_what_was_committed(server: Database) -> None:
    """HEADRACE_FUZZ=50 in the environment makes fifty times as many, each time others."""
    times = int(os.environ.get("HEADRACE_FUZZ", "0"))
    seeds = [SystemRandom().random() for _ in range(20 * times)] or range(20)
    followed(server, {f"seed {seed}": program(Random(seed)) for seed in seeds})


class ByGtid:
    """How a stretch is read: the end of all that is there, what stands between two ends, and the end behind one."""

    end = staticmethod(executed)
    items = staticmethod(items)

    @staticmethod
    def behind(seen: GtidSet, commit: Commit) -> GtidSet:
        seen.add(commit.gtid)
        return seen


def followed(server: Database, cases: Mapping[str, Sequence[str]], reading: type[ByGtid] = ByGtid) -> None:
    """All cases are read in one go: each begins with empty tables, and ends at a place of its own."""
    begin = reading.end(server)
    ends: list[tuple[str, GtidSet, Tables]] = []
    for name, statements in cases.items():
        tried(server, [*(f"DELETE FROM {table}" for table in ("i", "m")), *statements])
        ends.append((name, reading.end(server), stored(server)))
        tried(server, ["DROP TRIGGER IF EXISTS tr", "DELETE FROM made", "DROP TABLE IF EXISTS made"])
    seen, tables = begin.copy(), applied([])
    for item in reading.items(server, begin, reading.end(server)):
        if isinstance(item, Commit):
            seen = reading.behind(seen, item)
        tables = applied([item], tables)
        while ends and seen.issuperset(ends[0][1]):
            name, _, expected = ends.pop(0)
            assert tables == expected, name
    assert not ends


@pytest.mark.lacks("mysql80", "binlog_transaction_compression came with 8.0.20")
@pytest.mark.lacks("mariadb", "it compresses single events")
def test_an_xa_transaction_that_is_compressed(server: Database) -> None:
    with recorded(server) as found:
        tried(server, ["SET binlog_transaction_compression = ON", *CASES["XA COMMIT"], "DELETE FROM i"])
        tried(server, ["SET binlog_transaction_compression = ON", *CASES["XA COMMIT ONE PHASE"]])
    assert applied(found) == stored(server)
    assert shape(found) == ["Commit", "c", "u", "Commit", "d", "Commit", "c", "u", "Commit"]


def test_rows_of_an_xa_transaction_are_of_its_commit(server: Database) -> None:
    """pitfalls: XA rows count from their XA COMMIT, and the checkpoint stays before an open XA."""
    begin = executed(server)
    tried(server, XA_PREPARED)
    with recorded(server) as between:
        tried(server, ["INSERT INTO m VALUES (1, 'between')"])
    tried(server, ["XA COMMIT 'g','b',3"])
    found = list(items(server, begin, executed(server)))
    assert shape(found) == ["Commit", "c", "Commit", "c", "u", "Commit"]
    prepared, middle, end = (item for item in found if isinstance(item, Commit))
    assert [one.gtid for one in prepared.open_xa] == [one.gtid for one in middle.open_xa] == [prepared.gtid]
    assert end.open_xa == ()
    assert prepared.read_from == middle.read_from == (prepared.file, prepared.tx_pos)
    assert end.read_from is None
    batches = [item for item in found if isinstance(item, RowsBatch)][1:]
    assert {batch.gtid for batch in batches} == {end.gtid}
    assert [(b.tx_pos, b.ordinal, b.ts_us) for b in batches] == [(end.tx_pos, n, end.ts_us) for n in (0, 1)]
    assert all(end.tx_pos < batch.pos < end.pos for batch in batches)
    assert shape(between) == ["c", "Commit"]
    # A set that lacks the open one is a start, from which it comes again.
    known = executed(server)
    assert not known.without([(end.gtid, middle.gtid), *prepared.open_xa][::-1]).contains(prepared.gtid)


def test_a_start_from_before_an_open_xa_reads_it_again(server: Database) -> None:
    begin = executed(server)
    tried(server, XA_PREPARED)
    run(server, "INSERT INTO ends.m VALUES (1, 'between')")
    found = list(items(server, begin, executed(server), prepared=PreparedXa(behind=begin)))
    last = [item for item in found if isinstance(item, Commit)][-1]
    start = executed(server).without(last.open_xa)
    run(server, "FLUSH BINARY LOGS")
    tried(server, ["XA COMMIT 'g','b',3"])
    found = list(items(server, start, executed(server)))
    assert [row["id"] for _, row in rows(found)][-4:] == [1, 2, 2, 2]  # type: ignore[index]


def test_a_connection_lost_while_an_xa_is_open(server: Database) -> None:
    begin = executed(server)
    tried(server, XA_PREPARED)
    middle, prepared = executed(server), PreparedXa()
    assert rows(list(items(server, begin, middle, prepared=prepared))) == []
    tried(server, ["XA COMMIT 'g','b',3"])
    assert len(rows(list(items(server, middle, executed(server), prepared=prepared)))) == 4


def test_an_xa_that_was_prepared_before_the_start_stops(server: Database) -> None:
    tried(server, XA_PREPARED)
    begin = executed(server)
    tried(server, ["XA COMMIT 'g','b',3"])
    with pytest.raises(UnsupportedTransactionError, match="prepared before the place where reading began"):
        list(items(server, begin, executed(server)))
    begin = executed(server)
    tried(server, ["XA START 'r'", "INSERT INTO i VALUES (9, 'a')", "XA END 'r'", "XA PREPARE 'r'"])
    middle = executed(server)
    tried(server, ["XA ROLLBACK 'r'"])
    assert shape(list(items(server, middle, executed(server)))) == ["Commit"], "there was nothing to lose"


def test_rows_of_open_xa_transactions_are_bounded(server: Database) -> None:
    begin = executed(server)
    for first in (0, 1000):
        values = ", ".join(f"({first + n}, repeat('x', 50))" for n in range(300))
        statements = [f"XA START 'x{first}'", f"INSERT INTO i VALUES {values}", f"XA END 'x{first}'"]
        run(server, *statements, f"XA PREPARE 'x{first}'", database="ends")
    given: list[Item] = []
    with pytest.raises(UnsupportedTransactionError, match=r"more than 40,000 bytes.*XA RECOVER.*ledger\.max_bytes"):
        given.extend(items(server, begin, executed(server), prepared=PreparedXa(limit=40_000)))
    assert shape(given) == ["Commit"], "the first has room"


def batches(server: Database, begin: GtidSet, limit: int = 1 << 28) -> list[tuple[object, ...]]:
    """What is given, and where; a transaction's end by its GTID and place."""
    found = items(server, begin, executed(server), prepared=PreparedXa(limit), statements=True)
    return [
        (item.op, item.gtid, item.pos, item.tx_pos, item.ordinal, item.rows, item.keys, item.query)
        if isinstance(item, RowsBatch)
        else (item.gtid, item.pos, item.tx_pos)
        for item in found
        if not isinstance(item, Ddl)
    ]


MANY = [f"INSERT INTO i VALUES ({n}, repeat('x', 50))" for n in range(200)]
ROLLED_BACK = [TEMPORARY, "DELETE FROM i", "BEGIN", *MANY, "DROP TEMPORARY TABLE temp", "ROLLBACK"]


@pytest.mark.parametrize("held", [0, 150, 10_000])
@pytest.mark.lacks("mysql", "it writes no ROLLBACK behind rows")
@pytest.mark.lacks("mysql80", "it writes no ROLLBACK behind rows")
def test_rows_that_wait_in_a_file_are_the_same_as_those_that_wait_in_memory(
    server: Database, monkeypatch: pytest.MonkeyPatch, held: int
) -> None:
    begin = executed(server)
    others = "CREATE TABLE others (id int primary key) SELECT 1 AS id"
    for statements in (*CASES.values(), *(program(Random(seed)) for seed in range(8)), [others], ROLLED_BACK):
        tried(server, [*statements, "DROP TRIGGER IF EXISTS tr", "DROP TABLE IF EXISTS made"])
    tried(server, ["DELETE FROM i", "BEGIN", *MANY, "COMMIT"])
    plain = batches(server, begin)
    monkeypatch.setattr("streamer.protocol.holding.UNDOABLE", held)
    assert batches(server, begin) == plain


@pytest.mark.parametrize("room", ["too many rows", "no file", "a full disk"])
@pytest.mark.lacks("mysql", "it writes no ROLLBACK behind rows")
@pytest.mark.lacks("mysql80", "it writes no ROLLBACK behind rows")
def test_a_transaction_too_large_to_wait_for_is_given_while_it_is_read(
    server: Database, monkeypatch: pytest.MonkeyPatch, room: str
) -> None:
    begin = executed(server)
    tried(server, ["BEGIN", *MANY, "COMMIT"])
    plain = batches(server, begin)
    monkeypatch.setattr("streamer.protocol.holding.UNDOABLE", 2_000)
    limit = 10_000 if room == "too many rows" else 1 << 28
    if room == "no file":
        monkeypatch.setattr("tempfile.TemporaryFile", _refused)
    if room == "a full disk":
        monkeypatch.setattr("tempfile.TemporaryFile", Full)
    assert batches(server, begin, limit) == plain
    begin = executed(server)
    tried(server, ROLLED_BACK)
    with pytest.raises(UnsupportedTransactionError, match="takes back rows that were sent already") as caught:
        batches(server, begin, limit)
    last = [gtid for gtid in str(executed(server)).split(",") if gtid not in str(begin).split(",")]
    assert last[0] in str(caught.value), "it says which transaction"


def _refused(**_: object) -> None:
    raise FileNotFoundError("no folder for temporary files")


class Full(FileIO):
    """A file on a disk with room for 5,000 bytes."""

    def __init__(self, prefix: str, buffering: int) -> None:
        descriptor, path = mkstemp(prefix=prefix)
        os.unlink(path)
        super().__init__(descriptor, "r+")

    def write(self, data: memoryview, /) -> int:  # type: ignore[override]
        room = max(0, 5_000 - self.tell())
        if not room:
            raise OSError(errno.ENOSPC, "no space")
        return super().write(data[:room])
