"""Rows that a table had before the pipeline's first start: said wherever a person looks, until a snapshot read them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pyspark.sql import SparkSession

from contract.pipeline import Tables, load
from contract.start_at import FIRST
from readers.lake import query
from spark.compaction.compaction import compact
from spark.job import JobFailedError
from spark.jobs.snapshot import snapshot
from spark.jobs.verify import verify
from stack.database import Database
from streamer import source
from streamer.start import first as first_start
from streamer.start.unread import unread
from tests.integration.decoding import pipeline as reading
from tests.integration.decoding import purge, run
from tests.integration.decoding import source as read_from
from tests.integration.streaming import Streamer

pytestmark = pytest.mark.usefixtures("without_expectations")

NAME = "unreadrows"


@pytest.mark.soak_on("mysql80", "mariadb")
def test_rows_of_before_the_first_start_are_missed_aloud_until_a_snapshot(
    spark: SparkSession, make: Callable[..., Streamer], server: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An empty table lacks nothing. A row that MariaDB has not committed may be in the binlog already."""
    name = f"{NAME}{server.name}"
    monkeypatch.setenv("TEST_PASSWORD", server.password)
    streamer = make(name, mysql=server)
    for table in ("filled", "vacant", "waiting", "`with``tick`"):
        run(server, f"CREATE TABLE {table} (id int PRIMARY KEY)", database=name)
    run(server, "INSERT INTO filled VALUES (1)", "INSERT INTO `with``tick` VALUES (1)", database=name)
    with server.connect(database=name, autocommit=False) as open_:
        open_.cursor().execute("INSERT INTO waiting VALUES (1)")
        streamer.started()
        open_.commit()
    run(server, "CREATE TABLE later (id int PRIMARY KEY)", database=name)
    run(server, *(f"INSERT INTO {table} VALUES (2)" for table in ("filled", "vacant", "later")), database=name)
    streamer.wait_until_released()
    waiting = ["waiting"] if server.flavor == "mariadb" else []
    missing = {f"{name}.{table}" for table in ("filled", "with`tick", *waiting)}
    assert streamer.status()["tables"]["not_yet_snapshotted"].keys() == missing
    assert "not yet snapshotted" in streamer.command("status").stdout
    assert '"tables have rows of before"' in streamer.log()

    pipeline = load(streamer.file)
    compacted = compact(spark, pipeline)["tables"]
    assert {table for table, facts in compacted.items() if facts["unread"]} == missing
    answer = query(pipeline, "SELECT id FROM filled")
    assert (list(answer.rows()), len(answer.doubts)) == ([(2,)], 1)
    assert answer.doubts[0].startswith(f"{name}.filled: not yet snapshotted: ")
    assert query(pipeline, "SELECT id FROM vacant").doubts == []
    told = streamer.command("sql", "SELECT id FROM filled", "--format=csv")
    assert told.stdout == "id\n2\n"
    assert "note: " in told.stderr
    with pytest.raises(JobFailedError, match="run the snapshot DAG") as failed:
        verify(spark, pipeline, [])
    proof = failed.value.facts["tables"]
    equal = {table for table, facts in proof.items() if facts["equal"]}
    assert equal == {f"{name}.{table}" for table in ("t", "vacant", "later", "waiting")}
    assert {table for table in equal if "doubts" in proof[table]} == {f"{name}.{table}" for table in waiting}

    snapshot(spark, pipeline, sorted(missing))
    assert not any(facts["unread"] for facts in compact(spark, pipeline)["tables"].values())
    answer = query(pipeline, "SELECT id FROM filled ORDER BY 1")
    assert (list(answer.rows()), answer.doubts) == ([(1,), (2,)], [])
    streamer.wait_for(lambda status: status["tables"]["not_yet_snapshotted"] == {})


@pytest.mark.parametrize("start", ["earliest", "latest"])
def test_a_whole_binlog_lacks_nothing_and_a_purged_one_may(another: Callable[..., Database], start: str) -> None:
    server = another()
    run(server, "CREATE DATABASE a", "CREATE TABLE a.t (id int PRIMARY KEY)", "INSERT INTO a.t VALUES (1)")
    assert missed(server, start) == ([] if start == "earliest" else ["a.t"])
    run(server, "FLUSH BINARY LOGS")
    purge(server, list(source.files(read_from(server)))[-1])
    assert missed(server, start) == ["a.t"]


def missed(server: Database, start: str) -> list[str]:
    chosen = reading(server)
    starting = chosen.streamer.model_copy(update={"start": start})
    chosen = chosen.model_copy(update={"streamer": starting, "tables": Tables(include=("a.*",))})
    facts = source.facts(chosen.source)
    begin, _ = first_start.first(chosen, facts)
    assert begin.pos >= FIRST
    return unread(chosen, facts, begin)
