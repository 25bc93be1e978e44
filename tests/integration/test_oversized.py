"""`records.oversized`: a record too large for Kafka is put aside, and its table counts as unequal until a snapshot."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fsspec
import pytest
import yaml
from pyspark.sql import SparkSession

from contract.pipeline import load
from spark.compaction.compaction import compact
from spark.job import JobFailedError
from spark.jobs.snapshot import snapshot
from spark.jobs.verify import verify
from stack.kafka import Kafka
from stack.mysql import MySQL
from stack.ports import free_port
from stack.s3 import S3
from tests.integration.decoding import run
from tests.integration.streaming import ROOT, Make, Streamer
from tests.integration.test_archive_s3 import OLDER
from tests.integration.topic_records import records

pytestmark = pytest.mark.usefixtures("without_expectations")

BODY = 9_000


def asked(make: Make, name: str, oversized: dict[str, Any], delivery: str) -> Streamer:
    streamer = make(name, kafka_more=", max_message_bytes: 6000", delivery=delivery)
    run(streamer.mysql, "CREATE TABLE papers (id int PRIMARY KEY, body text)", database=name)
    more = f"records: {json.dumps({'oversized': oversized})}\nquality: {{wait_seconds: 120}}\n"
    streamer.file.write_text(streamer.file.read_text() + more)
    return streamer.started()


def documented(folder: Path) -> dict[str, Any]:
    """The example of the docs, in another folder."""
    page = (ROOT / "docs" / "configuration.md").read_text()
    [example] = [one for one in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL) if "oversized:" in one]
    found: dict[str, Any] = yaml.safe_load(example)["records"]["oversized"]
    return found | {"target": found["target"].replace("/var/lib/headrace/oversized", str(folder))}


def put_two_aside(streamer: Streamer, kafka: Kafka, read: Callable[[str], bytes]) -> None:
    name = streamer.name
    run(
        streamer.mysql,
        f"INSERT INTO papers VALUES (1, 'a'), (2, repeat('b', {BODY})), (3, 'c')",
        f"UPDATE papers SET body = repeat('d', {BODY}) WHERE id = 3",
        "DELETE FROM papers WHERE id = 1",
        database=name,
    )
    status = streamer.wait_until_released()
    found = sorted(records(kafka, f"{name}.{name}.papers"), key=lambda record: record.seq)
    assert [(one.key["id"], one.value["op"]) for one in found] == [(1, "c"), (3, "c"), (1, "d")]
    letters = records(kafka, f"{name}.dead-letter")
    assert [(one.key["id"], one.value["op"], one.value["error"]["kind"]) for one in letters] == [
        (2, "c", "record_too_large"), (3, "u", "record_too_large"),
    ]  # fmt: skip
    for letter in letters:
        text = read(letter.value["value_at"])
        assert len(text) == letter.value["value_bytes"] > BODY
        assert json.loads(text)["source"]["seq"] == letter.value["source"]["seq"]
    assert status["put_aside"] == {f"{name}.papers": 2}
    assert status["checkpoint"]["events"] == 5
    assert f'headrace_put_aside_total{{pipeline="{name}",table="{name}.papers"}} 2.0' in streamer.metrics()
    assert "bbbb" not in streamer.log()


def test_it_is_put_into_a_folder_and_what_follows_goes_on(
    make: Make, mysql: MySQL, kafka: Kafka, tmp_path: Path
) -> None:
    folder = tmp_path / "large"
    streamer = asked(make, "asides", documented(folder), "exactly_once")
    put_two_aside(streamer, kafka, lambda path: Path(path).read_bytes())
    folder.rename(tmp_path / "gone")
    folder.write_text("a file where the folder was")
    run(mysql, f"INSERT INTO papers VALUES (5, 'e'), (6, repeat('f', {BODY}))", database="asides")
    assert streamer.end() == 1
    assert "oversized_store" in streamer.log()
    assert "Traceback" not in streamer.log()
    folder.unlink()
    streamer.started().wait_until_released()
    assert streamer.stop() == 0
    assert [one.key["id"] for one in records(kafka, "asides.dead-letter")] == [2, 3, 6]


@pytest.mark.soak
def test_it_is_put_into_an_object_store(
    make: Make, kafka: Kafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = S3(tmp_path / "s3", free_port())
    server.start()
    try:
        server.make_bucket("large")
        monkeypatch.setenv("TEST_S3_SECRET", server.secret)
        login = {**OLDER, "endpoint_url": server.endpoint, "key": server.key}
        oversized = {"target": "s3://large/records", "options": {**login, "secret": "${TEST_S3_SECRET}"}}
        streamer = asked(make, "asidess", oversized, "at_least_once")
        store = fsspec.filesystem("s3", **login, secret=server.secret)
        put_two_aside(streamer, kafka, store.cat_file)
        server.kill()
        run(streamer.mysql, f"INSERT INTO papers VALUES (6, repeat('f', {BODY})), (7, 'g')", database="asidess")
        waiting = streamer.wait_for(lambda status: status["waiting_for"] == "the place of records.oversized")
        assert waiting["last_error"]["kind"] == "away"
        assert 'headrace_last_error_timestamp_seconds{kind="away",message="putting a record aside' in streamer.metrics()
        server.start()
        status = streamer.wait_until_released()
        assert (status["state"], status["put_aside"]) == ("streaming", {"asidess.papers": 3})
        assert [one.key["id"] for one in records(kafka, "asidess.dead-letter")] == [2, 3, 6]
        assert server.secret not in streamer.log()
        assert streamer.stop() == 0
    finally:
        server.kill()


@pytest.mark.soak
def test_its_table_is_unequal_until_a_snapshot(
    spark: SparkSession, make: Make, mysql: MySQL, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_PASSWORD", mysql.password)
    streamer = asked(make, "besides", {"target": str(tmp_path / "large")}, "exactly_once")
    pipeline = load(streamer.file)
    run(
        mysql,
        "INSERT INTO papers VALUES (1, 'a')",
        "INSERT INTO t VALUES (1, 1, 'x')",
        f"INSERT INTO papers VALUES (2, repeat('b', {BODY}))",
        "DELETE FROM papers WHERE id = 2",
        database="besides",
    )
    streamer.wait_until_released()
    compact(spark, pipeline)
    with pytest.raises(JobFailedError, match=r"besides\.papers: a record too large for Kafka was put aside") as caught:
        verify(spark, pipeline, [])
    assert caught.value.facts["tables"]["besides.t"]["equal"] is True
    run(mysql, f"INSERT INTO papers VALUES (3, repeat('c', {BODY}))", database="besides")
    streamer.wait_until_released()
    snapshot(spark, pipeline, ["besides.papers"])
    run(mysql, "INSERT INTO papers VALUES (4, 'd')", database="besides")
    streamer.wait_until_released()
    compact(spark, pipeline)
    facts = verify(spark, pipeline, [])["tables"]["besides.papers"]
    assert (facts["equal"], facts["lake_count"]) == (True, 3)
