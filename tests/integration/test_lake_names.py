"""Columns named as what the jobs add to a row, or so that SQL has to quote them: through the whole lake and back."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from contract.pipeline import Pipeline, load
from readers.lake import query
from spark.compaction.compaction import compact
from spark.history.history import History
from spark.job import JobFailedError
from spark.jobs.backfill import backfill
from spark.jobs.erase import erase
from spark.jobs.maintain import maintain
from spark.jobs.repair import repair
from spark.jobs.snapshot import snapshot
from spark.jobs.verify import verify
from spark.lake.lake import Lake
from stack.kafka import Kafka
from stack.mysql import MySQL
from tests.faults import kit
from tests.integration.decoding import run
from tests.integration.streaming import Streamer

# Of the frames of spark/, by whatever name a job gives to a column of its own beside a table's.
TAKEN = """
    db tbl key before after schema gtid ts n rows lake w0 k0 row_key t c g h l name since kind valid_from valid_to _n
    _row _wire _there _gone _k0 _0 _lake _rows _ended _before moment order
"""
# Of Spark, Delta and its MERGE, those that a table may have.
THEIRS = """
    filePath _metadata rowIndexCol deletionVectorId _corrupt_record _change_type _commit_version _commit_timestamp
    row_index _row_id path size stats file_path rowIndexSet __delta_internal_row_index _row_number_ num_inserted_rows
"""
QUOTED = ("a.b", "a`b", "a'b", 'a"b', "a%b", "a\\b", "äß", "$1", "a/b", "a~1b", "*")
KEYS = ("kind", "op", "_0")
CHANGED = r"2 of 2 table.* 1 row.s. changed in g, .* in n, "


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


@pytest.fixture
def streamer(
    mysql: MySQL, kafka: Kafka, twice: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Streamer]:
    monkeypatch.setenv("TEST_PASSWORD", mysql.password)
    # No VARCHAR for all of them: Great Expectations would look at the length of each.
    kinds = dict.fromkeys((TAKEN + THEIRS).split(), "text") | dict.fromkeys(QUOTED, "varchar(9)")
    key, values = ", ".join(map(quoted, KEYS)), ", ".join(f"{quoted(name)} {kind}" for name, kind in kinds.items())
    name = f"named{int(twice)}"  # the topics are of one Kafka
    run(mysql, f"CREATE DATABASE {name}")
    run(
        mysql, f"CREATE TABLE numbers (`op` int, {values}, PRIMARY KEY (`op`))",
        f"CREATE TABLE texts (`kind` varchar(9), `op` varchar(9), `_0` int, `key` int, `n` int, PRIMARY KEY ({key}))",
        *(f"INSERT INTO numbers (`op`, `g`, `a.b`) VALUES ({n}, 'g{n}', 'b{n}')" for n in range(8)),
        *(f"INSERT INTO texts VALUES ('k{n}', 'o', {n}, {n}, NULL)" for n in range(8)), database=name,
    )  # fmt: skip
    made = Streamer(tmp_path, mysql, kafka, name)
    made.file.write_text(made.file.read_text() + "quality: {wait_seconds: 120}\n")
    yield made
    made.close()


@pytest.mark.soak  # two minutes; names by themselves: tests/spark/test_column_names.py, tests/quality/test_odd_names.py
@pytest.mark.parametrize("twice", [False, True])
def test_any_name_passes_through_every_job(
    spark: SparkSession, mysql: MySQL, streamer: Streamer, monkeypatch: pytest.MonkeyPatch, twice: bool
) -> None:
    """`twice`: behind the first snapshot is merged a second one, too, and what the backfills brought is proven."""

    db = streamer.name

    def write(*statements: str) -> None:
        run(mysql, *statements, database=db)
        streamer.wait_until_released()

    def equal() -> bool:
        compact(spark, pipeline)
        return all(facts["equal"] for facts in verify(spark, pipeline, [])["tables"].values())

    streamer.started()
    pipeline = load(streamer.file)
    write("UPDATE numbers SET `a``b` = 'x' WHERE `op` = 1", "UPDATE texts SET `n` = 1 WHERE `_0` = 1")
    compact(spark, pipeline)
    snapshot(spark, pipeline, [])
    write("UPDATE numbers SET `_there` = 'x', `moment` = 'm' WHERE `op` = 2", "DELETE FROM texts WHERE `_0` = 2")
    if twice:
        compact(spark, pipeline)
    write("UPDATE numbers SET `op` = 100, `filePath` = 'f', `_corrupt_record` = 'c', `_metadata` = 'm' WHERE `op` = 3",
          "UPDATE texts SET `op` = 'p' WHERE `_0` = 3",
          "DELETE FROM numbers WHERE `op` = 4", "INSERT INTO texts VALUES ('k', 'o', 9, 9, 9)")  # fmt: skip
    if twice:
        snapshot(spark, pipeline, [])
    compact(spark, pipeline)

    tables = {
        f"{db}.numbers": kit.changed("op", 1, "g", "string"),
        f"{db}.texts": kit.changed("_0", 1, "n", "bigint"),
    }
    for (table, fault), source in zip(tables.items(), ("changes", "kafka"), strict=True):
        kit.damage(spark, pipeline, table, [fault])
        backfill(spark, pipeline, [table], source=source)
    assert not twice or equal()
    compact(spark, pipeline)
    for table, fault in tables.items():
        kit.damage(spark, pipeline, table, [fault])
    with monkeypatch.context() as patch:
        if not twice:  # the last check has expectations in any case
            patch.setattr("spark.jobs.verify._expectations", lambda *_: {})
        with pytest.raises(JobFailedError, match=CHANGED):
            verify(spark, pipeline, [])
    assert len(repair(spark, pipeline, [], by="a test")["parts"]) == 2
    write("DELETE FROM texts WHERE `_0` = 5")
    assert erase(spark, pipeline, [f"{db}.texts"], '[{"kind": "k5", "op": "o", "_0": 5}]', now="yes", by="ada")
    maintain(spark, pipeline, [])
    assert equal()
    _past_has_the_tables_values_and_its_own(spark, pipeline)


def _past_has_the_tables_values_and_its_own(spark: SparkSession, pipeline: Pipeline) -> None:
    wanted = "SELECT moment, _there, {0}a.b{0}, valid_from, _valid_to IS NULL FROM {1} WHERE op = 2"
    versions = [("m", "x", "b2", None, True), (None, None, "b2", None, False)]
    history = History(spark, Lake(spark, pipeline), pipeline.name, "numbers")
    history.versions().createOrReplaceTempView("versions")
    assert sorted(map(tuple, spark.sql(wanted.format("`", "versions")).collect()), key=str) == sorted(versions, key=str)
    found = query(pipeline, wanted.format('"', "numbers_history"))
    assert sorted(found.rows(), key=str) == sorted(versions, key=str)
    now = datetime.now(UTC)
    assert history.as_of(now).where("op = 2").select("moment").collect() == [("m",)]
    at = query(pipeline, f"SELECT moment, op FROM numbers_as_of('{now.isoformat()}') WHERE op = 2")
    assert list(at.rows()) == [("m", 2)]
    wanted = "before.moment", "after.moment", "changed"
    told = query(pipeline, f"SELECT {', '.join(wanted)} FROM numbers_changes WHERE after.op = 2")
    assert list(told.rows()) == [(None, "m", ["_there", "moment"])]
    again = history.changes().where("after.op = 2").selectExpr(*wanted).collect()
    assert [tuple(row) for row in again] == [(None, "m", ["_there", "moment"])]
