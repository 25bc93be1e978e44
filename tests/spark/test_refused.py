"""What somebody made of one lake table stops that one, and it goes on once that is taken back."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from contract.erased_key import keys_of
from contract.schema import Column, TableSchema
from spark.compaction import compaction
from spark.erasing.traces import Traces
from spark.errors import LakeError
from spark.failpoints import hooked
from spark.job import JobFailedError
from spark.lake.lake import Lake
from spark.merging.handoff import apply_ready
from spark.merging.tables import Merging
from spark.session import OURS
from spark.tables.refused import refused, unfit
from spark.tables.schema import Schemas, at
from tests.spark.changes_by_hand import ITEMS, change, changes, truncation
from tests.spark.lake_by_hand import AT, NAME, ids, item, land, part, seq, stage, unwatched

OTHERS = ITEMS.model_copy(update={"table": "others"})
MARK = "spark.databricks.delta.commitInfo.userMetadata"
CONSTRAINT = "ALTER TABLE {} ADD CONSTRAINT few CHECK (id < 5)"
APPEND_ONLY = "ALTER TABLE {} SET TBLPROPERTIES ('delta.appendOnly' = 'true')"
NOT_NULL = (
    "CREATE OR REPLACE TABLE {} (id bigint, name string NOT NULL, price decimal(10,2), "
    "_seq struct<epoch:bigint,file:bigint,pos:bigint,event:bigint,row:bigint>, _ts timestamp) USING delta"
)


def merged(spark: SparkSession, lake: Lake, number: int, *rows: tuple[Any, ...]) -> Merging:
    land(spark, lake, *rows)
    step = Merging(spark, lake, Schemas([ITEMS, OTHERS]), unwatched(lake))
    step._batch(changes(spark, *rows), number, "q")
    return step


def next_run(spark: SparkSession, lake: Lake) -> Merging:
    """With nothing new: it tries the stopped tables again."""
    step = Merging(spark, lake, Schemas([ITEMS, OTHERS]), unwatched(lake))
    step.retry()
    return step


def by_somebody(spark: SparkSession, statement: str) -> None:
    """By a session of somebody else: its commits do not say that they are Headrace's."""
    spark.conf.set(MARK, "")
    try:
        spark.sql(statement)
    finally:
        spark.conf.set(MARK, OURS)


def way_back(text: str) -> str:
    found = re.search(r"Take it back: (ALTER TABLE .*?)(?:\. |; its changes wait|$)", text)
    assert found is not None, text
    return found[1]


@pytest.mark.parametrize(
    ("done", "row", "said"),
    [
        (CONSTRAINT, change(seq(2), "c", item(9)), "the constraint few (id < 5), which a row of the source does not"),
        (APPEND_ONLY, change(seq(2), "u", item(1, "b")), "somebody else than Headrace's jobs set delta.appendOnly"),
        pytest.param(APPEND_ONLY, truncation(seq(2)), "takes no updates and no deletes", marks=pytest.mark.soak),
    ],
    ids=["constraint", "append only", "append only, truncated"],
)
def test_one_table_stops_with_the_way_back_and_goes_on_behind_it(
    spark: SparkSession, lake: Lake, done: str, row: tuple[Any, ...], said: str
) -> None:
    merged(spark, lake, 0, change(seq(1), "c", item(1)), change(seq(1), "c", item(1), OTHERS))
    by_somebody(spark, done.format(at(lake.table(*NAME))))
    step = merged(spark, lake, 1, row, change(seq(2), "c", item(2), OTHERS))
    assert [*step.stopped.tables] == [NAME]
    assert spark.read.format("delta").load(lake.table("shop", "others")).count() == 2
    text = step.stopped.tables[NAME].reason
    assert text.startswith("shop.items: ")
    assert said in text
    assert re.search(r"as version \d+, at 20", text), text
    again = next_run(spark, lake)
    assert [*again.stopped.tables] == [NAME]
    spark.sql(way_back(text))
    assert next_run(spark, lake).stopped.tables == {}
    wanted = {"c": [(1, "a"), (9, "a")], "u": [(1, "b")], "t": []}
    assert ids(spark, lake) == wanted[row[3]]


def test_a_column_that_somebody_made_not_null(spark: SparkSession, lake: Lake) -> None:
    by_somebody(spark, NOT_NULL.format(at(lake.table(*NAME))))
    step = merged(spark, lake, 0, change(seq(2), "c", item(9) | {"name": None}))
    text = step.stopped.tables[NAME].reason
    assert "the lake's column name takes no NULL" in text
    spark.sql(way_back(text))
    assert next_run(spark, lake).stopped.tables == {}
    assert spark.read.format("delta").load(lake.table(*NAME)).count() == 1


@pytest.mark.soak
def test_a_run_of_all_tables_comes_to_its_end(
    spark: SparkSession, lake: Lake, compact: Callable[[], dict[str, Any]]
) -> None:
    """Also where a snapshot is staged: its part is refused, and taken in once the table can be written."""
    stage(spark, lake, "1", AT, item(1))
    compact()
    by_somebody(spark, CONSTRAINT.format(at(lake.table(*NAME))))
    land(spark, lake, change(seq(AT + 5), "c", item(9)))
    with pytest.raises(JobFailedError, match="the constraint few"):
        compact()
    stage(spark, lake, "2", AT + 50, item(1), item(8))
    refusal = apply_ready(spark, lake).refused[NAME]
    assert "the constraint few" in refusal
    with pytest.raises(JobFailedError, match="the constraint few"):
        compact()
    spark.sql(way_back(refusal))
    report = compact()
    assert report["tables"]["shop.items"].get("stopped") is None
    assert ids(spark, lake) == [(1, "a"), (8, "a")]


def repaired(spark: SparkSession, lake: Lake) -> list[str]:
    """The keys of the rows that the audit table says were mended."""
    return sorted(row["key"] for row in spark.read.format("delta").load(lake.at("_repairs")).select("key").collect())


def test_a_repair_of_such_a_table_is_refused_by_name_and_noted_as_nothing(
    spark: SparkSession, lake: Lake, compact: Callable[[], dict[str, Any]]
) -> None:
    """What was not mended is not what a snapshot that was read before it leaves out."""
    stage(spark, lake, "1", AT, item(1))
    compact()
    by_somebody(spark, APPEND_ONLY.format(at(lake.table(*NAME))))
    part(spark, lake, "p1", AT + 20, item(1, "right"), keys=[{"id": 1}])
    told = compact()["parts"]["p1"]
    assert "somebody else than Headrace's jobs set delta.appendOnly" in told["refused"]
    assert told["refused"].endswith(". Then run the repair again")
    assert (told["rows"], repaired(spark, lake)) == ({}, [])
    spark.sql(way_back(told["refused"]))
    stage(spark, lake, "2", AT + 10, item(1, "right"))
    compact()
    assert ids(spark, lake) == [(1, "right")]


class CrashError(Exception):
    pass


def crash_at(step: str) -> Callable[[str], None]:
    def crash(point: str) -> None:
        if point == step:
            raise CrashError

    return crash


@pytest.mark.parametrize(
    "step",
    [*(pytest.param(one, marks=pytest.mark.soak) for one in ("repair noted", "part replaced")), "repair forgotten"],
)
@pytest.mark.soak
def test_a_repair_that_died_and_is_refused_then_is_noted_as_far_as_the_table_has_it(
    spark: SparkSession, lake: Lake, compact: Callable[[], dict[str, Any]], step: str
) -> None:
    stage(spark, lake, "1", AT, item(1), item(2))
    compact()
    part(spark, lake, "p1", AT + 20, item(1, "right"), item(2, "right"))
    if step == "repair forgotten":
        by_somebody(spark, APPEND_ONLY.format(at(lake.table(*NAME))))
    with hooked(crash_at(step)), pytest.raises(CrashError):
        compact()
    if step == "part replaced":
        by_somebody(spark, f"UPDATE {at(lake.table(*NAME))} SET name = 'wrong' WHERE id = 2")
    if step == "repair forgotten":
        spark.sql(f"ALTER TABLE {at(lake.table(*NAME))} UNSET TBLPROPERTIES ('delta.appendOnly')")
        assert compact()["parts"]["p1"]["rows"] == {"changed": 2}
        assert repaired(spark, lake) == ['{"id":1}', '{"id":2}']
        return
    by_somebody(spark, APPEND_ONLY.format(at(lake.table(*NAME))))
    assert "delta.appendOnly" in compact()["parts"]["p1"]["refused"]
    assert repaired(spark, lake) == (['{"id":1}'] if step == "part replaced" else [])


@pytest.mark.parametrize("step", ["repair noted", pytest.param("part replaced", marks=pytest.mark.soak)])
def test_what_was_noted_of_a_part_that_is_not_wanted_then_goes_where_the_table_never_had_it(
    spark: SparkSession, lake: Lake, compact: Callable[[], dict[str, Any]], step: str
) -> None:
    """Else the hand-off of a snapshot that began before would leave out the rows: as mended behind it."""

    stage(spark, lake, "1", AT, item(1), item(2))
    compact()
    part(spark, lake, "p1", AT + 20, item(1, "right"), item(2))
    with hooked(crash_at(step)), pytest.raises(CrashError):
        compact()
    assert repaired(spark, lake) == ['{"id":1}']
    shutil.rmtree(Path(lake.at("_parts"), "p1", "rows"))
    assert "are not whole" in compact()["parts"]["p1"]["refused"]
    assert repaired(spark, lake) == (['{"id":1}'] if step == "part replaced" else [])
    stage(spark, lake, "2", AT + 10, item(1, "read before"), item(2))
    compact()
    assert ids(spark, lake) == [(1, "right" if step == "part replaced" else "read before"), (2, "a")]


def test_what_a_part_took_away_stays_away_behind_an_older_snapshot_though_it_is_refused_then(
    spark: SparkSession, lake: Lake, compact: Callable[[], dict[str, Any]]
) -> None:
    stage(spark, lake, "1", AT, item(1), item(2))
    compact()
    part(spark, lake, "p1", AT + 20, item(1))
    with hooked(crash_at("part replaced")), pytest.raises(CrashError):
        compact()
    stage(spark, lake, "2", AT + 10, item(1), item(2))
    shutil.rmtree(Path(lake.at("_parts"), "p1", "rows"))
    assert "are not whole" in compact()["parts"]["p1"]["refused"]
    assert (ids(spark, lake), repaired(spark, lake)) == ([(1, "a")], ['{"id":2}'])


def test_an_erasure_says_what_keeps_it_from_a_table(
    spark: SparkSession, lake: Lake, compact: Callable[[], dict[str, Any]]
) -> None:
    stage(spark, lake, "1", AT, item(1))
    compact()
    by_somebody(spark, APPEND_ONLY.format(at(lake.table(*NAME))))
    traces = Traces(spark, lake, ITEMS, [ITEMS], keys_of("1", ITEMS), (9, 9, 9))
    with pytest.raises(LakeError, match=r"delta.appendOnly.*Then run this again"):
        traces.erase_rows()


@pytest.mark.parametrize("snapshot", [True, False])
def test_features_that_this_delta_does_not_know_stop_their_table_alone(
    spark: SparkSession, lake: Lake, compact: Callable[[], dict[str, Any]], snapshot: bool
) -> None:
    """Also before its first `snapshot` is applied."""
    if not snapshot:
        land(spark, lake, change(seq(5), "c", item(1)))
        compact()
    stage(spark, lake, "1", AT, item(1))
    if snapshot:
        compact()
    log = Path(lake.table(*NAME), "_delta_log")
    known = {"minReaderVersion": 3, "minWriterVersion": 7}
    newer = {"protocol": {**known, "readerFeatures": ["of2030"], "writerFeatures": ["of2030"]}}
    (log / f"{(lake.version(lake.table(*NAME)) or 0) + 1:020}.json").write_text(json.dumps(newer) + "\n")
    lake.forget_logs()
    land(spark, lake, change(seq(AT + 5), "c", item(9)))
    with pytest.raises(JobFailedError, match=r"does not know \(of2030\).*move the folder .*/shop/items away"):
        compact()
    if snapshot:  # nobody can say whether the table has its rows
        part(spark, lake, "p1", AT, item(1, "right"))
        with pytest.raises(JobFailedError, match=r"does not know \(of2030\).*move the folder .*/shop/items away"):
            compact()
    shutil.move(lake.table(*NAME), f"{lake.root}-away")
    lake.forget_logs()
    stage(spark, lake, "2", AT + 50, item(1), item(9))
    compact()
    assert ids(spark, lake) == [(1, "a"), (9, "a")]


DOUBLE = TableSchema(
    db="shop",
    table="items",
    version=1,
    columns=(Column(name="id", type="double", nullable=False), *ITEMS.columns[1:]),
    key=("id",),
)
EXACT = ITEMS.model_copy(update={"version": 2})


def knowing(broker: Any, shapes: list[TableSchema]) -> Any:
    broker.schemas = lambda: shapes
    return broker


def test_a_table_with_a_double_as_its_key_waits_for_another_key_and_a_snapshot(
    spark: SparkSession, lake: Lake, compact: Callable[[], dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """0.0 and -0.0 are two texts of one value. It may be made while the streamer runs, which asks as it starts."""
    shapes = [DOUBLE]
    known = compaction.Broker
    monkeypatch.setattr(compaction, "Broker", lambda pipeline: knowing(known(pipeline), shapes))
    rows = [change(seq(1), "c", item(0) | {"id": 0.0}, DOUBLE), change(seq(3), "c", item(0) | {"id": -0.0}, DOUBLE)]
    land(spark, lake, *rows)
    with pytest.raises(JobFailedError, match="primary key has the column id of type double: no text of it is exact"):
        compact()
    shapes.append(EXACT)
    land(spark, lake, change(seq(AT + 5), "c", item(9), EXACT))
    with pytest.raises(JobFailedError, match=r"had the column id of type double, and its changes of then .* snapshot"):
        compact()
    stage(spark, lake, "1", AT, item(1), of=EXACT)
    compact()
    assert ids(spark, lake) == [(1, "a"), (9, "a")]


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ("[DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE] Cannot perform", "two keys of its changes are one"),
        ("[DELTA_NOT_NULL_CONSTRAINT_VIOLATED] NOT NULL constraint violated for column: a b. \n", "COLUMN `a b` DROP"),
        (
            "[DELTA_MISSING_NOT_NULL_COLUMN_VALUE] Column n, which has a NOT NULL constraint",
            "ALTER COLUMN `n` DROP NOT",
        ),
        ("[DELTA_INVALID_PROTOCOL_VERSION] Unsupported Delta protocol version", "a newer protocol than Delta's"),
        (
            "[DELTA_VIOLATE_CONSTRAINT_WITH_VALUES] CHECK constraint few (n\n < 5) violated by row with values:\n - 7",
            "the constraint few (n < 5), which a row of the source does not meet",
        ),
        (
            "[DELTA_VIOLATE_CONSTRAINT_WITH_VALUES] CHECK constraint not so few (n < 5) violated by row with values:\n",
            "DROP CONSTRAINT `not so few`",
        ),
        (
            "[DELTA_VIOLATE_CONSTRAINT_WITH_VALUES] CHECK constraint a few RLIKE(name, b (c)) violated by row:\n",
            "DROP CONSTRAINT `a few`",
        ),
        ("[DELTA_VIOLATE_CONSTRAINT_WITH_VALUES] CHECK constraint well ok violated by row\n", "DROP CONSTRAINT well"),
    ],
)
def test_what_delta_says_is_told_with_the_next_step(lake: Lake, told: str, said: str) -> None:
    text = refused(lake, NAME, RuntimeError(told))
    assert text is not None
    assert text.startswith("shop.items: ")
    assert said in text
    assert "\n" not in text
    assert "7" not in text.replace(lake.root, "")


@pytest.mark.parametrize(
    "told",
    [
        "java.io.IOException: No space left on device",
        "java.lang.OutOfMemoryError: Java heap space",
        "software.amazon.awssdk.core.exception.SdkClientException: Unable to execute HTTP request",
        "Job 3 cancelled because SparkContext was shut down",
        "[DELTA_CONCURRENT_APPEND] ConcurrentAppendException: Files were added",
    ],
)
def test_a_failure_of_the_machine_stops_no_table(
    spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch, told: str
) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError(told)

    assert unfit(lake, NAME, RuntimeError(told)) is None
    monkeypatch.setattr("spark.merging.tables.merge", fail)
    with pytest.raises(RuntimeError, match=re.escape(told)):
        merged(spark, lake, 0, change(seq(1), "c", item(1)))
    assert Merging(spark, lake, Schemas([ITEMS]), unwatched(lake)).stopped.tables == {}
