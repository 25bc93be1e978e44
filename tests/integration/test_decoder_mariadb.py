"""What only MariaDB's binlog has: its GTIDs, compressed events, types that look like others."""

from __future__ import annotations

import pytest

from stack.mariadb import MariaDB
from streamer.connection import BinlogConnection
from streamer.definitions import Definitions
from streamer.errors import UnclearTypeError
from streamer.preflight import run_checks
from streamer.protocol.model import Commit, Item
from streamer.transaction import BinlogDecoder
from tests.integration.decoding import executed, items, pipeline, recorded, rows, run, shape, source

ROOM = ["DROP DATABASE IF EXISTS own", "CREATE DATABASE own"]
TABLE = "CREATE TABLE t (id int primary key, v text)"


@pytest.fixture(autouse=True)
def room(mariadb: MariaDB) -> None:
    run(mariadb, *ROOM, "USE own", TABLE)


def test_gtids_and_places(mariadb: MariaDB) -> None:
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


def test_compressed_events_are_the_same_as_plain_ones(mariadb: MariaDB) -> None:
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
    [finding] = run_checks(pipeline(mariadb, include="own.*"))
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
    # In the same second the server's clock tells nothing yet; then the statement itself does, when it is read.
    with pytest.raises(UnclearTypeError, match=r"rows of own\.odd.*new snapshot"):
        given.extend(items(mariadb, begin, executed(mariadb)))
    assert shape(given)[:2] == ["c", "Commit"]


def test_rows_behind_an_alter_that_is_read_are_no_doubt(mariadb: MariaDB) -> None:
    value = "123e4567-e89b-12d3-a456-426655440000"
    insert = "INSERT INTO odd (id, c) VALUES ({}, '{}')"
    run(mariadb, "CREATE TABLE odd (id int primary key, c uuid)", database="own")
    decoder = BinlogDecoder(lambda db, table: True, definitions=Definitions(source(mariadb)))
    seen = executed(mariadb)
    connection = BinlogConnection(source(mariadb), seen)
    incoming = connection.chunks()

    def written(*statements: str) -> list[Item]:
        run(mariadb, *statements, database="own")
        end, found = executed(mariadb), list[Item]()
        while not seen.issuperset(end):
            found += decoder.feed(next(incoming))
            seen.add_all(item.gtid for item in found if isinstance(item, Commit))
        return found

    assert rows(written(insert.format(1, value))) == [("c", {"id": 1, "c": value})]
    # One that does not name the column leaves it as it was, also where the next one was made before this one is read.
    others = ["ALTER TABLE odd ADD d int", insert.format(2, value), "ALTER TABLE odd ADD INDEX (d)", "DO SLEEP(1.1)"]
    found = written(*others, insert.format(3, value), "ALTER TABLE odd DROP d, ENGINE = Aria")
    assert rows(found) == [("c", {"id": n, "c": value, "d": None}) for n in (2, 3)]
    found = written(insert.format(4, value), "ALTER TABLE odd MODIFY c binary(16)", insert.format(5, "x"))
    assert rows(found) == [("c", {"id": 4, "c": value}), ("c", {"id": 5, "c": "eAAAAAAAAAAAAAAAAAAAAA=="})]
    connection.close()
