"""One workload, streamed by Headrace and by a real Debezium into one broker: both programs' records, table by table,
in Headrace's own form and in Debezium's with schemas.

Every statement stands here because a streamer has got it wrong somewhere: key updates, many rows in one event, many
tables in one transaction, what was rolled back, and each type's edge values.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from confluent_kafka.admin import AdminClient

from contract import names
from contract.pipeline import load
from contract.pipeline_records import DebeziumModes, Records
from contract.schema import TableSchema
from stack.database import Database
from stack.debezium import Debezium, connector
from stack.kafka import Kafka
from stack.ports import free_port
from streamer.outgoing.debezium.encoder import DebeziumRecords
from streamer.outgoing.record import Outgoing
from tests.integration.decoding import run
from tests.integration.edge_values import CASES, cases, inserts, spelling
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
    "CREATE TABLE xa_one (id INT PRIMARY KEY, v VARCHAR(20))",
    "CREATE TABLE xa_two (id INT PRIMARY KEY, v VARCHAR(20))",
    "CREATE TABLE last (id INT PRIMARY KEY)",
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
    "SET timestamp = UNIX_TIMESTAMP() - 60",  # a minute from the statement to the commit
    "INSERT INTO orders VALUES (7, 7, 'seven', 7)",
    "SET timestamp = DEFAULT",
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
XA = (  # none is rolled back behind its PREPARE: Debezium sends its rows all the same
    "XA START 'two phases'",
    "INSERT INTO xa_one VALUES (1, 'a'), (2, 'b')",
    "INSERT INTO xa_two VALUES (1, 'c')",
    "UPDATE xa_one SET id = 3 WHERE id = 2",
    "XA END 'two phases'",
    "XA PREPARE 'two phases'",
    "XA COMMIT 'two phases'",
    "XA START 'one phase'",
    "DELETE xa_one, xa_two FROM xa_one JOIN xa_two ON xa_one.id = xa_two.id",
    "XA END 'one phase'",
    "XA COMMIT 'one phase' ONE PHASE",
)
# MySQL has it since 8.0.20. MariaDB's log_bin_compress is left out: Debezium passes by such rows, and says nothing.
COMPRESSED = (
    "SET binlog_transaction_compression = ON",
    "BEGIN",
    f"INSERT INTO orders VALUES (12, 12, '{'x' * 40}', 12), (13, 12, '{'x' * 40}', 12)",
    "UPDATE orders SET id = 14, note = NULL WHERE id = 13",
    "INSERT INTO items VALUES (1, 'compressed', 12), (2, 'compressed', 12)",
    "DELETE FROM items WHERE line = 2",
    "COMMIT",
    "SET binlog_transaction_compression = OFF",
)
# binlog_row_value_options = PARTIAL_JSON is left out: Debezium passes by such an update, and says nothing.


EXACTLY = {"decimal": "string", "time": "isostring", "bigint_unsigned": "precise", "binary": "base64"}
OTHERWISE = {"decimal": "double", "time": "connect", "bigint_unsigned": "long", "binary": "base64-url-safe"}
SETTINGS = {  # of the pipeline file, and Debezium's own of the same meaning
    "decimal": "decimal.handling.mode", "time": "time.precision.mode",
    "bigint_unsigned": "bigint.unsigned.handling.mode", "binary": "binary.handling.mode",
}  # fmt: skip
WITH_SCHEMAS = {
    f"{part}.converter{setting}": value
    for part in ("key", "value")
    for setting, value in (("", "org.apache.kafka.connect.json.JsonConverter"), (".schemas.enable", "true"))
}
ByTable = dict[str, list[Record]]


class Formed(NamedTuple):
    """Records with schema and payload, in one of the ways to show values: ours in Debezium's form, and Debezium's.
    `beside`: of transactions; `gone`: tombstones' keys; ours, then Debezium's, where they were sent."""

    ours: ByTable
    theirs: ByTable
    beside: tuple[list[Record], list[Record]] | None = None
    gone: tuple[list[Any], list[Any]] = ([], [])


class Streamed(NamedTuple):
    """The records by table: ours in the order of seq, Debezium's in that of its topics. `truncates`: ours, which
    Debezium has none of. `schemas`: by table and version. `formed`: in Debezium's form, by the way that values are
    shown."""

    ours: ByTable
    theirs: ByTable
    truncates: list[Record]
    schemas: dict[tuple[str, int], TableSchema]
    formed: dict[str, Formed]


def streamed(databases: list[Database], kafka: Kafka, folder: Path) -> dict[str, Streamed]:
    """By the server's name."""
    connectors: dict[str, dict[str, dict[str, str]]] = {}  # by flavor
    for database in databases:
        db = db_of(database)
        run(database, f"DROP DATABASE IF EXISTS {db}", f"CREATE DATABASE {db}")
        tables = (*(spelled(database, table) for table in TABLES), edge_table(database))
        run(database, "SET sql_mode = ''", *tables, database=db)
        beside(database)
        for number, (name, modes) in enumerate(ways(database).items()):
            more = {SETTINGS[mode]: value for mode, value in modes.items()} | WITH_SCHEMAS
            more["database.server.id"] = str(5_000_000 + 100_000 * number + database.port)
            if name.endswith("plainly"):
                more |= {"provide.transaction.metadata": "true", "tombstones.on.delete": "true"}
            settings = connector(database, kafka, name, f"{db}\\..*", more)
            connectors.setdefault(database.flavor, {})[name] = settings
    peers = [worker(folder, kafka, flavor, connectors[flavor]) for flavor in sorted(connectors)]
    streamers = [Streamer(folder, database, kafka, db_of(database)) for database in databases]
    formed = in_debeziums_form(folder, databases[0], kafka)
    try:
        with ThreadPoolExecutor() as starting:
            list(starting.map(lambda one: one.start(), (*peers, *streamers, formed)))
        for streamer in (*streamers, formed):
            streamer.wait_until_streaming()
        for database in databases:
            work(database)
        formed.wait_until_released()
        return {streamer.mysql.name: collected(streamer, kafka) for streamer in streamers}
    finally:
        for streamer in (*streamers, formed):
            streamer.close()
        for peer in peers:
            peer.kill()  # its data is nobody's any more, and its stop takes seconds


def beside(database: Database) -> None:
    """Another's table on the same server, of a type that Debezium cannot parse: it is none of what it captures."""
    if database.flavor == "mariadb":
        run(database, "CREATE DATABASE IF NOT EXISTS others", "CREATE OR REPLACE TABLE others.hosts (address INET6)")


def worker(folder: Path, kafka: Kafka, flavor: str, connectors: dict[str, dict[str, str]]) -> Debezium:
    options = ("-Xmx512m", "-XX:TieredStopAtLevel=1")
    return Debezium(folder / f"debezium-{flavor}", free_port(), kafka, connectors, options, flavor)


def ways(database: Database) -> dict[str, dict[str, str]]:
    """The connectors' names, and how each shows values."""
    found = {f"debezium-{database.name}": EXACTLY}
    if database.name == "mysql":
        return found | {"debezium-mysql-plainly": DebeziumModes().model_dump()}
    return found | {f"debezium-{database.name}-otherwise": OTHERWISE}


def in_debeziums_form(folder: Path, database: Database, kafka: Kafka) -> Streamer:
    """A pipeline over the same database, by the example of docs/debezium.md."""
    streamer = Streamer(folder, database, kafka, "peersplainly")
    page = (Path(__file__).parents[2] / "docs" / "debezium.md").read_text()
    [asked] = re.findall(r"```yaml\n(records:.*?)```", page, re.DOTALL)
    text = streamer.file.read_text().replace('["peersplainly.*"]', f'["{db_of(database)}.*"]')
    streamer.file.write_text(re.sub(r"(?m)^lake: .*$", asked, text))
    return streamer


STOPS = re.compile("inet|compressed")  # types at which its connector for MariaDB fails
DOUBLED = re.compile(r"float\(.*,")  # whose field is a double there, as docs/debezium.md tells


def edge_cases(database: Database) -> dict[str, Sequence[str]]:
    """Those of all MySQLs, or MariaDB's."""
    found = CASES if database.flavor == "mysql" else cases(database)
    return {kind: values for kind, values in found.items() if not (STOPS.search(kind) or DOUBLED.search(kind))}


def edge_table(database: Database) -> str:
    columns = ", ".join(f"`c{n}` {kind}" for n, kind in enumerate(edge_cases(database)))
    return f"CREATE TABLE edge (id INT PRIMARY KEY, {columns}) ROW_FORMAT=DYNAMIC"


def db_of(database: Database) -> str:
    return f"peers{database.name}"


NO_VECTOR = (("VECTOR(3)", "INT"), ("TO_VECTOR('[1,-0.1,3e38]')", "1"))
UNKNOWN = {"mysql80": ((" INVISIBLE", ""), *NO_VECTOR), "mariadb": NO_VECTOR}


def spelled(database: Database, statement: str) -> str:
    """In the words that this server knows."""
    for newer, older in UNKNOWN.get(database.name, ()):
        statement = statement.replace(newer, older)
    return statement


def work(database: Database) -> None:
    db = db_of(database)
    run(database, *XA, *(COMPRESSED if database.name == "mysql" else ()), database=db)
    run(database, *(spelled(database, statement) for statement in WORKLOAD), database=db)
    edges = (text.replace("edges.edge", "edge").replace(*spelling(database)) for text in inserts(edge_cases(database)))
    run(database, "SET sql_mode = ''", "SET NAMES utf8mb4", *edges, database=db)
    run(database, "INSERT INTO last VALUES (1)", database=db)


def collected(streamer: Streamer, kafka: Kafka) -> Streamed:
    streamer.wait_until_released()
    theirs = {name: awaited(kafka, f"{name}.{streamer.name}.") for name in ways(streamer.mysql)}
    ours = by_table(kafka, f"{streamer.name}.{streamer.name}.")
    truncates = [record for rows in ours.values() for record in rows if record.value["op"] == "t"]
    ours = {table: [record for record in rows if record not in truncates] for table, rows in ours.items()}
    ours = {table: sorted(rows, key=lambda record: record.seq) for table, rows in ours.items()}
    found = [TableSchema.model_validate(record.value) for record in records(kafka, f"{streamer.name}.schemas")]
    schemas = {(schema.table, schema.version): schema for schema in found}
    first = f"debezium-{streamer.mysql.name}"
    plain = {table: [payload(record) for record in rows] for table, rows in theirs[first].items()}
    formed = {
        name: sent(kafka, streamer.name, theirs[name])
        if name.endswith("plainly")
        else Formed(encoded(streamer, ours, schemas, modes), theirs[name])
        for name, modes in ways(streamer.mysql).items()
    }
    return Streamed(ours, plain, truncates, schemas, formed)


def awaited(kafka: Kafka, prefix: str) -> ByTable:
    """All of them, once the last table's is there."""
    until = time.monotonic() + PATIENCE_SECONDS
    while not any(records(kafka, topic) for topic in topics(kafka, f"{prefix}last")):
        assert time.monotonic() < until, "Debezium is late"
        time.sleep(0.3)
    return by_table(kafka, prefix)


def sent(kafka: Kafka, db: str, theirs: ByTable) -> Formed:
    """What a streamer sent in Debezium's form."""
    ours = by_table(kafka, f"peersplainly.{db}.")
    kept = {table: [one for one in rows if one.value["payload"]["op"] != "t"] for table, rows in ours.items()}
    ordered = {table: sorted(rows, key=place) for table, rows in kept.items()}
    beside = records(kafka, "peersplainly.transactions"), records(kafka, "debezium-mysql-plainly.transaction")
    gone = tombstones(kafka, f"peersplainly.{db}."), tombstones(kafka, f"debezium-mysql-plainly.{db}.")
    return Formed(ordered, theirs, beside, gone)


def tombstones(kafka: Kafka, prefix: str) -> list[Any]:
    return [record.key for topic in topics(kafka, prefix) for record in records(kafka, topic) if record.value is None]


def place(record: Record) -> list[int]:
    found: list[int] = json.loads(record.value["payload"]["source"]["sequence"])
    return found


def encoded(
    streamer: Streamer, ours: ByTable, schemas: dict[tuple[str, int], TableSchema], modes: dict[str, str]
) -> ByTable:
    """Our records, brought into Debezium's form by the streamer's last step."""
    plain = load(streamer.file, secrets=False)
    asked = Records(format="debezium", debezium=DebeziumModes.model_validate(modes))
    form = DebeziumRecords(plain.model_copy(update={"records": asked}))

    def made(record: Record) -> Record:
        source = record.value["source"]
        topic = names.events_topic(plain, source["db"], source["table"])
        outgoing = Outgoing(topic, json.dumps(record.key).encode(), json.dumps(record.value).encode())
        done = form.row(outgoing, schemas[source["table"], source["schema"]])
        return Record(0, json.loads(done.key or b""), json.loads(done.value or b""))

    return {table: [made(record) for record in rows] for table, rows in ours.items()}


def payload(record: Record) -> Record:
    return record._replace(key=record.key["payload"], value=record.value["payload"])


def by_table(kafka: Kafka, prefix: str) -> ByTable:
    """The records of all topics with the prefix but tombstones, by the table that they name."""
    found: ByTable = {}
    for topic in topics(kafka, prefix):
        for record in records(kafka, topic):
            if record.value is not None:
                envelope = record.value.get("payload", record.value)
                found.setdefault(envelope["source"]["table"], []).append(record)
    return found


def topics(kafka: Kafka, prefix: str) -> list[str]:
    found = AdminClient({"bootstrap.servers": kafka.address}).list_topics(timeout=10).topics
    return sorted(topic for topic in found if topic.startswith(prefix))
