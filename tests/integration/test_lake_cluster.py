"""The lake by a Spark cluster: the same as by one machine."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from contract.pipeline import load
from contract.schema import TableSchema
from readers.lake import query
from stack.kafka import Kafka
from stack.maven import spark_jars_folder, spark_s3_jars_folder
from stack.mysql import MySQL
from stack.ports import free_port
from stack.s3 import S3
from tests.faults import kit
from tests.integration.by_hand import make_topics, pipeline_of, send
from tests.integration.cluster import Cluster
from tests.integration.streaming import Make, execute, insert, rows
from tests.spark.changes_by_hand import ITEMS, record

MORE = """\
snapshot: {{chunk_rows: 100}}
maintenance: {{deleted_percent: 1}}
transforms:
  - {{script: upper.py, tables: ["{name}.t"]}}
"""
UPPER = """\
def transform(event):
    for image in (event.before, event.after):
        if image is not None:
            image["name"] = image["name"].upper()
    return event
"""
JAVA = {"HEADRACE_SPARK_JAVA": "-XX:TieredStopAtLevel=1"}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with ExitStack() as running:
        yield Cluster(tmp_path, running)


def shape(name: str, table: str) -> TableSchema:
    return ITEMS.model_copy(update={"db": name, "table": table})


def test_a_compaction(cluster: Cluster, kafka: Kafka, tmp_path: Path) -> None:
    """Of a lake in a folder that all machines see."""
    name, tables = "clustered", ("one", "two")
    pipeline = pipeline_of(tmp_path, kafka, name)
    make_topics(kafka, f"{name}.commit-log", f"{name}.schemas", *(f"{name}.{name}.{table}" for table in tables))
    for table in tables:
        schema = shape(name, table)
        send(kafka, f"{name}.schemas", (table.encode(), schema.model_dump_json().encode()))
        made = [(0, (0, 1, 10 + n, 0, 0), "c", {"id": n, "name": table, "price": "1.00"}) for n in range(50)]
        gone = [(0, (0, 1, 90 + n, 0, 0), "d", None, {"id": n, "name": table, "price": "1.00"}) for n in range(10)]
        messages = [record(*change, schema=schema, pipeline=name)[:2] for change in (*made, *gone)]  # type: ignore[arg-type]
        send(kafka, f"{name}.{name}.{table}", *messages)
    report = cluster.run("compact", Path(pipeline.path), {**JAVA, "HEADRACE_SPARK_JARS": str(spark_jars_folder())})
    assert (report["ok"], report["changes"]) == (True, 120), report
    for table in tables:
        found = pl.scan_delta(str(tmp_path / "lake" / name / name / table)).select("id", "name").collect().rows()
        assert sorted(found) == [(n, table) for n in range(10, 50)]
    assert len(cluster.used()) == 2


@pytest.mark.soak
@pytest.mark.timeout(1500)
def test_every_job_with_a_transform_and_a_lake_on_s3(
    cluster: Cluster, make: Make, mysql: MySQL, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "clusteredall"
    s3 = S3(tmp_path / "s3", free_port())
    cluster.running.callback(s3.kill)
    s3.start()
    s3.make_bucket("lakes")
    monkeypatch.setenv("TEST_PASSWORD", mysql.password)
    monkeypatch.setenv("S3_SECRET", s3.secret)
    streamer = make(name)
    (streamer.file.parent / "upper.py").write_text(UPPER)
    text = streamer.file.read_text().partition("lake: ")[0]
    streamer.file.write_text(text + s3.lake_section("lakes/cluster") + MORE.format(name=name))
    insert(mysql, name, 0, 500)
    execute(mysql, f"CREATE TABLE {name}.plain (PRIMARY KEY (id)) AS SELECT * FROM {name}.t")
    streamer.started()
    jars = os.pathsep.join(map(str, (spark_jars_folder(), spark_s3_jars_folder())))
    variables = {
        **JAVA, "HEADRACE_SPARK_JARS": jars, "TEST_PASSWORD": mysql.password, "S3_SECRET": s3.secret,
    }  # fmt: skip
    assert cluster.run("snapshot", streamer.file, variables)["rows"] == 1000
    execute(mysql, f"UPDATE {name}.t SET name = 'ä' WHERE id < 10", f"DELETE FROM {name}.plain WHERE id = 11")
    streamer.wait_until_released()
    assert cluster.run("compact", streamer.file, variables)["changes"] == 11
    pipeline = load(streamer.file)
    found = sorted(query(pipeline, "SELECT * FROM t").rows())
    assert found == sorted((id, v, text.upper()) for id, v, text in rows(mysql, f"{name}.t").values())
    proof = cluster.run("verify", streamer.file, variables)
    assert proof["ok"], proof
    plain = proof["tables"][f"{name}.plain"]
    assert (plain["equal"], plain["lake_count"]) == (True, 499)

    def ran(job: str, *arguments: str) -> dict[str, Any]:
        report = cluster.run(job, streamer.file, variables, *arguments)
        assert report["ok"], (report, cluster.said[:6000])
        return report

    kit.unlogged(mysql, f"UPDATE {name}.plain SET v = -5 WHERE id = 20")
    execute(mysql, f"DELETE FROM {name}.plain WHERE id = 30")
    streamer.wait_until_released()
    of_plain = f"--tables={name}.plain"
    assert ran("repair", of_plain, "--keys=[20]")["tables"][f"{name}.plain"]["read"] == 1
    ran("backfill", of_plain, "--keys=[21]", "--source=changes")
    parts = ran("compact")["parts"].values()
    became = {part["job"]: (part["refused"], part["rows"]) for part in parts}
    assert became == {"repair": (None, {"changed": 1}), "backfill": (None, {})}
    assert f"{name}.plain" in ran("maintain")["tables"]
    execute(mysql, f"DELETE FROM {name}.plain WHERE id = 31")  # marks a row again
    streamer.wait_until_released()
    assert ran("erase", of_plain, "--keys=[31]", "--now=yes", "--by=ada")["tables"][f"{name}.plain"]["changes"] == 1
    plain = ran("verify", of_plain, "--whole=yes")["tables"][f"{name}.plain"]
    assert (plain["equal"], plain["lake_count"]) == (True, 497)
    with cluster.looping(streamer.file, variables):
        for value in (7, 8):  # by a round each
            execute(mysql, f"UPDATE {name}.plain SET v = {value} WHERE id = 21")
            until = time.monotonic() + 240
            while [*query(pipeline, "SELECT v FROM plain WHERE id = 21").rows()] != [(value,)]:
                assert time.monotonic() < until, (cluster.folder / "looping.log").read_text()
                time.sleep(1)
    assert len(cluster.used()) == 2
