"""Erased rows are nowhere below the lake's folder, and do not come back."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import polars as pl
import pytest
from delta.tables import DeltaTable
from pyspark.sql import SparkSession

from contract.checkpoint import Checkpoint
from contract.ddl_record import DdlRecord
from contract.erased_key import keys_of
from contract.pipeline import Pipeline
from contract.pipeline_records import Oversized
from contract.status import parse
from spark import failpoints
from spark.compaction import compaction
from spark.erasing import past, record, topics
from spark.erasing.staging import refuse_reading, staged
from spark.erasing.work import Erasing, followed
from spark.errors import LakeError
from spark.evolution.schema_change_rows import note, of_statement
from spark.jobs import erase as job
from spark.kafka.records import once, shaped
from spark.lake import unfinished
from spark.lake.applied import AppliedSnapshots
from spark.lake.erasures import Begun, Erased, Erasures
from spark.lake.lake import Lake
from spark.lake.letters import BEFORE_ALL
from spark.lake.unfinished import BEAT, Beating, Progress, Unfinished
from spark.landing.changes import MARK_COLUMNS
from spark.maintenance.tidying import files_of
from spark.proof.differences import Difference, next_run, note_differences
from spark.tables.schema import Schemas
from tests import checkpoints
from tests.spark.changes_by_hand import ITEMS, change, changes, key_of, records
from tests.spark.changes_by_hand import record as kafka_record
from tests.spark.lake_by_hand import part, stage
from tests.spark.watched_files import Watched

NAME = ("shop", "items")
GONE = "Zebrafink"  # the one value that is the erased row's alone
COUNTED = {"table": 1, "_changes": 4, "_dead_letters": 1, "_differences": 1, "_repairs": 1}
AT = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)


def checkpoint(pos: int) -> Checkpoint:
    known = {"pipeline": "shop", "server_uuid": "u", "ts_ms": 1_700_000_000_000}
    return checkpoints.checkpoint(**known, pos=pos, gtid_set=f"{checkpoints.SOURCE}:1-{pos}")


class Broker:
    """Has nothing new. `kept`: the topics that have records, each with its partitions; `config`: their settings."""

    known = (ITEMS,)
    kept: ClassVar[dict[str, int]] = {"shop.shop.items": 1}
    config: ClassVar[dict[str, str]] = {"cleanup.policy": "compact"}

    def __init__(self, pipeline: Pipeline) -> None:
        self.checkpoint = lambda: checkpoint(1000)
        self.topics = self.topic_ids = self.ends = lambda *_: {}
        self.schemas = lambda: [*self.known]
        self.ddl = lambda read: ([], {})
        self.bounds = lambda topic: dict.fromkeys(range(self.kept.get(topic, 0)), (0, 20))
        self.settings = lambda topics: dict.fromkeys(topics, self.config)
        self.time_of = lambda topic, partition, offset: CAME


CAME = 1_700_000_000_000  # when each record came
SENT: list[tuple[str, int, str]] = []  # topic, partition and key of the tombstones


class Producer:
    def __init__(self, settings: dict[str, Any]) -> None:
        self.poll = self.flush = lambda seconds: 0

    def produce(self, topic: str, value: None, key: str, partition: int, on_delivery: Any) -> None:
        SENT.append((topic, partition, key))


BURIED = [("shop.shop.items", 0, '{"id":1}')]


@pytest.fixture
def stats(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Delta's log is to have the files' least and greatest values, as it has by itself."""
    monkeypatch.setattr(compaction, "Broker", Broker)
    monkeypatch.setattr(topics, "Producer", Producer)
    monkeypatch.setattr(job, "Broker", Broker)
    SENT.clear()
    spark.conf.set("spark.databricks.delta.stats.collect", "true")
    yield
    spark.conf.set("spark.databricks.delta.stats.collect", "false")


def item(n: int, name: str = "a") -> dict[str, Any]:
    return {"id": n, "name": name, "price": "1.00"}


def land(spark: SparkSession, lake: Lake, *rows: tuple[Any, ...]) -> None:
    """Kafka's records, as a compaction lands them."""
    nothing = spark.createDataFrame([], MARK_COLUMNS)
    fresh = once(shaped(records(spark, *rows), "shop"), nothing).selectExpr("*", "cast(0 as bigint) as batch")
    kept = Erasures(lake).without(fresh)
    kept.write.format("delta").mode("append").partitionBy("tbl", "day").save(lake.changes)


FIRST = [
    kafka_record(0, (0, 1, 10, 0, 0), "c", item(1, GONE)),
    kafka_record(1, (0, 1, 11, 0, 0), "c", item(2)),
    kafka_record(2, (0, 1, 12, 0, 0), "u", item(1, GONE + "2"), item(1, GONE)),
    kafka_record(3, (0, 1, 13, 0, 0), "c", item(3)),
    # 2 becomes 4, by way of the erased row's key, which is another row for a moment
    kafka_record(4, (0, 1, 14, 0, 0), "d", None, item(1, GONE + "2")),
    kafka_record(5, (0, 1, 14, 0, 1), "c", item(1, GONE)),
]


def filled(spark: SparkSession, lake: Lake) -> None:
    land(spark, lake, *FIRST[:2])
    compaction.compact(spark, lake.pipeline)
    land(spark, lake, *FIRST[2:])
    compaction.compact(spark, lake.pipeline)
    letter = (f"shop.{'.'.join(NAME)}", 0, 9, key_of(ITEMS, item(1)).encode(), GONE.encode(), 0, "q")
    other = (f"shop.{'.'.join(NAME)}", 0, 8, key_of(ITEMS, item(3)).encode(), b"kept", 0, "q")
    shape = "topic string, partition int, offset bigint, record_key binary, value binary, batch bigint, query string"
    spark.createDataFrame([letter, other], shape).write.format("delta").save(lake.at("_dead_letters"))
    compaction.compact(spark, lake.pipeline)
    found = [Difference(*NAME, "changed", key_of(ITEMS, item(n)), ("name",), since=AT) for n in (1, 3)]
    note_differences(
        spark, lake, next_run(spark, lake, AT), [*found, Difference(*NAME, "chunk", source_where="id <= 1", since=AT)]
    )
    repaired = [("r", NAME[0], "shop.items", "changed", key_of(ITEMS, item(n))) for n in (1, 3)]
    made = spark.createDataFrame(repaired, "run string, db string, tbl string, kind string, key string")
    made.write.format("delta").save(lake.at("_repairs"))
    lake.write(lake.at("_quality", "unfinished.json"), {"boundary": GONE})


def erasing(spark: SparkSession, lake: Lake, keys: str = "[1]", hours: float = 0, pos: int = 900) -> Erasing:
    wanted, schemas = keys_of(keys, ITEMS), Schemas([ITEMS])
    return Erasing(spark, lake, Broker(lake.pipeline), schemas, ITEMS, wanted, checkpoint(pos), hours)  # type: ignore[arg-type]


def ids(spark: SparkSession, lake: Lake) -> list[int]:
    return sorted(row["id"] for row in spark.read.format("delta").load(lake.table(*NAME)).collect())


def holding(lake: Lake, text: str) -> list[str]:
    """The files below the lake that have it, in their bytes or behind Parquet's compression."""
    return holding_in(Path(lake.root), text)


def holding_in(folder: Path, text: str) -> list[str]:
    files = [file for file in folder.rglob("*") if file.is_file()]
    return sorted(str(file.relative_to(folder)) for file in files if text in read(file))


def read(file: Path) -> str:
    rows = str(pl.read_parquet(file).rows()) if file.suffix == ".parquet" else ""
    return file.read_bytes().decode(errors="replace") + rows


def test_nothing_of_an_erased_row_is_left_and_the_others_are(stats: None, spark: SparkSession, lake: Lake) -> None:
    filled(spark, lake)
    assert ids(spark, lake) == [1, 2, 3]
    assert any("_delta_log" in name for name in holding(lake, GONE)), "else this test tells nothing of the log"
    before = erasing(spark, lake)
    begun = before.run()
    assert begun.removed == COUNTED
    assert {one.until_ms for one in before.erasures.known.erased} == {before.until.ts_ms}
    assert SENT == BURIED
    assert holding(lake, GONE) == []
    assert ids(spark, lake) == [2, 3]
    changes = spark.read.format("delta").load(lake.changes)
    assert sorted(row["key"] for row in changes.collect()) == ['{"id":2}', '{"id":3}']
    letters = spark.read.format("delta").load(lake.at("_dead_letters")).orderBy("offset").collect()
    assert [row["value"] for row in letters] == [b"kept", None]
    assert [row["key"] for row in spark.read.format("delta").load(lake.at("_differences")).collect()] == ['{"id":3}']
    status = parse(lake.text(lake.status) or "")
    assert (status.tables["shop.items"].rows, status.tables["shop.items"].changes) == (2, 2)
    at_status = spark.read.format("delta").option("versionAsOf", str(status.changes_version)).load(lake.changes)
    assert at_status.count() == 2, "a check reads the version that the status names"

    until = before.until.model_copy(update={"seen_set": f"{checkpoints.SOURCE}:1-950"})  # an XA transaction is open
    record.note(spark, lake, begun, until, [record.Remains("Kafka", "by age", AT, AT)], "manual__1", "ada")
    record.note(spark, lake, begun, until, [], "manual__1", "ada")  # as a run that was killed behind it does
    before.erasures.end(begun)
    [row] = spark.read.format("delta").load(lake.at("_erasures")).collect()
    assert (row["by"], row["tbl"], row["removed"]) == ("ada", "shop.items", COUNTED)
    assert row["key_hashes"] == [Erasures(lake).hash_of("shop.items", '{"id":1}')]
    assert row["gtid_set"] == until.seen_set, "what is erased is of these, as far as it was sent"
    assert holding(lake, '"id":1}') == []

    # What the streamer sends again is not landed: in its old place, and behind a move back, in a new epoch.
    again = [
        kafka_record(6, (0, 1, 12, 0, 0), "u", item(1, GONE + "2"), item(1, GONE)),
        kafka_record(7, (1, 1, 10, 0, 0), "c", item(1, GONE)),
    ]
    source = checkpoints.SOURCE.encode()
    again = [(key, value.replace(b'"u:', b'"' + source + b":"), *more) for key, value, *more in again]
    land(spark, lake, *again)
    compaction.compact(spark, lake.pipeline)
    assert (ids(spark, lake), holding(lake, GONE)) == ([2, 3], [])
    # A row of this key that comes later is data like any.
    land(spark, lake, kafka_record(8, (0, 1, 950, 0, 0), "c", item(1, "Amsel")))
    compaction.compact(spark, lake.pipeline)
    assert ids(spark, lake) == [1, 2, 3]
    assert erasing(spark, lake, "[7]", hours=168).run().removed == dict.fromkeys(COUNTED, 0), "there is no such row"


def test_what_a_server_without_gtids_sends_again_is_not_landed(spark: SparkSession, lake: Lake) -> None:
    """Behind a move back it is of the same file and position in a new epoch. Of a binlog that was begun anew a place is
    no greater and a commit later, and it is another change; so it is of another server's transaction."""
    erasures, at = Erasures(lake), int(AT.timestamp() * 1000)
    one = Erased(tbl="shop.items", hash=erasures.hash_of("shop.items", '{"id":1}'), until=(0, 1, 50), gtid_set="")
    again = changes(
        spark, *[change((1, 1, pos, 0, 0), "c", item(n)) for n, pos in ((1, 40), (1, 45), (1, 50), (1, 60), (2, 41))]
    ).selectExpr("*", "if(_seq.pos = 45, 'u:45', null) as gtid")  # by gtid_mode = ON_PERMISSIVE

    def left(**facts: Any) -> list[int]:
        erasures.known = erasures.known.model_copy(update={"erased": [one.model_copy(update=facts)]})
        return sorted(row["_seq"]["pos"] for row in erasures.without(again).collect())

    assert left(until_ms=at - 60_000) == [41, 50, 60], "at the place itself the next transaction begins"
    assert left(until_ms=at - 60_001) == [40, 41, 45, 50, 60]
    assert left(until_ms=at, gtid_set=f"{checkpoints.SOURCE}:1-50") == [41, 45, 50, 60]


def test_a_key_that_is_erased_again_behind_a_move_back_loses_nothing_of_the_first_time(
    spark: SparkSession, lake: Lake
) -> None:
    """The stream had come to 200, and comes from 100 on again; at 120 the key is erased once more."""
    mine, key = checkpoints.SOURCE, '{"id":1}'
    known = Erasures(lake)

    def erase(id: str, until: tuple[int, int, int], gtids: str) -> None:
        one = Erased(tbl="shop.items", hash=known.hash_of("shop.items", key), until=until, gtid_set=gtids)
        known.begin(Begun(id=id, tbl="shop.items", hashes=[one.hash]), [one])

    def left(*places: tuple[int, int]) -> list[int]:
        again = changes(spark, *[change((epoch, 5, pos, 0, 0), "u", item(1)) for epoch, pos in places])
        again = again.selectExpr("*", f"concat('{mine}:', _seq.pos) as gtid")
        return sorted(row["_seq"]["pos"] for row in Erasures(lake).without(again).collect())

    erase("a", (1, 5, 200), f"{mine}:1-200")
    erase("b", (2, 5, 120), f"{mine}:1-120")
    assert left((1, 150), (2, 110), (2, 150), (2, 199), (2, 201)) == [201]
    erase("c", (2, 5, 300), f"{mine}:1-300")
    assert [one.until for one in Erasures(lake).known.erased] == [(2, 5, 300)], "that has all that was known"
    assert left((1, 150), (2, 150), (2, 299), (2, 301)) == [301]


class KilledError(Exception):
    pass


def killed_at(point: str) -> Callable[[str], None]:
    def hook(reached: str) -> None:
        if reached == point:
            raise KilledError

    return hook


# Its short form is behind one such kill: test_files_are_kept_for_readers_and_what_is_left_is_told_also_behind_a_kill.
@pytest.mark.soak
@pytest.mark.parametrize("point", [*failpoints.ERASURE, "old files removed"])
def test_a_job_that_is_killed_is_run_again_and_ends_the_same_with_one_record(
    point: str, stats: None, spark: SparkSession, lake: Lake
) -> None:
    filled(spark, lake)

    def erase() -> dict[str, Any]:
        return job.erase(spark, lake.pipeline, ["shop.items"], "[1]", present="yes", now="yes", run="r1", by="ada")

    with failpoints.hooked(killed_at(point)), pytest.raises(KilledError):
        erase()
    compaction.compact(spark, lake.pipeline)
    told = erase()["tables"]["shop.items"]
    if point != "erasure ended":  # else nothing was left to do
        assert told == {"keys": 1, **{place.lstrip("_"): count for place, count in COUNTED.items()}}
    assert (ids(spark, lake), holding(lake, GONE)) == ([2, 3], [])
    assert {*SENT} == {*BURIED}
    [row] = spark.read.format("delta").load(lake.at("_erasures")).collect()
    assert (row["run"], row["removed"]) == ("r1", COUNTED)
    assert Erasures(lake).known.begun == []
    assert followed(lake) > 0
    status = parse(lake.text(lake.status) or "")
    assert status.tables["shop.items"].rows == 2


@pytest.mark.soak
def test_files_are_kept_for_readers_and_what_is_left_is_told_also_behind_a_kill(
    stats: None, spark: SparkSession, lake: Lake
) -> None:
    filled(spark, lake)
    with failpoints.hooked(killed_at("changes erased")), pytest.raises(KilledError):
        erasing(spark, lake, hours=168).run()
    made = erasing(spark, lake, hours=168, pos=910)
    assert made.run().removed == COUNTED
    assert ids(spark, lake) == [2, 3]
    assert holding(lake, GONE)
    told = [one.told() for one in record.of_files(spark, made.paths(), 168, AT)]
    assert any(f"{lake.changes}: until 2026-01-08 00:00:00 UTC at the latest" in line for line in told)
    assert any("_delta_log: until 2026-01-09" in line for line in told)
    spark.sql(f"ALTER TABLE delta.`{lake.changes}` UNSET TBLPROPERTIES ('delta.logRetentionDuration')")
    [files, log] = record.of_files(spark, [lake.changes], 168, AT)
    assert (files.until, log.until) == (AT + datetime.timedelta(days=7), AT + datetime.timedelta(days=30)), (
        "Delta's own, of a table that no maintenance has looked at since an older version made it"
    )


def test_what_nobody_can_search_is_told_of(stats: None, spark: SparkSession, lake: Lake) -> None:
    """Changes of a version that lacked a column of the key, or that the schema topic has no more; staged rows that the
    table cannot take."""
    land(spark, lake, *FIRST[:2])
    compaction.compact(spark, lake.pipeline)
    renamed = tuple(c.model_copy(update={"name": "number"}) if c.name == "id" else c for c in ITEMS.columns)
    older = ITEMS.model_copy(update={"version": 7, "columns": renamed, "key": ("number",)})
    unknown = ITEMS.model_copy(update={"version": 8})
    row = {"number": 1, "name": GONE, "price": "1.00"}
    land(spark, lake, kafka_record(6, (0, 1, 15, 0, 0), "c", row, schema=older))
    land(spark, lake, kafka_record(7, (0, 1, 16, 0, 0), "c", item(1, GONE), schema=unknown))
    traces = replace(erasing(spark, lake).traces, shapes=[ITEMS, older])
    assert traces.unsearched() == 2
    assert replace(traces, shapes=[ITEMS, unknown]).unsearched() == 1
    [told] = record.of_changes(lake.changes, traces.unsearched())
    assert "2 change(s) of the table were not searched" in told.told()
    assert record.of_changes(lake.changes, 0) == []

    made = part(spark, lake, "p1", 50, item(1, GONE))
    [left] = record.of_staged(staged(lake, ITEMS))
    assert (left.place, "rows of a repair" in left.why) == (made.folder(lake), True)
    refuse_reading(lake, ITEMS)
    with Beating(lake, lake.at("_parts", "p2")), pytest.raises(LakeError, match=r"are being read .*_parts/p2.*run the"):
        refuse_reading(lake, ITEMS)
    refuse_reading(lake, ITEMS)


def test_files_of_what_was_too_large_for_kafka_are_told_of(pipeline: Pipeline) -> None:
    assert record.of_oversized(pipeline) == []
    asked = pipeline.records.model_copy(update={"oversized": Oversized(target="s3://bucket/large/")})
    [left] = record.of_oversized(pipeline.model_copy(update={"records": asked}))
    assert left.told().startswith("s3://bucket/large/shop: until somebody removes it (records too large for Kafka")


@pytest.mark.soak
def test_who_asked_is_known_before_any_row_goes(
    stats: None, spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also by a user without a name, whom the lake's record has by the number."""
    monkeypatch.setattr(job, "asker", lambda: "user 1234")
    land(spark, lake, *FIRST)
    job.erase(spark, lake.pipeline, ["shop.items"], "[1]", present="yes")
    [row] = spark.read.format("delta").load(lake.at("_erasures")).select("by").collect()
    assert row["by"] == "user 1234"

    def nobody() -> str:
        raise KilledError

    monkeypatch.setattr(job, "asker", nobody)
    with pytest.raises(KilledError):
        job.erase(spark, lake.pipeline, ["shop.items"], "[3]", present="yes")
    assert ids(spark, lake) == [2, 3]


def test_rows_that_had_another_tables_name_are_told_of(spark: SparkSession, lake: Lake) -> None:
    assert record.of_renamed(spark, lake, "shop.clients") == []
    renames = [("customers", 10, "a"), ("clients", 10, "a"), ("orders", 11, "b"), ("old_orders", 11, "b")]
    facts: dict[str, Any] = {"db": "shop", "kind": "rename", "ts_ms": 1_000}
    told = [DdlRecord(**facts, table=table, statement=text, seq=(0, 1, pos)) for table, pos, text in renames]
    note(spark, lake, [of_statement(one) for one in told])
    [left] = record.of_renamed(spark, lake, "shop.clients")
    assert left.told().startswith("the table shop.customers: until somebody removes it (a RENAME gave rows")


def test_a_key_that_was_altered_meanwhile_is_asked_for_again(
    stats: None, spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    land(spark, lake, *FIRST[:2])
    wider = tuple(c.model_copy(update={"type": "bigint"}) if c.name == "id" else c for c in ITEMS.columns)
    known = [[ITEMS], [ITEMS, ITEMS.model_copy(update={"version": ITEMS.version + 1, "columns": wider})]]
    monkeypatch.setattr(Broker, "schemas", lambda _: known.pop(0), raising=False)
    monkeypatch.setattr(Broker, "__init__", lambda self, _: setattr(self, "checkpoint", lambda: checkpoint(1000)))
    with pytest.raises(LakeError, match=r"the key of shop.items was altered meanwhile: run it again"):
        job.erase(spark, lake.pipeline, ["shop.items"], "[1]", present="yes")


@pytest.mark.parametrize(
    "landed", [False, pytest.param(True, marks=pytest.mark.soak)], ids=["no changes", "of another table"]
)
def test_a_row_of_a_table_of_which_nothing_was_changed(
    stats: None, spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch, landed: bool
) -> None:
    """The schema topic has no shape of a table before its first change."""
    other = ITEMS.model_copy(update={"table": "others"})
    monkeypatch.setattr(Broker, "known", [other] if landed else [])
    stage(spark, lake, "1", 5, item(1, GONE), item(2))
    compaction.compact(spark, lake.pipeline)
    if landed:
        land(spark, lake, kafka_record(0, (0, 1, 11, 0, 0), "c", item(1, "kept"), schema=other))
    told = job.erase(spark, lake.pipeline, ["shop.items"], "[1]", present="yes", now="yes")
    assert told["tables"]["shop.items"]["table"] == 1
    assert (ids(spark, lake), holding(lake, GONE)) == ([2], [])
    snapshots = AppliedSnapshots(lake)
    snapshots.note(NAME, snapshots.tables[NAME].model_copy(update={"shape": None}))
    with pytest.raises(LakeError, match=r"an older version of Headrace applied its snapshot.*run the snapshot DAG"):
        job.erase(spark, lake.pipeline, ["shop.items"], "[1]", present="yes")


@pytest.mark.soak
def test_rows_that_a_killed_repair_has_read_are_nowhere(
    stats: None, spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unfinished, "SILENT", 1.5)
    filled(spark, lake)
    for name, beat in (("p1", time.time() + 7200), ("p2", None)):  # the clock was set back since
        rows = spark.createDataFrame([(1, GONE)], "id int, name string")
        rows.write.parquet(lake.at("_parts", name, "rows"))
        lake.write(lake.at("_parts", name, "keys.json"), [{"key": '{"id":1}'}])
        if beat:
            lake.write(lake.at("_parts", name, BEAT), {"at": beat, "by": "x"})
    erasing(spark, lake).run()
    assert holding(lake, GONE) == []
    assert lake.list(lake.at("_parts")) == []


@pytest.mark.soak
def test_a_snapshot_that_began_since_loses_none_of_its_rows(
    stats: None, spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The erasure has waited for the slot meanwhile. The snapshot's manifest would count rows that are gone."""
    monkeypatch.setattr(unfinished, "BEATS", 0.2)
    monkeypatch.setattr(unfinished, "SILENT", 1.5)
    filled(spark, lake)
    one = Unfinished(lake, "20260101T000000000Z")
    with one.beating():
        one.note(Progress(shape=ITEMS, made="1", p0=checkpoint(5)))
        erasing(spark, lake).run()
        assert one.progress("shop", "items")


def test_staged_rows_of_before_are_not_applied(spark: SparkSession, lake: Lake) -> None:
    """Their change, by which they would be passed by, is erased as well."""
    erasures = Erasures(lake)
    hash = erasures.hash_of("shop.items", '{"id":1}')
    staged = spark.createDataFrame([(1,), (2,)], "id bigint")
    known = erasures.known.model_copy(
        update={"erased": [Erased(tbl="shop.items", hash=hash, until=(0, 1, 50), gtid_set="")]}
    )
    erasures.known = known

    def left(read_behind: list[int], number: int = BEFORE_ALL) -> list[int]:
        return sorted(row["id"] for row in erasures.unstaged(staged, ITEMS, read_behind, number).collect())

    assert left([0, 1, 50, -1, -1]) == [2]
    assert left([0, 1, 51, -1, -1]) == [1, 2]
    assert left([0, 1, 50, -1, -1], erasures.known.number) == [1, 2], "it was read behind the erasure"


def test_the_properties_of_a_table_stay_the_users(spark: SparkSession, lake: Lake) -> None:
    path = lake.at("t")
    spark.range(1).write.format("delta").option("delta.checkpointInterval", "7").save(path)
    before = properties(spark, path)
    with failpoints.hooked(killed_at("log begun anew")), pytest.raises(KilledError):
        past.begun_anew(spark, lake, path)
    assert properties(spark, path)["delta.checkpointInterval"] == "1"
    past.begun_anew(spark, lake, path)
    assert properties(spark, path) == before
    assert before["delta.checkpointInterval"] == "7"


def test_a_log_of_many_commits_is_listed_once_and_forgotten_in_its_order(spark: SparkSession, lake: Lake) -> None:
    folder = Path(lake.changes, "_delta_log")
    folder.mkdir(parents=True)
    logged = [f"{version:020d}.{kind}" for version in range(30) for kind in ("crc", "json")]
    for name in (*logged, "_last_checkpoint", f"{20:020d}.checkpoint.parquet"):
        (folder / name).write_text("{}")
    lake._files = files = Watched(lake._files)
    past.forgotten(spark, lake, lake.changes, 20)
    assert files.listed == 1
    assert files.removed == sorted(logged[:40])
    assert {one.name for one in folder.iterdir()} == {
        *logged[40:], "_last_checkpoint", f"{20:020d}.checkpoint.parquet",
    }  # fmt: skip


def properties(spark: SparkSession, path: str) -> dict[str, str]:
    [row] = spark.sql(f"DESCRIBE DETAIL delta.`{path}`").select("properties").collect()
    return dict(row["properties"])


@pytest.mark.usefixtures("stats")
def test_a_row_that_was_deleted_long_ago_is_taken_out_of_the_file_that_has_it(spark: SparkSession, lake: Lake) -> None:
    """Its deletion only marked it there, and of its changes none is left: nothing is removed, and yet it is there."""
    land(spark, lake, *FIRST[:2])
    compaction.compact(spark, lake.pipeline)
    land(spark, lake, kafka_record(2, (0, 1, 12, 0, 0), "d", None, item(1, GONE)))
    compaction.compact(spark, lake.pipeline)
    DeltaTable.forPath(spark, lake.changes).delete("key = '{\"id\":1}'")
    assert files_of(spark, lake.table(*NAME)).marked == 1
    begun = erasing(spark, lake, hours=1).run()
    assert not any(begun.removed.values())
    assert [files_of(spark, path).marked for path in (lake.table(*NAME), lake.changes)] == [0, 0]
    assert ids(spark, lake) == [2]
