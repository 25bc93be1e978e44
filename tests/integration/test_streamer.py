"""The streamer's main road on real servers: start, rows, order, schemas, DDL, status."""

from __future__ import annotations

import json
from collections.abc import Callable

from contract.checkpoint import Checkpoint
from stack.kafka import Kafka
from stack.mysql import MySQL
from tests.integration.streaming import Make, execute, rows
from tests.integration.topic_records import records, replayed


def test_rows_arrive_in_order_with_their_envelope(make: Make, mysql: MySQL, kafka: Kafka) -> None:
    streamer = make("arrive").started()
    execute(
        mysql,
        "INSERT INTO arrive.t VALUES (1, 10, 'a'), (2, 20, 'b'), (3, 30, NULL)",
        "UPDATE arrive.t SET v = v + 1",
        "UPDATE arrive.t SET id = 4 WHERE id = 3",
        "DELETE FROM arrive.t WHERE id = 2",
    )
    status = streamer.wait_until_released()
    found = sorted(records(kafka, "arrive.arrive.t"), key=lambda record: record.seq)
    assert [(r.key["id"], r.value["op"]) for r in found] == [
        *[(1, "c"), (2, "c"), (3, "c")],
        *[(1, "u"), (2, "u"), (3, "u")],
        *[(3, "d"), (4, "c")],
        (2, "d"),
    ]
    assert found[3].value["before"] == {"id": 1, "v": 10, "name": "a"}
    assert found[3].value["after"] == {"id": 1, "v": 11, "name": "a"}
    assert found[2].value["after"] == {"id": 3, "v": 30, "name": None}
    assert {r.value["source"]["schema"] for r in found} == {1}
    assert status["events"]["tables"] == {"arrive.t": {"c": 3, "u": 4, "d": 1}} or status["events"]["released"] == 9
    [schema] = records(kafka, "arrive.schemas")
    assert schema.key == {"db": "arrive", "table": "t", "version": 1}
    assert schema.value["key"] == ["id"]
    assert streamer.stop() == 0


def test_latest_writes_its_checkpoint_before_the_first_record(make: Make, mysql: MySQL, kafka: Kafka) -> None:
    execute(mysql, "CREATE DATABASE IF NOT EXISTS early", "CREATE TABLE early.old (id INT PRIMARY KEY)")
    execute(mysql, "INSERT INTO early.old VALUES (1)")
    streamer = make("early").started()
    streamer.kill()
    [first] = [Checkpoint.model_validate(r.value) for r in records(kafka, "early.commit-log")]
    assert (first.events, first.pipeline) == (0, "early")
    execute(mysql, "INSERT INTO early.t VALUES (1, 1, 'while it was dead')")
    streamer.started().wait_until_released()
    assert len(records(kafka, "early.early.t")) == 1
    assert streamer.status()["schemas"] == {"early.t": 1}


def test_earliest_and_a_gtid_set(make: Make, mysql_server: Callable[..., MySQL], kafka: Kafka) -> None:
    # Of its own: the shared server's binlog begins with what other tests wrote, such as an XA transaction.
    mysql = mysql_server()
    make("past", mysql)
    execute(mysql, "INSERT INTO past.t VALUES (1, 1, 'x')")
    with mysql.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT @@global.gtid_executed")
        [executed] = cursor.fetchone()
    execute(mysql, "INSERT INTO past.t VALUES (2, 2, 'y')")
    make("past", mysql, start="earliest").started().wait_until_released()
    assert [r.key["id"] for r in sorted(records(kafka, "past.past.t"), key=lambda r: r.seq)] == [1, 2]
    later = make("past2", mysql, start=f'"{executed}"')
    later.file.write_text(later.file.read_text().replace("past2.*", "past.*"))
    later.started().wait_until_released()
    assert [r.key["id"] for r in records(kafka, "past2.past.t")] == [2]


def test_filtered_and_empty_transactions_move_the_checkpoint(make: Make, mysql: MySQL, kafka: Kafka) -> None:
    streamer = make("filtered").started()
    execute(mysql, "CREATE TABLE filtered.hidden1 (id INT PRIMARY KEY)")
    for n in range(50):
        execute(mysql, f"INSERT INTO filtered.hidden1 VALUES ({n})")
    status = streamer.wait_until_released()
    assert status["events"]["released"] == 0
    assert status["lag_seconds"] < 5
    streamer.wait_for(lambda status: status["lag_bytes"] == 0, 30)
    assert "headrace_lag_bytes" in streamer.metrics()


def test_a_new_shape_is_a_new_version_also_on_replay(make: Make, mysql: MySQL, kafka: Kafka) -> None:
    streamer = make("shapes").started()
    execute(
        mysql,
        "INSERT INTO shapes.t VALUES (1, 1, 'a')",
        "ALTER TABLE shapes.t ADD COLUMN extra INT",
        "INSERT INTO shapes.t VALUES (2, 2, 'b', 22)",
        "ALTER TABLE shapes.t DROP COLUMN extra",
        "INSERT INTO shapes.t VALUES (3, 3, 'c')",
    )
    streamer.wait_until_released()
    streamer.kill()
    first = {r.key["id"]: r.value["source"]["schema"] for r in records(kafka, "shapes.shapes.t")}
    assert first == {1: 1, 2: 2, 3: 3}
    streamer.started()
    execute(mysql, "INSERT INTO shapes.t VALUES (4, 4, 'd')")
    assert streamer.wait_until_released()["schemas"] == {"shapes.t": 3}
    assert len(records(kafka, "shapes.schemas")) == 3


def test_a_large_transaction_streams_through_a_small_ledger(make: Make, mysql: MySQL, kafka: Kafka) -> None:
    streamer = make("large", max_events=1000).started()
    values = ",".join(f"({n}, {n}, 'x')" for n in range(30_000))
    execute(mysql, f"INSERT INTO large.t VALUES {values}", "UPDATE large.t SET v = v + 1")
    status = streamer.wait_until_released()
    assert status["events"]["released"] == 60_000
    assert replayed(sorted(records(kafka, "large.large.t"), key=lambda r: r.seq)) == rows(mysql, "large.t")


def test_a_table_without_a_primary_key_stays_in_order(make: Make, mysql: MySQL, kafka: Kafka) -> None:
    streamer = make("keyless").started()
    execute(mysql, "CREATE TABLE keyless.log (line INT)")
    for n in range(40):
        execute(mysql, f"INSERT INTO keyless.log VALUES ({n})")
    execute(mysql, "UPDATE keyless.log SET line = line + 1", "DELETE FROM keyless.log WHERE line > 30")
    streamer.wait_until_released()
    found = records(kafka, "keyless.keyless.log")
    assert {(record.partition, record.key) for record in found} == {(0, None)}
    assert [record.seq for record in found] == sorted(record.seq for record in found)
    assert [r.value["op"] for r in found] == ["c"] * 40 + ["u"] * 40 + ["d"] * 10


def test_ddl_that_changes_rows_is_warned_of_and_counted(make: Make, mysql: MySQL, kafka: Kafka) -> None:
    streamer = make("emptied").started()
    execute(
        mysql,
        "INSERT INTO emptied.t VALUES (1, 1, 'a')",
        "CREATE TABLE emptied.hidden1 (id INT PRIMARY KEY)",
        "TRUNCATE TABLE emptied.hidden1",
        "TRUNCATE TABLE emptied.t",
        "ALTER TABLE emptied.t ADD INDEX (v)",
        "ALTER TABLE emptied.t ADD COLUMN word VARCHAR(9) NOT NULL DEFAULT 's3cret'",
        "CREATE USER IF NOT EXISTS emptied IDENTIFIED BY 's3cret'",
        "INSERT INTO emptied.t VALUES (2, 2, 'b', 'c')",
        "DROP TABLE emptied.t",
    )
    status = streamer.wait_until_released()
    truncate, alter, drop = status["ddl"]["last"]
    assert (truncate["kind"], truncate["tables"]) == ("truncate", ["emptied.t"])
    assert drop["statement"] == "DROP TABLE `emptied`.`t` /* generated by server */"
    assert alter["tables"] == drop["tables"] == ["emptied.t"]
    assert alter["pos"] < drop["pos"]
    assert {kind: count for kind, count in status["ddl"]["counts"].items() if count} == {
        "truncate": 1,
        "alter": 1,
        "drop": 1,
    }
    warnings = [json.loads(line) for line in streamer.log().splitlines() if "DDL changed rows" in line]
    assert [warning["kind"] for warning in warnings] == ["alter", "drop"]
    assert "the lake carries what the shapes tell" in warnings[0]["meaning"]
    step = f"Run the DAG emptied.snapshot, or `headrace snapshot {streamer.file}`, for emptied.t"
    assert warnings[0]["next_step"] == f"{step}, if the lake's status says that it stays stale."
    assert warnings[1]["next_step"].endswith("if it is made again.")
    assert warnings[0]["gtid"] == alter["gtid"]
    assert "s3cret" not in streamer.log()
    found = sorted(records(kafka, "emptied.emptied.t"), key=lambda r: r.seq)
    assert [(r.value["op"], r.key and r.key["id"]) for r in found] == [("c", 1), ("t", None), ("t", None), ("c", 2)]
    assert {r.partition for r in found if r.key is None} == {0, 1}, "a truncation is told in each partition"
    told = [(r.key, r.value["kind"]) for r in records(kafka, "emptied.ddl")]
    table = {"db": "emptied", "table": "t"}
    kinds = ["truncate", "harmless", "alter", "drop"]
    assert told == [(table, kind) for kind in kinds], "in the binlog's order"
    shown = streamer.command("status").stdout
    assert "alter" in shown


def test_status_metrics_and_page(make: Make, mysql: MySQL, kafka: Kafka) -> None:
    import urllib.request

    streamer = make("shown").started()
    execute(mysql, "INSERT INTO shown.t VALUES (1, 1, 'a')")
    streamer.wait_until_released()
    base = f"http://127.0.0.1:{streamer.values['http']}"
    metrics = urllib.request.urlopen(f"{base}/metrics").read().decode()
    assert 'headrace_events_total{operation="create",pipeline="shown",table="shown.t"} 1.0' in metrics
    assert 'headrace_state{pipeline="shown",state="streaming"} 1.0' in metrics
    assert "headrace_lag_seconds" in metrics
    assert 'headrace_ddl_total{kind="truncate",pipeline="shown"} 0.0' in metrics
    assert "<title>Headrace</title>" in urllib.request.urlopen(base).read().decode()
    shown = streamer.command("status")
    assert shown.returncode == 0, shown.stderr
    assert "streaming" in shown.stdout
    assert "shown.t" in shown.stdout
    assert '"gtid_set"' in streamer.command("status", "--json").stdout
