"""What is no record in the pipeline's own topics, and the way on that the message spells, on a real broker."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from contract import names
from contract.pipeline import Pipeline
from spark.compaction.compaction import compact
from spark.errors import LakeError
from spark.kafka.broker import Broker
from spark.lake.lake import Lake
from stack.kafka import Kafka
from streamer import schemas
from streamer.checkpoints.kafka import last
from streamer.delivery_errors import CheckpointError
from tests.integration.by_hand import make_topics, pipeline_of, send
from tests.integration.written import TABLES, Written, lacking
from tests.spark.changes_by_hand import ITEMS

NAME = "strange"
GARBAGE = b"garbage"
HEADRACE = sys.executable, "-m", "streamer.cli"


def way_on(error: LakeError) -> str:
    """Runs the command of the message."""
    found = re.search(r"`headrace (mend .*?)`", str(error))
    assert found is not None, error
    done = subprocess.run([*HEADRACE, *shlex.split(found[1])], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def refused(spark: SparkSession, pipeline: Pipeline) -> LakeError:
    with pytest.raises(LakeError) as caught:
        compact(spark, pipeline)
    return caught.value


@pytest.mark.soak  # its parts: tests/spark/test_own_records.py
def test_what_is_no_record_of_a_topic_of_the_pipeline_is_taken_back(
    spark: SparkSession, kafka: Kafka, tmp_path: Path
) -> None:
    written = Written(kafka, NAME)
    pipeline = pipeline_of(tmp_path, kafka, NAME)
    lake = Lake(spark, pipeline)
    written.snapshot(spark, lake, "1", 60)
    written.change("late", 70, 7)
    written.statement("nothing", 71, "create")
    written.released(80)
    compact(spark, pipeline)
    assert lacking(pipeline) == []

    # One that has a key of its own, and one that hides a shape.
    send(kafka, names.schemas_topic(pipeline), (b"strange", GARBAGE))
    assert "a tombstone" in way_on(refused(spark, pipeline))
    send(kafka, names.schemas_topic(pipeline), (b"late", GARBAGE))
    with pytest.raises(CheckpointError, match=r"b'late' is no table schema.*keep it out"):
        schemas.read(pipeline)
    assert "again" in way_on(refused(spark, pipeline))
    assert {shape.table for shape in schemas.read(pipeline)} == {*TABLES}

    send(kafka, names.commit_log_topic(pipeline), (NAME.encode(), GARBAGE))
    with pytest.raises(CheckpointError, match="no checkpoint: Invalid JSON"):
        last(pipeline)
    assert "again" in way_on(refused(spark, pipeline))
    found = last(pipeline)
    assert found is not None
    assert found == Broker(pipeline).checkpoint() == written.checkpoint(80)
    compact(spark, pipeline)
    assert lacking(pipeline) == []

    # A statement that nobody can read may have made any table stale.
    written.change("late", 81, 8)
    written.statement("whole", 82)
    send(kafka, names.ddl_topic(pipeline), (b"key", GARBAGE))
    written.statement("early", 83)
    written.released(90)
    error = refused(spark, pipeline)
    assert "partition 0, offset 2, with the key 'key', is no statement" in str(error)
    assert str(refused(spark, pipeline)) == str(error)
    assert "each table counts as not snapshotted" in way_on(error)
    told = compact(spark, pipeline)["tables"]
    assert lacking(pipeline) == sorted(TABLES)
    assert "partition of early" in told[f"{NAME}.early"]["stale"]  # what came behind it is read
    written.snapshot(spark, lake, "2", 100)
    compact(spark, pipeline)
    assert lacking(pipeline) == []


@pytest.mark.parametrize("what", ["another topic", "no such record", "one that can be read", "one that is passed by"])
def test_no_record_that_counts_is_taken_back(kafka: Kafka, tmp_path: Path, what: str) -> None:
    pipeline = pipeline_of(tmp_path, kafka, f"whole{len(what)}")
    topic = names.schemas_topic(pipeline)
    good = ITEMS.model_dump_json().encode()
    make_topics(kafka, topic)
    send(kafka, topic, (b"late", GARBAGE), (b"late", good))
    place, said = {
        "another topic": ([f"{pipeline.name}.x", "0", "0"], "none of the topics"),
        "no such record": ([topic, "0", "7"], "no record at offset 7"),
        "one that can be read": ([topic, "0", "1"], "can be read"),
        "one that is passed by": ([topic, "0", "0"], "it is passed by"),
    }[what]
    command = [*HEADRACE, "mend", str(pipeline.path), *place]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (1, "")
    assert said in done.stderr
    assert len(schemas.read(pipeline)) == 1
