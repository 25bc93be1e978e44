"""A lake on a real S3 server from MySQL on: snapshot, compaction, proof and readers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import polars as pl
import pytest
from pyspark.sql import SparkSession

from contract import names
from contract.pipeline import Pipeline, load
from readers.lake import query
from readers.status import read
from readers.store import options
from spark.compaction.compaction import compact
from spark.jobs.backfill import backfill
from spark.jobs.erase import erase
from spark.jobs.repair import repair
from spark.jobs.snapshot import snapshot
from spark.jobs.verify import verify
from stack.mysql import MySQL
from stack.s3 import S3
from tests.faults import kit
from tests.integration.streaming import Make, Streamer, execute, insert, rows
from tests.s3_server import s3_server

NAME = "storedrows"


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3]:
    with s3_server(tmp_path_factory.mktemp("s3"), "lakes") as server:
        yield server


def on_s3(streamer: Streamer, s3: S3) -> Pipeline:
    text = streamer.file.read_text().partition("lake: ")[0]
    streamer.file.write_text(text + s3.lake_section(f"lakes/of/{streamer.name}"))
    return load(streamer.file)


@pytest.mark.soak
def test_snapshot_compaction_proof_and_readers(
    make: Make, mysql: MySQL, s3: S3, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_PASSWORD", mysql.password)
    monkeypatch.setenv("S3_SECRET", s3.secret)
    streamer = make(NAME)
    insert(mysql, NAME, 0, 200)
    pipeline = on_s3(streamer, s3)
    streamer.started()
    assert snapshot(spark, pipeline, [])["rows"] == 200
    execute(mysql, f"UPDATE {NAME}.t SET v = -1 WHERE id < 10", f"DELETE FROM {NAME}.t WHERE id = 11")
    streamer.wait_until_released()
    assert read(pipeline) is None
    assert compact(spark, pipeline)["changes"] == 11
    [told] = verify(spark, pipeline, [])["tables"].values()
    assert (told["equal"], told["lake_count"]) == (True, 199)

    wanted = sorted(rows(mysql, f"{NAME}.t").values())
    assert sorted(query(pipeline, "SELECT * FROM t").rows()) == wanted
    path = names.lake_table(pipeline, NAME, "t")
    read_by_polars = pl.read_delta(path, storage_options=options(pipeline)).drop("_seq", "_ts")
    assert sorted(read_by_polars.rows()) == wanted
    status = read(pipeline)
    assert status is not None
    assert status.tables[f"{NAME}.t"].rows == 199
    mended(spark, mysql, pipeline, streamer)


def mended(spark: SparkSession, mysql: MySQL, pipeline: Pipeline, streamer: Streamer) -> None:
    """Damaged, repaired and backfilled from MySQL; then a row is erased."""
    table = f"{NAME}.t"
    damage = [kit.missing("id", 20), kit.changed("id", 21, "v", "bigint"), kit.extra("id", 22, 900)]
    for job in (repair, partial(backfill, source="mysql")):
        kit.damage(spark, pipeline, table, damage)
        [part] = job(spark, pipeline, [table], **({"keys": "[20, 21, 900]"} if job is repair else {}))["parts"]
        found = compact(spark, pipeline)["parts"][part]
        assert (found["refused"], found["rows"]) == (None, {"changed": 1, "extra": 1, "missing": 1})
    execute(mysql, f"DELETE FROM {table} WHERE id = 30")
    streamer.wait_until_released()
    assert erase(spark, pipeline, [table], "[30]", now="yes", by="ada")["tables"][table]["changes"] == 1
    [told] = verify(spark, pipeline, [], whole="yes")["tables"].values()
    assert (told["equal"], told["lake_count"]) == (True, 198)
