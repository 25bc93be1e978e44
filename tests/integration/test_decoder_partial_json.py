"""PARTIAL_UPDATE_ROWS_EVENT: the diffs, applied to the before image, are the document that MySQL has then."""

from __future__ import annotations

import json

import pytest

from stack.database import Database
from streamer.protocol.model import Commit, RowsBatch
from tests.integration.decoding import found_of, pipeline, recorded, run

pytestmark = [
    pytest.mark.lacks("mariadb", "it writes whole documents"),
    pytest.mark.usefixtures("streams"),
]
DOCUMENT = {
    "a": 1, "b": [1, 2, {"c": "x"}], "o": {"p": {"q": [[0]]}}, "long name": "y" * 300, "é": 1.5, 'q"t': 3, "a.b": 1,
    "a[0]": 1, "\\": 2, "\n": 4, "": 0, "$": 9, "e": [], "s": 5,
}  # fmt: skip
# What `d` or `e` is set to; some of it no difference can tell, and MySQL writes whole documents then.
CHANGES = [
    "d = json_set(d, '$.a', 2)",
    "d = json_set(d, '$.a', 'a longer text than there was', '$.zz', null, '$.aa', true)",
    "d = json_remove(d, '$.b[1]')",
    "d = json_replace(d, '$.b[1].c', 'yy', '$.o.p.q[0][0]', 99)",
    "d = json_set(d, '$.\"long name\"', json_object('k', 1.5))",
    "d = json_set(d, '$.b[10]', 'at its end')",
    "d = json_set(d, '$.b[last]', 3, '$.b[last-1]', 4)",
    "d = json_set(d, '$.e[last]', 1)",
    "d = json_set(d, '$.e[last]', cast(18446744073709551615 as unsigned))",
    "d = json_set(d, '$.s[3]', 'made an array')",
    "d = json_set(d, '$.o.p.q[0][9]', json_array(1, json_object('x', json_array())))",
    "d = json_remove(d, '$.o.p', '$.\"q\\\\\"t\"')",
    "d = json_set(d, '$.\"a.b\"', 2, '$.\"a[0]\"', 3, '$.\"\"', 4, '$.\"$\"', 5, '$.\"é\"', 6)",
    "d = json_set(d, concat('$.', json_quote('\\\\')), 'q', concat('$.', json_quote('\\n')), 'r')",
    "d = json_set(d, '$.m', cast(-1.50 as decimal(10,2)), '$.t', cast('-12:00:00.5' as time(6)), '$.x', x'00ff')",
    "d = json_set(d, '$.b[0]', -1.5e300), e = json_remove(e, '$[0]'), v = 'w'",
    "e = json_set(e, '$[1]', date'2024-01-01')",
    "v = 'without a document'",
    "e = NULL",
    "d = json_set(d, '$.a', 0), n = json_set(n, '$.k', 1)",
    "e = '[7]', n = NULL",
    "d = json_set(d, '$', 'another')",
    "d = json_set(d, '$[1]', 'beside it')",
]


@pytest.fixture
def documents(server: Database) -> str:
    """A table with two rows."""
    name = "streams.documents"
    text = json.dumps(DOCUMENT, ensure_ascii=False).replace("\\", "\\\\").replace("'", "''")
    run(server, f"CREATE TABLE {name} (id int PRIMARY KEY, d json, v varchar(30), e json, n json)",
        f"INSERT INTO {name} VALUES (1, '{text}', 'v', '[1, 2, 3]', '{{}}'), (2, '{{\"a\": 5}}', 'v', '[]', 'null')",
    )  # fmt: skip
    return name


@pytest.mark.parametrize("compressed", ["OFF", pytest.param("ON", marks=pytest.mark.lacks("mysql80", "of 8.0.20"))])
def test_the_diffs_give_the_documents_that_a_query_says(server: Database, documents: str, compressed: str) -> None:
    """Pitfall "PARTIAL_UPDATE_ROWS_EVENT"."""
    columns = "id, cast(d as char), v, cast(e as char), cast(n as char)"
    said = []
    with recorded(server) as found, server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET binlog_row_value_options = PARTIAL_JSON")
        if compressed == "ON":
            cursor.execute("SET binlog_transaction_compression = ON")
        for change in CHANGES:
            cursor.execute(f"UPDATE {documents} SET {change}, v = concat(v, '.')")
            cursor.execute(f"SELECT {columns} FROM {documents} ORDER BY id")
            said.append([*cursor.fetchall()])
    batches = [item for item in found if isinstance(item, RowsBatch)]
    assert [item.op for item in batches] == ["u"] * len(CHANGES)
    assert sum(isinstance(item, Commit) for item in found) == len(CHANGES)
    for change, batch, rows in zip(CHANGES, batches, said, strict=True):
        assert [tuple(json.loads(row).values()) for row in batch.rows[1::2]] == rows, change
    before = [row for batch in batches[1:] for row in batch.rows[0::2]]
    assert before == [row for batch in batches[:-1] for row in batch.rows[1::2]]
    if compressed == "OFF":
        assert kinds(server, batches).count("Update_rows_partial") > len(CHANGES) / 2


def kinds(server: Database, batches: list[RowsBatch]) -> list[str]:
    """Of the events from the first batch on, in each file that has some: of the whole file it would take long."""
    first = {batch.file: batch.tx_pos for batch in reversed(batches)}
    with server.connect() as connection, connection.cursor() as cursor:
        found = []
        for place in first.items():
            cursor.execute("SHOW BINLOG EVENTS IN %s FROM %s LIMIT %s", (*place, 10 * len(batches)))
            found += [row[2] for row in cursor.fetchall()]
    return found


def test_the_option_is_nothing_to_be_mended(server: Database) -> None:
    run(server, "SET GLOBAL binlog_row_value_options = PARTIAL_JSON")
    try:
        assert found_of(pipeline(server)) == []
    finally:
        run(server, "SET GLOBAL binlog_row_value_options = ''")
