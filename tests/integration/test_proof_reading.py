"""What a check reads of each server: chunks that make up the table, resumed, sampled, and at the pace of the file."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as fn

from contract.pipeline import Pipeline
from contract.sequence import file_number
from spark.errors import LakeError
from spark.lake.lake import Lake
from spark.proof.answer import Answer
from spark.proof.boundary import Match, match
from spark.proof.checksum import Total, sum_of, totals
from spark.proof.chunk_reads import ChunkReads
from spark.proof.kept import Kept, leave
from spark.proof.pace import Pace
from spark.proof.reading import Reading
from spark.proof.rewind import Step
from spark.proof.splits import Buckets, Ranges
from spark.proof.verification import Verification
from spark.source.source import Source
from stack.database import USER, Database
from stack.mysql import MySQL
from tests.checkpoints import checkpoint
from tests.integration.decoding import HOST, executed, run

TABLES = {
    "wide": "id bigint unsigned PRIMARY KEY, v varchar(20)",
    "pairs": "a int, b smallint, v varchar(20), PRIMARY KEY (a, b)",
    "names": "name varchar(20) PRIMARY KEY, v varchar(20)",
    "floats": "id int PRIMARY KEY, v double",
}
VECTORS = {"vectors": "id int PRIMARY KEY, v vector(2)"}  # hashed by Spark on both sides
ROWS = 250


def tables(server: Database) -> dict[str, str]:
    """By server: MySQL 9 alone has vectors."""
    return TABLES | (VECTORS if type(server) is MySQL else {})


@pytest.fixture
def pipeline(server: Database, tmp_path: Path) -> Pipeline:
    run(server, "DROP DATABASE IF EXISTS reading", "CREATE DATABASE reading")
    values = {
        "wide": [f"({(n * n) << 40}, 'v{n}')" for n in range(ROWS)],
        "pairs": [f"({n // 50 - 2}, {n % 50 - 25}, NULL)" for n in range(ROWS)],
        "names": [f"('{'äbCß '[n % 5]}{n}', '')" for n in range(ROWS)],
        "floats": [f"({n}, {n} / 7e0)" for n in range(ROWS)],
        "vectors": [f"({n}, string_to_vector('[{n}, 0.1]'))" for n in range(ROWS)],
    }
    for table, columns in tables(server).items():
        rows = f"INSERT INTO {table} VALUES {', '.join(values[table])}"
        run(server, f"CREATE TABLE {table} ({columns})", rows, f"ANALYZE TABLE {table}", database="reading")
    source = {"flavor": server.flavor, "host": HOST, "port": server.port, "user": USER, "password": server.password}
    return Pipeline.model_validate(
        {
            "format": 1,
            "name": "reading",
            "source": {**source, "server_id": 4719},
            "tables": {"include": ["reading.*"]},
            "kafka": {"bootstrap": "localhost:9092"},
            "lake": {"path": str(tmp_path)},
            "snapshot": {"chunk_rows": 100},
        }
    )


def ask(spark: SparkSession, pipeline: Pipeline, told: list[str], *tables: str) -> dict[str, Answer]:
    with Source(pipeline) as source:
        kept = Kept.open(Lake(spark, pipeline), checkpoint(pipeline="reading", pos=4))
        reading = Reading(spark, pipeline, source, 0, kept, told.append)
        answers = {table: reading.ask("reading", table) for table in tables}
        kept.save()
    return answers


def between(monkeypatch: pytest.MonkeyPatch, server: Database, table: str, statements: list[str]) -> None:
    """Runs one of the statements behind each chunk that is read of the table, while there are some."""

    def took(pace: Pace, rows: int, began: float, name: str, done: int, chunks: int) -> None:
        if name == table and statements:
            run(server, statements.pop(0), database="reading")

    monkeypatch.setattr(Pace, "took", took)


def check(
    spark: SparkSession, pipeline: Pipeline, told: list[str], *tables: str
) -> tuple[Verification, dict[str, Answer]]:
    """What it answers of the tables while somebody alters them."""
    one = pipeline.model_copy(update={"snapshot": pipeline.snapshot.model_copy(update={"parallelism": 1})})
    with Source(one) as source:
        made = Verification(spark, one, Lake(spark, one), source, checkpoint(pipeline="reading", pos=4), told.append)
        answers = made.ask([("reading", table) for table in tables])
    return made, {answer.schema.table: answer for answer in answers}


@pytest.mark.parametrize("dropped", ["wide", "floats"], ids=["that is read", "that comes later"])
def test_a_table_that_is_dropped_keeps_no_other_from_its_answer(
    spark: SparkSession, server: Database, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch, dropped: str
) -> None:
    told: list[str] = []
    between(monkeypatch, server, "reading.wide", [f"DROP TABLE {dropped}"])
    made, answers = check(spark, pipeline, told, "wide", "floats", "pairs")
    assert {name: answer.total.rows for name, answer in answers.items()} == {
        name: ROWS for name in ("wide", "floats", "pairs") if name != dropped
    }
    assert [*made.reading.unread] == [("reading", dropped)]
    assert f"reading.{dropped}: dropped meanwhile, or renamed: the source does not have it any more" in told
    assert made.lost == set()
    with pytest.raises(LakeError, match=rf"^reading\.{dropped}: dropped meanwhile"):
        check(spark, pipeline, told, dropped)  # nothing at all would be proven


def test_a_table_that_the_server_cannot_read_keeps_no_other_from_its_answer(
    spark: SparkSession, server: Database, pipeline: Pipeline
) -> None:
    run(server, "ALTER TABLE wide DISCARD TABLESPACE", database="reading")
    told: list[str] = []
    made, answers = check(spark, pipeline, told, "wide", "pairs")
    assert {name: answer.total.rows for name, answer in answers.items()} == {"pairs": ROWS}
    [said] = [line for line in told if line.startswith("reading.wide: ")]
    assert "the server cannot read this table (error 1814: " in said
    assert said.endswith("then run the check again")
    assert [*made.reading.unread] == [("reading", "wide")]


def test_a_table_that_is_altered_while_it_is_read_is_read_again(
    spark: SparkSession, server: Database, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    statements = ["ALTER TABLE wide DROP COLUMN v"]
    between(monkeypatch, server, "reading.wide", statements)
    made, answers = check(spark, pipeline, told, "wide", "pairs")
    assert made.reading.unread == {}
    assert [column.name for column in answers["wide"].schema.columns] == ["id"]
    assert {answer.total.rows for answer in answers.values()} == {ROWS}
    assert "reading.wide: the table was altered while it was read" in told

    made.reading.kept.forget(answer.name for answer in answers.values())
    statements += [f"ALTER TABLE wide ADD COLUMN c{n} int" for n in range(9)]
    made, answers = check(spark, pipeline, told, "wide", "pairs")
    assert [*answers] == ["pairs"]
    assert [str(error) for error in made.reading.unread.values()] == [
        "reading.wide: the table was altered while it was read, 3 times: verify again"
    ]
    assert made.lost == {"reading.wide"}


def test_a_table_that_is_another_one_than_its_transaction_began_with_is_read_again(
    spark: SparkSession, server: Database, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its shape is what it was, and maybe the second in which it was made."""
    begin, anew = Source.consistent, ["CREATE TABLE other LIKE wide", "DROP TABLE wide", "RENAME TABLE other TO wide"]

    @contextmanager
    def consistent(source: Source) -> Iterator[Any]:
        with begin(source) as end:
            while anew:
                run(server, anew.pop(0), database="reading")
            yield end

    monkeypatch.setattr(Source, "consistent", consistent)
    _, answers = check(spark, pipeline, [], "wide", "pairs")
    assert {name: answer.total.rows for name, answer in answers.items()} == {"wide": 0, "pairs": ROWS}


@pytest.mark.parametrize("server", ["mysql"], indirect=True)
def test_a_table_that_is_gone_when_its_rows_are_to_be_told_has_none(
    spark: SparkSession, server: Database, pipeline: Pipeline
) -> None:
    with Source(pipeline) as source:
        reading = Reading(spark, pipeline, source, 0, Kept(Lake(spark, pipeline), checkpoint()), print)
        answer = reading.ask("reading", "wide")
        run(server, "DROP TABLE reading.wide")
        assert reading.open(answer, [0, 1]) is None


def test_a_read_is_of_one_moment_whatever_isolation_the_server_has_by_default(
    server: Database, pipeline: Pipeline
) -> None:
    by_default = "GLOBAL tx_isolation" if server.flavor == "mariadb" else "GLOBAL transaction_isolation"
    run(server, f"SET {by_default} = 'READ-UNCOMMITTED'")
    try:
        with Source(pipeline) as source:
            source.server.begin(source.row)
            seen = source.row("SELECT count(*) FROM reading.names")
            run(server, "INSERT INTO reading.names VALUES ('later', '')")
            assert source.row("SELECT count(*) FROM reading.names") == seen
    finally:
        run(server, f"SET {by_default} = 'REPEATABLE-READ'")


@pytest.mark.soak_on("mysql80")
def test_chunks_are_the_table_whatever_its_key(spark: SparkSession, server: Database, pipeline: Pipeline) -> None:
    told: list[str] = []
    answers = ask(spark, pipeline, told, *tables(server))
    assert {name: type(answer.split) for name, answer in answers.items()} == {
        name: Buckets if name == "names" else Ranges for name in tables(server)
    }
    with Source(pipeline) as source:
        reading = Reading(spark, pipeline, source, 0, Kept(Lake(spark, pipeline), checkpoint()), told.append)
        for name, answer in answers.items():
            assert answer.split.count == 3, name
            assert answer.total.rows == ROWS
            rows = reading.chunks.rows(answer.shown, answer.split, [0, 1, 2], together=True)
            lake = totals(rows, answer.schema, fn.expr(answer.split.number()))
            assert lake == {number: total for read in answer.reads for number, total in read.totals.items()}, name
            assert sum_of(lake.values()) == answer.total
            one = reading.chunks.rows(answer.shown, answer.split, [1], together=True)
            assert totals(one, answer.schema, fn.expr(answer.split.number())) == {1: lake[1]}, name

    again: list[str] = []
    resumed = ask(spark, pipeline, again, "wide", "names")
    assert {name: answer.reads for name, answer in resumed.items()} == {name: answers[name].reads for name in resumed}
    assert sum("3 chunks were read by the check before" in line for line in again) == 2
    run(server, "ALTER TABLE wide ADD COLUMN more int", database="reading")
    changed: list[str] = []
    assert ask(spark, pipeline, changed, "wide")["wide"].total != answers["wide"].total
    assert not any("by the check before" in line for line in changed), "with other columns nothing of it holds"
    run(server, "CREATE TABLE other LIKE names", "DROP TABLE names", "RENAME TABLE other TO names", database="reading")
    assert ask(spark, pipeline, changed, "names")["names"].total.rows == 0, "nor of another table of its name"


def written_within(monkeypatch: pytest.MonkeyPatch, server: Database, write: str) -> tuple[list[Total], list[Step]]:
    """Does `write`, with the next number, before each statement that hashes rows, of a table that is one chunk. Gives
    what the statements would have shown behind it, and what it did in the binlog."""
    states, steps, rows = [Total()], list[Step](), Source.rows

    def within(source: Source, sql: str, *arguments: Any) -> Any:
        if "sha2(" in sql:
            at, before = source.position(), total_of(rows(source, sql))
            run(server, write.format(n=ROWS + len(steps)), database="reading")
            states[0] = total_of(rows(source, sql))
            place = 0, file_number(at[0]), at[1]
            steps.append(Step(place, f"0-1-{len(steps) + 1}", {0: states[0].minus(before)}))
        return rows(source, sql, *arguments)

    monkeypatch.setattr(Source, "rows", within)
    monkeypatch.setattr(Source, "row", lambda source, sql, *given: next(iter(within(source, sql, *given)), None))
    return states, steps


def total_of(rows: Any) -> Total:
    [row] = rows
    return Total(int(row[-2]), int(row[-1]))


@pytest.mark.soak_on("mysql80")
@pytest.mark.parametrize("key", ["int", "varchar(20)"])
def test_a_table_without_snapshot_reads_has_a_boundary_that_fits(
    spark: SparkSession, server: Database, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    """It shows what is written behind the begin of a transaction."""
    whole = pipeline.model_copy(update={"snapshot": pipeline.snapshot.model_copy(update={"chunk_rows": 1000})})
    rows = ", ".join(f"('{n}')" for n in range(ROWS))
    for engine in ("MyISAM", "MEMORY", *(["Aria"] if server.flavor == "mariadb" else [])):
        create = f"CREATE TABLE plain (id {key} PRIMARY KEY) ENGINE = {engine}"
        run(server, "DROP TABLE IF EXISTS plain", create, f"INSERT INTO plain VALUES {rows}", database="reading")
        with monkeypatch.context() as patch:
            states, steps = written_within(patch, server, "INSERT INTO plain VALUES ('{n}')")
            answer = ask(spark, whole, [], "plain")["plain"]
        [read], [now] = answer.reads, states
        assert (answer.split.count, len(steps), read.total.rows) == (1, 1, ROWS + 1), engine
        assert match(read, {0: now}, steps) == Match(steps[0].gtid or "", {0: now}, frozenset(), 1), engine
        leave(Lake(spark, whole))
    with Source(whole) as source:
        assert [source.snapshots("reading", table) for table in ("plain", "wide", "nowhere")] == [False, True, False]
        reading = Reading(spark, whole, source, 0, Kept(Lake(spark, whole), checkpoint()), print)
        opened = reading.open(answer, [0])
    assert opened is not None
    assert (opened.seen, opened.rows.count()) == ("", ROWS + 1)


def test_a_check_writes_nothing_into_the_binlog(spark: SparkSession, server: Database, pipeline: Pipeline) -> None:
    before = executed(server)
    ask(spark, pipeline, [], *tables(server))
    assert executed(server) == before


def test_a_table_that_is_read_at_one_moment_can_be_altered_while_the_check_waits(
    spark: SparkSession, server: Database, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MariaDB keeps it locked to the read's end: the check does not wait there. The table is then another, and is read
    again."""
    waits = 0

    def wait(_: ChunkReads) -> None:
        nonlocal waits
        waits += 1
        if waits == 2:
            thread = Thread(target=run, args=(server, "ALTER TABLE reading.names ENGINE = InnoDB"), daemon=True)
            thread.start()
            thread.join(30)
            assert not thread.is_alive(), "the ALTER TABLE waits for the check"

    monkeypatch.setattr(ChunkReads, "wait", wait)
    monkeypatch.setattr(ChunkReads, "bounded", lambda *given: given[-1])  # before that moment
    assert ask(spark, pipeline, [], "names")["names"].total.rows == ROWS
    assert waits == (1 if server.flavor == "mariadb" else 2 + 3), "before each of three ranges, in the second attempt"


@pytest.mark.parametrize("server", ["mysql"], indirect=True)
def test_a_copy_that_takes_the_tables_place_meanwhile_is_read_as_a_whole(
    spark: SparkSession, server: Database, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As gh-ost's: it was there before the read, and the read saw it without its last rows."""
    time.sleep(1.1)  # a table's time of making is told in seconds
    run(server, "CREATE TABLE copy LIKE names", "INSERT INTO copy SELECT * FROM names LIMIT 50", database="reading")
    waits = 0

    def wait(_: ChunkReads) -> None:
        nonlocal waits
        waits += 1
        if waits == 2:
            run(server, "INSERT IGNORE INTO copy SELECT * FROM names", database="reading")
            run(server, "RENAME TABLE names TO was, copy TO names", database="reading")

    monkeypatch.setattr(ChunkReads, "wait", wait)
    assert ask(spark, pipeline, [], "names")["names"].total.rows == ROWS


@pytest.mark.parametrize("server", ["mysql"], indirect=True)
def test_a_sample_is_some_of_the_chunks(spark: SparkSession, pipeline: Pipeline) -> None:
    def asked(**quality: Any) -> dict[str, Answer]:
        told: list[str] = []
        leave(Lake(spark, pipeline))
        changed = {"quality": pipeline.quality.model_copy(update=quality)}
        return ask(spark, pipeline.model_copy(update=changed), told, *TABLES)

    for name, answer in asked(sample_percent=40).items():
        assert len(answer.chosen or ()) == 1, name
        assert {number for read in answer.reads for number in read.totals} == answer.chosen
        assert 0 < answer.total.rows < ROWS


@pytest.mark.parametrize("server", ["mysql"], indirect=True)
def test_rows_of_chunks_that_differ_are_read_at_the_same_pace(
    spark: SparkSession, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[int] = []
    monkeypatch.setattr(ChunkReads, "wait", lambda self: waits.append(self.pace.rows))
    changed = pipeline.snapshot.model_copy(update={"max_rows_per_second": 100})
    asked = pipeline.model_copy(update={"snapshot": changed})
    with Source(asked) as source:
        kept = Kept.open(Lake(spark, asked), checkpoint(pipeline="reading", pos=4))
        began, reading = time.monotonic(), Reading(spark, asked, source, 0, kept, lambda line: None)
        opened = reading.open(reading.ask("reading", "wide"), [0, 1])
        assert opened is not None
        rows = opened.rows.count()
    assert rows > 100
    assert reading.chunks.pace.rows == ROWS + rows
    assert time.monotonic() - began >= (ROWS + rows) / 100
    assert waits[-1] == ROWS, "the server is asked again whether it is busy"
