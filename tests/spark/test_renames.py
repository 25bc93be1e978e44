"""A column that was renamed and nothing else: the lake's table has its values under the new name, whatever comes late,
twice or half; where anything is in doubt it stays stale."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from delta.tables import DeltaTable
from pyspark.sql import SparkSession

from contract.ddl_record import DdlRecord
from contract.pipeline import Pipeline
from contract.schema import TableSchema
from contract.sequence import Sequence
from spark.compaction import compaction
from spark.evolution.evolution import Evolution
from spark.evolution.renames import in_lake
from spark.failpoints import hooked
from spark.lake.lake import Lake
from spark.proof.checksum import total
from spark.proof.rewind import Past
from spark.tables.schema import Schemas
from tests.spark.changes_by_hand import ITEMS, change, changes
from tests.spark.lake_by_hand import checkpoint, land, part, seq, stage

NAME = ("shop", "items")
FIRST = ITEMS.model_copy(update={"since": Sequence(0, 1, 1)})
LABEL = ITEMS.columns[1].model_copy(update={"name": "label"})
THEN = ITEMS.model_copy(
    update={"version": 2, "since": Sequence(0, 1, 60), "columns": (ITEMS.columns[0], LABEL, ITEMS.columns[2])}
)
AT = 50  # the statement's place


def ddl(pos: int = AT, *renamed: tuple[str, str], only: bool = True, **more: Any) -> DdlRecord:
    facts = {"db": "shop", "table": "items", "kind": "alter", "gtid": f"u:{pos}", "ts_ms": 1000, "seq": (0, 1, pos)}
    text = "ALTER TABLE items RENAME COLUMN name TO label"
    pairs = renamed or (("name", "label"),)
    return DdlRecord.model_validate({**facts, "statement": text, "renamed": pairs, "only_renamed": only, **more})


def before(n: int, name: str = "a") -> dict[str, Any]:
    return {"id": n, "name": name, "price": "1.00"}


def now(n: int, label: str = "a") -> dict[str, Any]:
    return {"id": n, "label": label, "price": "1.00"}


class Broker:
    """The schema topic, and the DDL topic, which is read once."""

    schemas_: tuple[TableSchema, ...] = ()
    ddl_: tuple[DdlRecord, ...] = ()

    def __init__(self, pipeline: Pipeline) -> None:
        self.checkpoint = lambda: checkpoint(1000)
        self.topics = self.topic_ids = self.ends = lambda *_: {}
        self.bounds = lambda topic: {0: (0, len(self.ddl_))}
        self.schemas = lambda: list(self.schemas_)

    def ddl(self, read: dict[int, int]) -> tuple[list[DdlRecord], dict[int, int]]:
        return list(self.ddl_[read.get(0, 0) :]), {0: len(self.ddl_)}


@pytest.fixture
def compact(spark: SparkSession, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, Any]]:
    """A whole run with these shapes and statements in the topics."""
    monkeypatch.setattr(compaction, "Broker", Broker)

    def run(*told: TableSchema | DdlRecord) -> dict[str, Any]:
        monkeypatch.setattr(Broker, "schemas_", tuple(one for one in told if isinstance(one, TableSchema)))
        monkeypatch.setattr(Broker, "ddl_", tuple(one for one in told if isinstance(one, DdlRecord)))
        return compaction.compact(spark, pipeline)

    return run


def rows(spark: SparkSession, lake: Lake) -> tuple[list[str], list[tuple[Any, ...]]]:
    frame = spark.read.format("delta").load(lake.table(*NAME))
    found = [(*row[:-2], row["_seq"]["pos"]) for row in frame.drop("price").collect()]
    return frame.columns, sorted(found)


RENAMED = ["id", "label", "price", "_seq", "_ts"]


def test_the_table_has_its_values_under_the_new_name_without_a_snapshot(
    spark: SparkSession, lake: Lake, compact: Callable[..., dict[str, Any]]
) -> None:
    """Changes of both shapes in one run, and of the old one behind it, from a partition that was read less far."""
    land(spark, lake, *[change(seq(n), "c", before(n)) for n in (1, 2, 3, 4)])
    assert compact(FIRST)["schema_changes"] == []
    land(spark, lake, change(seq(5), "u", before(2, "b"), FIRST), change(seq(61), "u", now(3, "c"), THEN))
    report = compact(FIRST, THEN, ddl())
    assert rows(spark, lake) == (RENAMED, [(1, "a", 1), (2, "b", 5), (3, "c", 61), (4, "a", 4)])
    assert report["tables"]["shop.items"]["stale"] is None
    assert (
        "shop.items: renamed name (name -> label): the lake's column has the new name, too" in report["schema_changes"]
    )
    told = spark.read.format("delta").load(lake.at("_schema_changes")).where("kind = 'renamed'").collect()
    assert [(row["column"], row["before"], row["after"], row["rule"]) for row in told] == [
        ("name", "name", "label", "carried")
    ]
    land(spark, lake, change(seq(6), "u", before(4, "late"), FIRST))
    compact(FIRST, THEN, ddl())
    assert rows(spark, lake)[1][-1] == (4, "late", 6)
    table = spark.read.format("delta").load(lake.table(*NAME))
    alone = changes(spark, *[change(seq(n), "c", now(i, text), THEN) for n, i, text in (
        (1, 1, "a"), (5, 2, "b"), (61, 3, "c"), (6, 4, "late"))])  # fmt: skip
    made = alone.selectExpr("from_json(after, 'id bigint, label string, price decimal(10,2)') as r").select("r.*")
    assert total(table, THEN) == total(made, THEN), "by the checksum that a check compares"


def test_a_check_winds_back_over_it(spark: SparkSession, lake: Lake, compact: Callable[..., dict[str, Any]]) -> None:
    land(spark, lake, change(seq(1), "c", before(1)), change(seq(61), "c", now(2), THEN))
    compact(FIRST, THEN, ddl())
    schemas = in_lake(lake, [FIRST, THEN])
    image = changes(spark, change(seq(1), "c", before(1))).selectExpr(
        "cast(null as string) as before", "after", "schema", "_seq", "'u:1' as gtid", "op"
    )
    kinds = {"id": "bigint", "label": "string", "price": "decimal(10,2)"}
    [step] = Past(image, schemas.all(*NAME), THEN, kinds, (0, 1, 0)).steps((0, 1, 99), lambda _: "0")
    first = spark.read.format("delta").load(lake.table(*NAME)).where("id = 1")
    assert step.deltas[0] == total(first, THEN)


class KilledError(Exception):
    pass


@pytest.mark.parametrize(
    "point",
    [
        "rename noted",
        *(
            pytest.param(point, marks=pytest.mark.soak)
            for point in ("columns renamed", "shape changes noted", "evolution noted")
        ),
    ],
)
def test_a_run_that_dies_in_it_is_made_good_by_the_next(
    spark: SparkSession, lake: Lake, compact: Callable[..., dict[str, Any]], point: str
) -> None:
    land(spark, lake, change(seq(1), "c", before(1)))
    compact(FIRST)
    land(spark, lake, change(seq(61), "c", now(2), THEN))

    def die(reached: str) -> None:
        if reached == point:
            raise KilledError

    with hooked(die), pytest.raises(KilledError):
        compact(FIRST, THEN, ddl())
    seen: list[str] = []
    with hooked(seen.append):
        report = compact(FIRST, THEN, ddl())
    assert "columns renamed" not in seen, "once"
    assert rows(spark, lake) == (RENAMED, [(1, "a", 1), (2, "a", 61)])
    assert report["tables"]["shop.items"]["stale"] is None
    assert report["tables"]["shop.items"]["foreign"] is None


def test_a_run_that_dies_between_two_renames_of_a_column_is_made_good_by_the_next(
    spark: SparkSession, lake: Lake, compact: Callable[..., dict[str, Any]]
) -> None:
    text = THEN.columns[1].model_copy(update={"name": "text"})
    third = THEN.model_copy(
        update={"version": 3, "since": Sequence(0, 1, 80), "columns": (THEN.columns[0], text, THEN.columns[2])}
    )
    told = (FIRST, THEN, third, ddl(), ddl(70, ("label", "text")))
    land(spark, lake, change(seq(1), "c", before(1)))
    compact(FIRST)
    land(
        spark, lake, change(seq(2), "c", before(4)), change(seq(61), "c", now(2), THEN),
        change(seq(81), "c", {"id": 3, "text": "a", "price": "1.00"}, third),
    )  # fmt: skip
    seen: list[str] = []

    def die(reached: str) -> None:
        seen.append(reached)
        if seen.count("columns renamed") == 2:
            raise KilledError

    with hooked(die), pytest.raises(KilledError):
        compact(*told)
    assert compact(*told)["tables"]["shop.items"]["stale"] is None
    assert rows(spark, lake) == (
        ["id", "text", "price", "_seq", "_ts"], [(1, "a", 1), (2, "a", 61), (3, "a", 81), (4, "a", 2)]
    )  # fmt: skip


def test_before_a_row_tells_the_new_shape_the_table_is_stale(
    spark: SparkSession, lake: Lake, compact: Callable[..., dict[str, Any]]
) -> None:
    land(spark, lake, change(seq(1), "c", before(1)))
    assert compact(FIRST, ddl())["tables"]["shop.items"]["stale"]
    assert rows(spark, lake)[0] == [column.name for column in ITEMS.columns] + ["_seq", "_ts"]
    land(spark, lake, change(seq(61), "u", now(1, "b"), THEN))
    assert compact(FIRST, THEN, ddl())["tables"]["shop.items"]["stale"] is None
    assert rows(spark, lake) == (RENAMED, [(1, "b", 61)])


def test_what_was_staged_before_it_comes_in_its_place(
    spark: SparkSession, lake: Lake, compact: Callable[..., dict[str, Any]]
) -> None:
    """A snapshot's rows take the new name; a repair's are refused, and read again by the next."""
    land(spark, lake, change(seq(1), "c", before(1)), change(seq(61), "c", now(2), THEN))
    compact(FIRST, THEN, ddl())
    stage(spark, lake, "1", 40, before(1, "read"), before(7, "read"), of=FIRST)
    part(spark, lake, "2", 45, before(1, "mended"), of=FIRST)
    compact(FIRST, THEN, ddl())
    assert rows(spark, lake) == (RENAMED, [(1, "read", 40), (2, "a", 61), (7, "read", 40)])
    status = lake.read(lake.status)
    assert "a column of shop.items was renamed since the rows were read" in status["parts"]["2"]["refused"]


@pytest.mark.soak
def test_the_table_keeps_its_properties(
    spark: SparkSession, pipeline: Pipeline, compact: Callable[..., dict[str, Any]]
) -> None:
    """`readers: compatible` has no deletion vectors, and none afterwards."""
    lake = Lake(spark, pipeline)
    properties = []
    for vectors in ("false", "true"):
        path = lake.table("shop", "items")
        lake.delete(lake.root)
        land(spark, lake, change(seq(1), "c", before(1)))
        compact(FIRST)
        spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.enableDeletionVectors' = '{vectors}')")
        land(spark, lake, change(seq(61), "c", now(2), THEN))
        compact(FIRST, THEN, ddl())
        assert rows(spark, lake)[0] == RENAMED
        properties.append(DeltaTable.forPath(spark, path).detail().first()["properties"])  # type: ignore[index]
    assert [found["delta.enableDeletionVectors"] for found in properties] == ["false", "true"]


KEYED = THEN.model_copy(
    update={"key": ("nr",), "columns": (ITEMS.columns[0].model_copy(update={"name": "nr"}), *ITEMS.columns[1:])}
)
SWAPPED = THEN.model_copy(
    update={"columns": (ITEMS.columns[0], *(ITEMS.columns[at].model_copy(update={"name": name})
                                            for at, name in ((1, "price"), (2, "name"))))}
)  # fmt: skip
LONGER = THEN.model_copy(
    update={"columns": (ITEMS.columns[0], LABEL.model_copy(update={"length": 99}), ITEMS.columns[2])}
)


@pytest.mark.parametrize(
    ("then", "records"),
    [
        (THEN, [ddl(only=False)]),
        (THEN, [ddl(AT, ("price", "label"))]),
        (THEN, [ddl(), ddl(AT + 1, kind="shape", statement="ALTER TABLE items ADD x INT")]),
        (LONGER, [ddl()]),
        (KEYED, [ddl(AT, ("id", "nr"))]),
        (SWAPPED, [ddl(AT, ("name", "price"), ("price", "name"), statement="ALTER TABLE items CHANGE ...")]),
        (THEN, [ddl(AT, renamed=(), only_renamed=False)]),
    ],
    ids=["more", "another column", "two statements", "another size", "a key", "names exchanged", "an older streamer"],
)
def test_in_doubt_it_stays_stale_and_as_it_was(
    spark: SparkSession, lake: Lake, then: TableSchema, records: list[DdlRecord]
) -> None:
    land(spark, lake, change(seq(1), "c", before(1)))
    changes(spark, change(seq(1), "c", before(1))).selectExpr(
        "1L as id", "'a' as name", "cast(1 as decimal(10,2)) as price", "_seq", "ts as _ts"
    ).write.format("delta").save(lake.table(*NAME))
    evolution = Evolution(spark, lake, Schemas([FIRST, then]))
    evolution.follow(records, {}, {})
    assert set(evolution.stale()) == {NAME}
    assert rows(spark, lake)[0] == ["id", "name", "price", "_seq", "_ts"]


def test_a_table_that_has_a_column_of_the_new_name_from_before_waits_for_a_snapshot(
    spark: SparkSession, lake: Lake, compact: Callable[..., dict[str, Any]]
) -> None:
    land(spark, lake, change(seq(1), "c", before(1)))
    compact(FIRST)
    spark.sql(f"ALTER TABLE delta.`{lake.table(*NAME)}` ADD COLUMNS (Label string AFTER price)")
    land(spark, lake, change(seq(61), "c", now(2), THEN))
    assert compact(FIRST, THEN, ddl())["tables"]["shop.items"]["stale"]
