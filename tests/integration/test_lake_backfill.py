"""A damaged table made anew from its changes, from Kafka and from MySQL: the same rows, which are the source's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import OFFSET_END, TopicPartition
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession

from contract.pipeline import Pipeline, load
from spark.compaction.compaction import compact
from spark.errors import LakeError
from spark.jobs.backfill import backfill
from spark.jobs.snapshot import snapshot
from spark.jobs.verify import verify
from spark.lake.lake import Lake
from stack.database import Database
from stack.kafka import Kafka
from tests.faults import kit
from tests.integration.conftest import SERVERS
from tests.integration.decoding import run
from tests.integration.streaming import Streamer
from tests.integration.test_erase import compacting

pytestmark = pytest.mark.usefixtures("without_expectations")

ROWS = 30
SOURCES = ("changes", "kafka", "mysql")
# Of the rows 5, 9, 20, 103 that are wrong: source, what is chosen, and which it mends. `{altered}`: the time at which
# 5 and 103 have changed.
PARTS: list[tuple[str, dict[str, str], set[int]]] = [
    ("changes", {"since": "{altered}"}, {5, 103}),
    ("kafka", {"from": "10", "to": "103"}, {20, 103}),
    ("mysql", {"since": "{altered}"}, {5, 103}),
]
MORE_PARTS: list[tuple[str, dict[str, str], set[int]]] = [
    ("changes", {"since": "{altered}"}, {5, 103}),
    ("changes", {"from": "10", "to": "103"}, {20, 103}),
    ("kafka", {"since": "{altered}"}, {5, 103}),
    ("kafka", {"keys": "[9, 20]"}, {9, 20}),
    ("mysql", {"from": "5", "to": "9"}, {5, 9}),
    ("mysql", {"keys": "[20]"}, {20}),
]
TWICE = {("changes", "since")}  # the second finds nothing wrong
# The server, and those of which a second backfill follows, which finds nothing wrong. A repair of MySQL's rows:
# test_lake_repair.py.
FORMS = [
    pytest.param("mariadb", ("changes",), id="mariadb"),
    *(pytest.param(name, SOURCES, id=f"{name}-again", marks=pytest.mark.soak) for name in SERVERS),
]


@pytest.fixture
def streamer(
    server: Database, kafka: Kafka, again: Sequence[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Streamer]:
    monkeypatch.setenv("TEST_PASSWORD", server.password)
    items = [f"({n}, {n}.5, 'b{n}')" for n in range(1, ROWS + 1)]
    name = f"backfilled{server.name}{len(again)}"  # the topics are of one Kafka
    run(
        server, f"CREATE DATABASE {name}", f"USE {name}",
        "CREATE TABLE items (id int PRIMARY KEY, a decimal(9,1), b varchar(20))",
        f"INSERT INTO items VALUES {', '.join(items)}",
    )  # fmt: skip
    made = Streamer(tmp_path, server, kafka, name)
    made.file.write_text(made.file.read_text() + "quality: {wait_seconds: 60}\n")
    yield made
    made.close()


def rows(spark: SparkSession, pipeline: Pipeline) -> list[tuple[Any, ...]]:
    frame = (
        spark.read.format("delta").load(Lake(spark, pipeline).table(pipeline.name, "items")).select("id", "a", "b", "c")
    )
    return sorted(tuple(row) for row in frame.collect())


@pytest.mark.parametrize(("server", "again"), FORMS, indirect=["server"])
def test_the_rows_are_the_same_whichever_the_source(
    spark: SparkSession, server: Database, streamer: Streamer, again: Sequence[str]
) -> None:
    table = f"{streamer.name}.items"
    streamer.started()
    pipeline = load(streamer.file)
    with pytest.raises(LakeError, match="run a snapshot and a compaction first"):
        backfill(spark, pipeline, [table])
    run(server, "UPDATE items SET b = 'before' WHERE id = 1", database=streamer.name)
    streamer.wait_until_released()
    snapshot(spark, pipeline, [])
    compact(spark, pipeline)
    altered = datetime.now(UTC).replace(microsecond=0).isoformat()  # MariaDB's binlog tells seconds
    run(
        server, "UPDATE items SET a = 7 WHERE id = 2", "UPDATE items SET id = 103 WHERE id = 3",
        "DELETE FROM items WHERE id = 4", "ALTER TABLE items ADD COLUMN c int", "UPDATE items SET c = 5 WHERE id = 5",
        "INSERT INTO items VALUES (200, 1, 'n', 2)", database=streamer.name,
    )  # fmt: skip
    streamer.wait_until_released()
    compact(spark, pipeline)
    right, version = rows(spark, pipeline), kit.version_of(spark, pipeline, table)
    assert [row[0] for row in right] == [1, 2, *range(5, ROWS + 1), 103, 200]

    def parts(*sources: str) -> None:
        for source, given, mended in [*PARTS, *(MORE_PARTS if len(again) == len(SOURCES) else [])]:
            if source not in sources:
                continue
            kit.restore(spark, pipeline, table, version)
            kit.damage(spark, pipeline, table, [
                kit.missing("id", 5), kit.missing("id", 9), kit.changed("id", 20, "b", "string"),
                kit.changed("id", 103, "b", "string"),
            ])  # fmt: skip
            times = {name: text.format(altered=altered) for name, text in given.items()}
            for wrong in (len(mended), *((0,) if (source, *given) in TWICE else ())):
                [id] = backfill(spark, pipeline, [table], source=source, **times)["parts"]
                streamer.wait_until_released()
                assert sum(compact(spark, pipeline)["parts"][id]["rows"].values()) == wrong, (source, given)
                wrong_still = {row[0] for row in set(right) ^ set(rows(spark, pipeline))}
                assert wrong_still == {5, 9, 20, 103} - mended, (source, given)

    parts("changes", "kafka")  # before rows are mended from the source, of which no change says what they are
    for source in SOURCES:
        kit.restore(spark, pipeline, table, version)
        kit.damage(spark, pipeline, table, [
            kit.missing("id", 5), kit.extra("id", 1, 3), kit.duplicate("id", 2), kit.changed("id", 103, "b", "string"),
            kit.missing("id", 20), kit.missing("id", 200), kit.extra("id", 1, 4, "resurrected row"),
        ])  # fmt: skip
        assert rows(spark, pipeline) != right
        for wrong in ({"missing": 3, "extra": 2, "duplicate": 1, "changed": 1}, *([{}] if source in again else [])):
            [id] = backfill(spark, pipeline, [table], source=source)["parts"]
            streamer.wait_until_released()
            assert compact(spark, pipeline)["parts"][id]["rows"] == wrong, source
            assert rows(spark, pipeline) == right, source
    parts("mysql")
    kit.restore(spark, pipeline, table, version)
    assert verify(spark, pipeline, [], compact="yes")["tables"][table]["equal"]
    client = AdminClient({"bootstrap.servers": streamer.kafka.address})
    all = [TopicPartition(f"{streamer.name}.{streamer.name}.items", number, OFFSET_END) for number in (0, 1)]
    for done in client.delete_records(all).values():
        done.result(30)
    with pytest.raises(LakeError, match="7 of these rows were mended from the source since the snapshot"):
        backfill(spark, pipeline, [table])
    with pytest.raises(LakeError, match=r"Kafka has deleted records of .* take them from changes or mysql instead"):
        backfill(spark, pipeline, [table], source="kafka", keys="[9]")
    compacting(streamer.kafka, f"{streamer.name}.{streamer.name}.items")
    with pytest.raises(LakeError, match=r"has cleanup\.policy compact,delete, and not delete.* would come back"):
        backfill(spark, pipeline, [table], source="kafka", keys="[9]")
