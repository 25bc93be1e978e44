"""A server that goes away in the middle of a job: one message in due time, and the next run makes it right."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from pyspark.sql import SparkSession

from contract.pipeline import load
from spark.compaction.compaction import compact
from spark.failpoints import hooked
from spark.jobs.snapshot import snapshot
from spark.jobs.verify import verify
from spark.lake.lake import Lake
from spark.landing.changes import BOUNDS
from spark.proof.boundary import Read
from spark.proof.chunk_reads import ChunkReads
from stack.kafka import Kafka
from stack.mysql import MySQL
from stack.ports import free_port
from tests.integration.by_hand import make_topics, pipeline_of, send
from tests.integration.decoding import run
from tests.integration.proxied_kafka import proxied
from tests.integration.proxy import Proxy
from tests.integration.spark_jobs import message
from tests.integration.streaming import Streamer
from tests.spark.changes_by_hand import ITEMS, record

pytestmark = pytest.mark.usefixtures("without_expectations")

ROWS = 12_000
SERIES = f"WITH RECURSIVE s (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < {ROWS})"
FILL = (
    "CREATE TABLE t (id int PRIMARY KEY, weight double, noise varchar(200))",
    f"SET SESSION cte_max_recursion_depth = {ROWS}",
    f"INSERT INTO t {SERIES} SELECT n, n / 7, sha2(n, 512) FROM s",
)
CUT = 1_200_000  # bytes of the rows, which have nearly twice as many
READ = 5  # chunks of a check, behind which it is cut


@pytest.fixture
def proxy(mysql: MySQL) -> Iterator[Proxy]:
    made = Proxy(mysql.port)
    yield made
    made.cut()


@pytest.fixture(scope="module")
def cut_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Kafka, Proxy]]:
    with proxied(tmp_path_factory.mktemp("cut"), Proxy) as both:
        yield both


def cutting(proxy: Proxy) -> Callable[..., Read]:
    """Notes what was read of a chunk as ever; once, the server is gone behind that."""
    read_of, read = ChunkReads._read_of, list[Read]()

    def noted(reads: ChunkReads, *of_it: Any) -> Read:
        read.append(read_of(reads, *of_it))
        if len(read) == READ:
            proxy.cut()
        return read[-1]

    return noted


@pytest.mark.soak
def test_mysql_cut_in_the_middle_of_a_snapshot_and_of_a_check(
    spark: SparkSession, mysql: MySQL, kafka: Kafka, proxy: Proxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The streamer's server is the second of the file: what is cut is what is read of that one."""
    monkeypatch.setenv("TEST_PASSWORD", mysql.password)
    run(mysql, "CREATE DATABASE cutmysql")
    run(mysql, *FILL, database="cutmysql")
    streamer = Streamer(tmp_path, mysql, kafka, "cutmysql")
    try:
        streamer.started()
        run(mysql, "UPDATE t SET weight = 0 WHERE id < 100", database="cutmysql")
        streamer.wait_until_released()
    finally:
        streamer.close()
    dead = free_port()
    servers = f"port: {dead}\n  failover: ['127.0.0.1:{proxy.port}']"
    text = streamer.file.read_text().replace(f"port: {mysql.port}", servers)
    streamer.file.write_text(text + "snapshot: {chunk_rows: 1000, parallelism: 1}\n")
    pipeline = load(streamer.file)
    lake = Lake(spark, pipeline)
    monkeypatch.setattr("spark.proof.kept.SECONDS", 0)  # what a check reads in less would not be kept
    says = f"MySQL at 127.0.0.1:{dead} or 127.0.0.1:{proxy.port} does not answer"

    proxy.cut_after(CUT)
    assert says in message(spark, pipeline, snapshot, [])
    assert proxy.is_cut
    assert len(lake.list(lake.at("_staging"))) == 1, "the next one goes on with it"
    proxy.mend()
    assert snapshot(spark, pipeline, [])["rows"] == ROWS
    compact(spark, pipeline)
    monkeypatch.setattr(ChunkReads, "_read_of", cutting(proxy))
    assert says in message(spark, pipeline, verify, [])
    assert proxy.is_cut
    proxy.mend()
    [facts] = verify(spark, pipeline, [])["tables"].values()
    assert (facts["equal"], facts["lake_count"]) == (True, ROWS)
    assert facts["taken_up"] == READ < facts["chunks"], "it goes on with the one before"


@pytest.mark.parametrize("point", ["topic ids kept", "marks begun"])
def test_kafka_cut_while_a_compaction_asks_it_and_while_it_reads(
    spark: SparkSession, cut_kafka: tuple[Kafka, Proxy], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    """Before the query asks where the topic ends, and behind that, before it reads a record."""
    broker, proxy = cut_kafka
    name = point.replace(" ", "")
    topic, table = f"{name}.{name}.items", ITEMS.model_copy(update={"db": name})
    pipeline = pipeline_of(tmp_path, broker, name)
    file = Path(pipeline.path)
    file.write_text(file.read_text().replace(broker.address, f"127.0.0.1:{proxy.port}"))
    pipeline = load(file)
    make_topics(broker, topic, f"{name}.schemas")
    send(broker, f"{name}.schemas", (b"1", table.model_dump_json().encode()))
    row = {"id": 1, "name": "n", "price": "1.00"}
    key, value, *_ = record(0, (0, 1, 4, 0, 0), "c", row, None, table, pipeline=name)
    send(broker, topic, (key, value))
    for option in ("kafkaConsumer.pollTimeoutMs", "kafka.request.timeout.ms", "kafka.default.api.timeout.ms"):
        assert option in BOUNDS
        monkeypatch.setitem(BOUNDS, option, "4000")  # as they are: the soak below
    cut = list[float]()

    def at(reached: str) -> None:
        if reached == point and not cut:
            proxy.cut()
            cut.append(time.monotonic())

    with hooked(at):
        assert f"Kafka at {pipeline.kafka.bootstrap} does not answer" in message(spark, pipeline, compact)
    assert time.monotonic() - cut[0] < 90, "by Spark's own bounds three minutes"
    proxy.mend()
    assert compact(spark, pipeline)["tables"][f"{name}.items"]["rows"] == 1
    assert pl.scan_delta(Lake(spark, pipeline).table(name, "items")).select("id").collect()["id"].to_list() == [1]


@pytest.mark.soak  # a minute; killed runs: test_lake_kills.py
def test_kafka_killed_in_the_middle_of_a_compaction(
    spark: SparkSession, kafka_server: Callable[..., Kafka], tmp_path: Path
) -> None:
    broker = kafka_server()
    pipeline = pipeline_of(tmp_path, broker, "cutkafka", "compaction: {max_offsets_per_batch: 1000}\n")
    topic, table, rows = "cutkafka.cutkafka.items", ITEMS.model_copy(update={"db": "cutkafka"}), 4000
    make_topics(broker, topic, "cutkafka.schemas")
    send(broker, "cutkafka.schemas", (b"1", table.model_dump_json().encode()))
    row = {"name": "n", "price": "1.00"}
    made = (record(n, (0, 1, n, 0, 0), "c", {"id": n, **row}, None, table, pipeline="cutkafka") for n in range(rows))
    send(broker, topic, *((key, value) for key, value, *_ in made))
    lake, killed = Lake(spark, pipeline), list[float]()

    def kill_behind_the_first_batch() -> None:
        while not any(Path(lake.at("_marks")).glob("*-000000000000-*.json")):
            time.sleep(0.01)
        broker.kill()
        killed.append(time.monotonic())

    killing = threading.Thread(target=kill_behind_the_first_batch, daemon=True)
    killing.start()
    assert f"Kafka at {broker.address} does not answer" in message(spark, pipeline, compact)
    killing.join()
    assert time.monotonic() - killed[0] < 60
    assert 0 < spark.read.format("delta").load(lake.changes).count() < rows
    broker.start()
    compact(spark, pipeline)
    ids = pl.scan_delta(lake.table("cutkafka", "items")).select("id").collect()["id"]
    assert sorted(ids) == list(range(rows))
    assert spark.read.format("delta").load(lake.changes).count() == rows
