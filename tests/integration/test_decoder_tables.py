"""Tables that a real server's rows events tell of: without a key, with hidden columns, very wide, very long."""

from __future__ import annotations

import json

import pytest

from stack.database import Database
from streamer.errors import MissingMetadataError
from streamer.protocol.model import Commit, Item, RowsBatch
from tests.integration.decoding import executed, items, recorded, rows, run

pytestmark = pytest.mark.usefixtures("streams")


COMPRESSED = "SET binlog_transaction_compression = ON"
LACKING = [
    pytest.mark.lacks("mysql80", "binlog_transaction_compression came with 8.0.20"),
    pytest.mark.lacks("mariadb", "it has no binlog_transaction_compression"),
]


@pytest.mark.parametrize("setting", ["SET @plain = 1", pytest.param(COMPRESSED, marks=LACKING)])
def test_rows_events_beyond_16_megabytes(server: Database, setting: str) -> None:
    run(server, "CREATE TABLE IF NOT EXISTS streams.big (id int primary key, v longtext)")
    with recorded(server) as found:
        run(
            server,
            setting,
            "BEGIN",
            "INSERT INTO big VALUES (1, repeat('ab', 8388592)), (2, repeat('c', 20000000))",
            "INSERT INTO big VALUES (3, 'small')",
            "COMMIT",
            "DELETE FROM big WHERE id < 3",
            "DROP TABLE big",
            database="streams",
        )
    sizes = [(op, len(row["v"])) for op, row in rows(found)]  # type: ignore[index]
    expected = [("c", 16777184), ("c", 20000000), ("c", 5), ("d", 16777184), ("d", 20000000)]
    assert sizes == expected


def test_a_table_without_transactions_and_one_without_key(server: Database) -> None:
    """Pitfall "tables with no key": the decoder gives their rows without a key."""
    with recorded(server) as found:
        run(
            server, "CREATE TABLE m (a int, b text) ENGINE=MyISAM", "INSERT INTO m VALUES (1, 'x'), (NULL, NULL)",
            "UPDATE m SET a = 2 WHERE a = 1", "DROP TABLE m", database="streams",
        )  # fmt: skip
    assert rows(found) == [
        ("c", {"a": 1, "b": "x"}), ("c", {"a": None, "b": None}), ("u", {"a": 1, "b": "x"}), ("u", {"a": 2, "b": "x"}),
    ]  # fmt: skip
    assert [item.keys for item in found if isinstance(item, RowsBatch)] == [[], []]
    assert [item.xid for item in found if isinstance(item, Commit)] == [None] * 4


def test_keys_come_in_key_order_with_generated_columns(server: Database) -> None:
    with recorded(server) as found:
        run(
            server,
            'CREATE TABLE k (a int, `b``"%s` varchar(9), d int as (a * 2) virtual, e int as (a * 3) stored, '
            'primary key (`b``"%s`, a), key f (d))',
            "INSERT INTO k (a, `b``\"%s`) VALUES (1, 'x\"y')",
            "DROP TABLE k",
            database="streams",
        )
    [batch] = [item for item in found if isinstance(item, RowsBatch)]
    assert json.loads(batch.rows[0]) == {"a": 1, 'b`"%s': 'x"y', "d": 2, "e": 3}
    assert batch.keys == [b'{"b`\\"%s":"x\\"y","a":1}']


@pytest.mark.lacks("mariadb", "no keys on expressions, no generated hidden keys")
@pytest.mark.lacks("mysql80", "hidden columns came with 8.0.23, generated hidden keys with 8.0.30")
def test_hidden_columns_are_columns_as_others(server: Database) -> None:
    with recorded(server) as found:
        run(
            server,
            "CREATE TABLE k (a int primary key, c int invisible default 5, d int as (a * 2) virtual invisible, "
            "key f ((a + 1)))",
            "INSERT INTO k (a) VALUES (1)",
            "SET sql_generate_invisible_primary_key = ON",
            "CREATE TABLE g (v int)",
            "INSERT INTO g VALUES (8)",
            "DROP TABLE k, g",
            database="streams",
        )
    batches = [item for item in found if isinstance(item, RowsBatch)]
    assert json.loads(batches[0].rows[0]) == {"a": 1, "c": 5, "d": 2}
    assert batches[1].keys == [b'{"my_row_id":1}']


def test_four_hundred_columns_with_many_combinations_of_null(server: Database) -> None:
    names = [f"c{n}" for n in range(400)]
    kinds = ["int", "text", "tinyint", "datetime", "smallint"]
    columns = ", ".join(f"{name} {kinds[n % 5]}" for n, name in enumerate(names))
    chosen = [names[n : n + 5] for n in range(300)]
    inserts = [
        f"INSERT INTO w (id, {', '.join(some)}) VALUES ({n}{', 1' * len(some)})" for n, some in enumerate(chosen)
    ]
    inserts = [text.replace(", 1", ", '2026-01-01'") for text in inserts]
    with recorded(server) as found:
        run(
            server, f"CREATE TABLE w (id int primary key, {columns})", "SET sql_mode = ''", *inserts, "DROP TABLE w",
            database="streams",
        )  # fmt: skip
    decoded = [row for _, row in rows(found)]
    assert [[name for name, value in row.items() if value is not None] for row in decoded] == [  # type: ignore[attr-defined]
        ["id", *some] for some in chosen
    ]


@pytest.mark.lacks("mariadb", "functional indexes")
def test_a_functional_index_is_no_column_or_stops_with_its_name(server: Database) -> None:
    begin = executed(server)
    run(server, "CREATE TABLE fi (id int primary key, a int, index ((a + 1)), index ((a + 2)))",
        "ALTER TABLE fi ADD b int", "INSERT INTO fi VALUES (1, 2, 3)", database="streams")  # fmt: skip
    given: list[Item] = []
    if server.name == "mysql80":
        with pytest.raises(MissingMetadataError, match=r"rows of streams\.fi.*functional index.*exclude"):
            given.extend(items(server, begin, executed(server)))
        return
    given.extend(items(server, begin, executed(server)))
    assert rows(given) == [("c", {"id": 1, "a": 2, "b": 3})]
