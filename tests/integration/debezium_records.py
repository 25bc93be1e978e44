"""One workload, streamed by Headrace and by a real Debezium into one broker: both programs' records, table by table.

Every statement stands here because a streamer has got it wrong somewhere: key updates, many rows in one event, many
tables in one transaction, what was rolled back, and each type's edge values.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import NamedTuple

from confluent_kafka.admin import AdminClient

from contract.schema import TableSchema
from stack.database import Database
from stack.debezium import Debezium, connector
from stack.kafka import Kafka
from stack.ports import free_port
from tests.integration.decoding import run
from tests.integration.edge_values import CASES, inserts, spelling
from tests.integration.streaming import Streamer
from tests.integration.topic_records import Record, records

PATIENCE_SECONDS = 60
TABLES = (
    "CREATE TABLE orders (id INT PRIMARY KEY, customer BIGINT, note VARCHAR(40), amount DECIMAL(10,2))",
    "CREATE TABLE items (line SMALLINT, sku VARCHAR(20), order_id INT, PRIMARY KEY (order_id, line))",
    "CREATE TABLE keyed (id BINARY(4), day DATE, price DECIMAL(6,2), v INT, PRIMARY KEY (price, id, day))",
    'CREATE TABLE `größe %s` (`na"me %d` VARCHAR(20) PRIMARY KEY, `日本` INT DEFAULT 7)',
    "CREATE TABLE odd (id INT PRIMARY KEY, e ENUM('a,b','c'), u TIMESTAMP(3) NULL, shape GEOMETRY, v VECTOR(3))",
    "CREATE TABLE covered (id INT PRIMARY KEY, a INT INVISIBLE, s INT AS (id + 1) STORED, w INT AS (id + 2) VIRTUAL)",
    "CREATE TABLE last (id INT PRIMARY KEY)",
    "CREATE TABLE edge (id INT PRIMARY KEY, {}) ROW_FORMAT=DYNAMIC".format(
        ", ".join(f"`c{n}` {kind}" for n, kind in enumerate(CASES))
    ),
)
WORKLOAD = (
    "INSERT INTO orders VALUES (1, 10, 'one', 1.5), (2, NULL, 'two', NULL), (3, 30, '', -0.01)",
    "UPDATE orders SET note = CONCAT(note, '!'), amount = NULL WHERE id < 3",
    "UPDATE orders SET id = id + 100 ORDER BY id DESC",
    "UPDATE orders SET id = 1, note = 'moved' WHERE id = 101",
    "UPDATE orders SET id = IF(id = 102, 2, id), customer = 5",
    "DELETE FROM orders WHERE id = 103",
    "REPLACE INTO orders VALUES (1, 11, 'replaced', 0)",
    "INSERT INTO orders VALUES (1, 1, 'x', 1) ON DUPLICATE KEY UPDATE note = 'duplicate'",
    "BEGIN",
    "INSERT INTO orders VALUES (7, 7, 'seven', 7)",
    "INSERT INTO items VALUES (1, 'a', 7), (2, 'b', 7)",
    "SAVEPOINT s",
    "INSERT INTO items VALUES (3, 'never', 7)",
    "ROLLBACK TO s",
    "UPDATE orders, items SET note = 'both', sku = 'both' WHERE orders.id = items.order_id",
    "UPDATE items SET line = line + 10 WHERE order_id = 7 AND line = 2",
    "DELETE orders, items FROM orders JOIN items ON orders.id = items.order_id",
    "COMMIT",
    "BEGIN",
    "INSERT INTO orders VALUES (8, 8, 'never', 8)",
    "ROLLBACK",
    "INSERT INTO keyed VALUES (X'00FF', '2024-02-29', 1.50, 1), ('ab', '2020-01-01', -2, NULL)",
    "UPDATE keyed SET v = 2",
    "UPDATE keyed SET price = price + 1",
    "INSERT INTO `größe %s` VALUES ('ü \\\\ \" €', 1), ('', NULL), ('x', DEFAULT)",
    "UPDATE `größe %s` SET `日本` = NULL",
    "INSERT INTO odd VALUES (1, 'a,b', '2026-01-01 00:00:00.500', ST_GeomFromText('POINT(1 2)', 4326), NULL)",
    "INSERT INTO odd VALUES (2, 'c', NULL, NULL, NULL)",
    "INSERT INTO odd VALUES (3, 'c', NULL, ST_GeomFromText('LINESTRING(0 0, 1 1)'), TO_VECTOR('[1,-0.1,3e38]'))",
    "INSERT INTO covered (id) VALUES (1)",
    "UPDATE covered SET id = 2",
    "ALTER TABLE orders ADD COLUMN more INT NOT NULL DEFAULT 9 FIRST, DROP COLUMN amount, RENAME COLUMN note TO remark",
    "INSERT INTO orders VALUES (4, 20, 2, 'altered')",
    "TRUNCATE TABLE orders",
    "INSERT INTO orders VALUES (1, 1, 1, 'after')",
)


class Streamed(NamedTuple):
    """The records by table: ours in the order of seq, Debezium's in that of its topics. `truncates`: ours, which
    Debezium has none of. `schemas`: by table and version."""

    ours: dict[str, list[Record]]
    theirs: dict[str, list[Record]]
    truncates: list[Record]
    schemas: dict[tuple[str, int], TableSchema]


def streamed(databases: list[Database], kafka: Kafka, folder: Path) -> dict[str, Streamed]:
    """By the server's name."""
    connectors = {}
    for database in databases:
        db, name = db_of(database), f"debezium-{database.name}"
        run(database, f"DROP DATABASE IF EXISTS {db}", f"CREATE DATABASE {db}")
        run(database, "SET sql_mode = ''", *(spelled(database, table) for table in TABLES), database=db)
        connectors[name] = connector(database, kafka, name, f"{db}\\..*", {})
    debezium = Debezium(folder / "debezium", free_port(), kafka, connectors, ("-Xmx512m", "-XX:TieredStopAtLevel=1"))
    streamers = [Streamer(folder, database, kafka, db_of(database)) for database in databases]
    try:
        debezium.start()
        for streamer in streamers:
            streamer.started()
        for database in databases:
            work(database)
        return {streamer.mysql.name: collected(streamer, kafka) for streamer in streamers}
    finally:
        for streamer in streamers:
            streamer.close()
        debezium.kill()  # its data is nobody's any more, and its stop takes seconds


def db_of(database: Database) -> str:
    return f"peers{database.name}"


def spelled(database: Database, statement: str) -> str:
    """In the words that this server knows."""
    if database.name == "mysql80":
        for newer, older in (" INVISIBLE", ""), ("VECTOR(3)", "INT"), ("TO_VECTOR('[1,-0.1,3e38]')", "1"):
            statement = statement.replace(newer, older)
    return statement


def work(database: Database) -> None:
    db = db_of(database)
    run(database, *(spelled(database, statement) for statement in WORKLOAD), database=db)
    edges = (text.replace("edges.edge", "edge").replace(*spelling(database)) for text in inserts(CASES))
    run(database, "SET sql_mode = ''", "SET NAMES utf8mb4", *edges, database=db)
    run(database, "INSERT INTO last VALUES (1)", database=db)


def collected(streamer: Streamer, kafka: Kafka) -> Streamed:
    name = f"debezium-{streamer.mysql.name}"
    streamer.wait_until_released()
    until = time.monotonic() + PATIENCE_SECONDS
    while "last" not in (theirs := by_table(kafka, f"{name}.{streamer.name}.")):
        assert time.monotonic() < until, "Debezium is late"
        time.sleep(0.3)
    ours = by_table(kafka, f"{streamer.name}.{streamer.name}.")
    truncates = [record for rows in ours.values() for record in rows if record.value["op"] == "t"]
    ours = {table: [record for record in rows if record not in truncates] for table, rows in ours.items()}
    found = [TableSchema.model_validate(record.value) for record in records(kafka, f"{streamer.name}.schemas")]
    return Streamed(
        {table: sorted(rows, key=lambda record: record.seq) for table, rows in ours.items()},
        theirs,
        truncates,
        {(schema.table, schema.version): schema for schema in found},
    )


def by_table(kafka: Kafka, prefix: str) -> dict[str, list[Record]]:
    """The records of all topics with the prefix, by the table that they name."""
    topics = AdminClient({"bootstrap.servers": kafka.address}).list_topics(timeout=10).topics
    found: dict[str, list[Record]] = {}
    for topic in sorted(topics):
        for record in records(kafka, topic) if topic.startswith(prefix) else ():
            found.setdefault(record.value["source"]["table"], []).append(record)
    return found
