"""A key that is masked, was not before, or has its hashes by another secret: what an erasure finds, and the past."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from pyspark.sql import SparkSession

from contract import masks
from contract.checkpoint import OtherRules, Place
from contract.erased_key import keys_of
from contract.masks import Mask
from contract.renames import FILE
from contract.schema import Column, TableSchema
from contract.sequence import SPARK_TYPE
from spark.erasing import record as told
from spark.erasing.traces import Traces
from spark.errors import LakeError
from spark.evolution import breaks
from spark.evolution.evolution import Evolution
from spark.evolution.shape_changes import shape_changes
from spark.evolution.state import State
from spark.history.history import History
from spark.lake.lake import Lake
from spark.tables.schema import Schemas
from tests.spark.changes_by_hand import ITEMS, compact_json, record
from tests.spark.test_erasing import checkpoint, land
from tests.spark.test_history import CHANGE

SECRET, EARLIER = b"a secret of the pipeline", b"the secret of before"
PLAIN = TableSchema(
    db="shop",
    table="people",
    version=1,
    columns=(
        Column(name="email", type="varchar", length=50, charset="utf8mb4", nullable=False),
        Column(name="name", type="varchar", length=50, charset="utf8mb4"),
    ),
    key=("email",),
)
NUMBERS = PLAIN.model_copy(update={"columns": (Column(name="email", type="int", nullable=False), PLAIN.columns[1])})


def masked(schema: TableSchema, secret: bytes = SECRET, version: int = 2) -> TableSchema:
    key, *others = schema.columns
    columns = (masks.shown(key, Mask("hash", 0, secret)), *others)
    return schema.model_copy(update={"version": version, "columns": columns})


MASKED = masked(PLAIN)


def hashed(text: str, secret: bytes = SECRET) -> str:
    made = masks.text_of(Mask("hash", 0, secret))(text)
    assert made is not None
    return made


def person(email: Any) -> dict[str, Any]:
    return {"email": email, "name": "Bob"}


def traces(
    spark: SparkSession, lake: Lake, shapes: Sequence[TableSchema], key: str, secret: bytes = SECRET, **more: Any
) -> Traces:
    wanted = keys_of(compact_json([key]), shapes[-1], secret, NUMBERS if shapes[0] == NUMBERS else PLAIN)
    return Traces(spark, lake, shapes[-1], shapes, wanted, checkpoint(900).place, secret, **more)


def counts(found: Traces) -> tuple[int, int]:
    """What is found, and what is told of that is not searched."""
    events = found.events()
    assert events is not None
    return events.count(), found.unsearched()


@pytest.mark.parametrize("before", [PLAIN, NUMBERS], ids=["a text", "a number"])
def test_changes_of_before_the_keys_mask_are_found_by_its_plain_text(
    spark: SparkSession, lake: Lake, before: TableSchema
) -> None:
    key, other = ("7", 8) if before == NUMBERS else ("bob@x", "ann@x")
    now = masked(before)
    land(
        spark, lake,
        record(0, (0, 1, 10, 0, 0), "c", person(int(key) if before == NUMBERS else key), schema=before),
        record(1, (0, 1, 20, 0, 0), "c", person(other), schema=before),
        record(2, (0, 1, 60, 0, 0), "d", None, person(hashed(key)), schema=now),
        record(3, (0, 1, 61, 0, 0), "d", None, person(hashed(str(other))), schema=now),
    )  # fmt: skip
    found = traces(spark, lake, [before, now], key)
    assert counts(found) == (2, 0)
    assert len(found.texts()) == 2, "by both of them it must not come back"


def test_one_whose_mask_was_taken_away_is_found_by_its_hash_or_told_of(spark: SparkSession, lake: Lake) -> None:
    then, now = masked(PLAIN, version=1), PLAIN.model_copy(update={"version": 2})
    land(spark, lake, record(0, (0, 1, 10, 0, 0), "c", person(hashed("bob@x")), schema=then))
    land(spark, lake, record(1, (0, 1, 20, 0, 0), "d", None, person("bob@x"), schema=now))
    assert counts(traces(spark, lake, [then, now], "bob@x")) == (2, 0)
    assert counts(traces(spark, lake, [then, now], "bob@x", b"")) == (1, 1)


def test_changes_of_another_secret_are_told_and_found_by_that(spark: SparkSession, lake: Lake) -> None:
    """No version of the table tells the two apart."""
    before, now = masked(PLAIN, EARLIER, 1), masked(PLAIN, SECRET, 1)
    assert before == now
    land(
        spark, lake,
        record(0, (0, 1, 10, 0, 0), "c", person(hashed("bob@x", EARLIER)), schema=before),
        record(1, (0, 1, 60, 0, 0), "d", None, person(hashed("bob@x")), schema=now),
    )  # fmt: skip
    found = traces(spark, lake, [now], "bob@x", shown_since=(0, 1, 50))
    assert (counts(found), found.doubtful()) == ((1, 0), 1)
    assert "1 change(s) of the table were sent before its masks" in told.of_doubtful(lake.changes, 1)[0].told()
    assert told.of_doubtful(lake.changes, 0) == []
    assert traces(spark, lake, [now], "bob@x").doubtful() == 0
    assert traces(spark, lake, [PLAIN], "bob@x", shown_since=(0, 1, 50)).doubtful() == 0
    assert counts(traces(spark, lake, [now], "bob@x", EARLIER)) == (1, 0)


@pytest.mark.parametrize("kind", ["string", "bigint"])
def test_rows_that_did_not_change_since_the_mask_go_too(spark: SparkSession, lake: Lake, kind: str) -> None:
    """No snapshot was taken since; with a key of numbers the table cannot even take a hash."""
    before, keys = (PLAIN, ["bob@x", "ann@x", hashed("bob@x")]) if kind == "string" else (NUMBERS, [7, 8])
    rows = [(key, "Bob", (0, 1, 5, -1, -1)) for key in keys]
    made = spark.createDataFrame(rows, f"email {kind}, name string, _seq {SPARK_TYPE}")
    made.write.format("delta").save(lake.table("shop", "people"))
    found = traces(spark, lake, [before, masked(before)], str(keys[0]))
    assert found.rows() == len(keys) - 1
    found.erase_rows()
    left = spark.read.format("delta").load(lake.table("shop", "people")).collect()
    assert [row["email"] for row in left] == keys[1:2]


def test_rows_of_a_snapshot_that_are_masked_before_any_change_is(spark: SparkSession, lake: Lake) -> None:
    rows = spark.createDataFrame([(hashed("bob@x"), (0, 1, 5, -1, -1))], f"email string, _seq {SPARK_TYPE}")
    rows.write.format("delta").save(lake.table("shop", "people"))
    assert traces(spark, lake, [PLAIN], "bob@x").rows() == 0
    assert traces(spark, lake, [PLAIN], "bob@x", applied=MASKED).rows() == 1
    assert traces(spark, lake, [PLAIN], "bob@x", b"", applied=MASKED).rows() == 0, "nobody knows the secret"
    assert traces(spark, lake, [PLAIN], "bob@x", applied=ITEMS).rows() == 0, "it was read before it had such a key"


LETTER = "topic string, partition int, offset bigint, record_key binary, value binary"


def test_letters_are_the_tables_by_what_they_say_or_by_their_topic(spark: SparkSession, lake: Lake) -> None:
    """Tables may share a topic, and the pipeline file may have named another one before."""
    other = compact_json({"source": {"db": "shop", "table": "others"}}).encode()
    mine = compact_json({"source": {"db": "shop", "table": "items"}}).encode()
    now, earlier, strange = "shop.shop.items", "before", "somebody's"
    letters = [(now, b"?"), (now, other), (now, mine), (earlier, b"?"), (strange, mine), (strange, b"?")]
    rows = [(topic, 0, at, b'{"id":1}', value) for at, (topic, value) in enumerate(letters)]
    spark.createDataFrame(rows, LETTER).write.format("delta").save(lake.at("_dead_letters"))
    key, value, _, *place = record(0, (0, 1, 10, 0, 0), "c", {"id": 2, "name": "a", "price": "1.00"})
    land(spark, lake, (key, value, earlier, *place))
    found = Traces(spark, lake, ITEMS, [ITEMS], keys_of("1", ITEMS), checkpoint(900).place).letters()
    assert found is not None
    assert sorted(row["offset"] for row in found.collect()) == [0, 2, 3, 4]


def test_letters_longer_than_a_parser_of_json_takes_by_itself(spark: SparkSession, lake: Lake) -> None:
    source, doc = {"db": "shop", "table": "items"}, "x" * 20_000_001
    found = [{"source": source, "after": {"doc": doc, "id": 1}}, {"source": source, "before": {"id": 2, "doc": doc}}]
    rows = [("somebody's", 0, at, None, compact_json(one).encode()) for at, one in enumerate(found)]
    spark.createDataFrame(rows, LETTER).write.format("delta").save(lake.at("_dead_letters"))
    letters = Traces(spark, lake, ITEMS, [ITEMS], keys_of("1", ITEMS), checkpoint(900).place).letters()
    assert letters is not None
    assert [row["offset"] for row in letters.collect()] == [0]


def test_letters_of_before_the_mask_are_found_by_the_plain_key(spark: SparkSession, lake: Lake) -> None:
    keys = ["bob@x", "ann@x", hashed("bob@x")]
    rows = [("shop.shop.people", 0, n, compact_json({"email": key}).encode(), b"?") for n, key in enumerate(keys)]
    spark.createDataFrame(rows, LETTER).write.format("delta").save(lake.at("_dead_letters"))
    found = traces(spark, lake, [PLAIN, MASKED], "bob@x").letters()
    assert found is not None
    assert sorted(row["offset"] for row in found.collect()) == [0, 2]


def test_a_key_whose_letters_alone_were_renamed_is_found_under_both_names(spark: SparkSession, lake: Lake) -> None:
    """In changes, in findings and in letters: to a server they are one column."""
    key, *others = PLAIN.columns
    columns = (key.model_copy(update={"name": "Email"}), *others)
    now = PLAIN.model_copy(update={"version": 2, "columns": columns, "key": ("Email",)})
    land(spark, lake, record(0, (0, 1, 10, 0, 0), "c", person("bob@x"), schema=PLAIN))
    land(spark, lake, record(1, (0, 1, 20, 0, 0), "c", person("ann@x"), schema=PLAIN))
    land(spark, lake, record(2, (0, 1, 60, 0, 0), "d", None, {"Email": "bob@x", "name": "Bob"}, schema=now))
    letters = [compact_json({name: who}).encode() for name in ("email", "Email") for who in ("bob@x", "ann@x")]
    rows = [("shop.shop.people", 0, at, one, b"?") for at, one in enumerate(letters)]
    spark.createDataFrame(rows, LETTER).write.format("delta").save(lake.at("_dead_letters"))
    found = traces(spark, lake, [PLAIN, now], "bob@x")
    assert counts(found) == (2, 0)
    assert sorted(found.texts()) == ['{"Email":"bob@x"}', '{"email":"bob@x"}'], "by both it must not come back"
    told_of = found.letters()
    assert told_of is not None
    assert sorted(row["offset"] for row in told_of.collect()) == [0, 2]


def test_findings_of_before_the_keys_type_are_found_by_the_text_of_then(spark: SparkSession, lake: Lake) -> None:
    shapes = [
        TableSchema(
            db="shop", table="sums", version=at, columns=(Column(name="n", type="decimal", **kind),), key=("n",)
        )
        for at, kind in enumerate(({"precision": 6, "scale": 2}, {"precision": 8, "scale": 3}), 1)
    ]
    rows = [("r", "shop", "shop.sums", "changed", key) for key in ('{"n":"1.50"}', '{"n":"1.500"}', '{"n":"1.51"}')]
    made = spark.createDataFrame(rows, "run string, db string, tbl string, kind string, key string")
    made.write.format("delta").save(lake.at("_repairs"))
    wanted = keys_of('["1.5"]', shapes[-1])
    found = Traces(spark, lake, shapes[-1], shapes, wanted, checkpoint(900).place).audited("_repairs")
    assert found is not None
    assert sorted(row["key"] for row in found.collect()) == ['{"n":"1.50"}', '{"n":"1.500"}']


def test_rows_without_a_value_in_the_present_key_are_told_and_those_without_a_place_go(
    spark: SparkSession, lake: Lake
) -> None:
    """The key is new and no snapshot was taken since; somebody else wrote a row."""
    rows = [(None, "Bob", (0, 1, 5, -1, -1)), ("bob@x", "Bob", None), ("bob@x", "Bob", (0, 1, 901, 0, 0))]
    made = spark.createDataFrame(rows, f"email string, name string, _seq {SPARK_TYPE}")
    made.write.format("delta").save(lake.table("shop", "people"))
    found = traces(spark, lake, [PLAIN], "bob@x")
    assert (found.rows(), found.unkeyed()) == (1, 1)
    found.erase_rows()
    assert (found.rows(), found.unkeyed()) == (0, 1)
    [remains] = told.of_unkeyed(PLAIN, 1)
    assert "1 row(s) have no value in a column of its present key (email), and were not searched" in remains.told()
    assert told.of_unkeyed(PLAIN, 0) == []


def test_a_table_that_was_stopped_before_it_got_the_keys_column_has_rows_that_nobody_can_search(
    spark: SparkSession, lake: Lake
) -> None:
    made = spark.createDataFrame([("Bob", (0, 1, 5, -1, -1))], f"name string, _seq {SPARK_TYPE}")
    made.write.format("delta").save(lake.table("shop", "people"))
    found = traces(spark, lake, [PLAIN], "bob@x")
    assert (found.rows(), found.unkeyed()) == (0, 1)


MASK_AT: Place = (0, 1, 40)


def at(minute: int) -> datetime:
    return datetime(2026, 11, 22, 10, minute, tzinfo=UTC)


def test_a_keys_mask_ends_the_versions_of_rows() -> None:
    assert [one.kind for one in shape_changes(PLAIN, MASKED)] == ["widened", "mask"]
    found = breaks.of_shape(PLAIN, MASKED, MASK_AT, lost_names=False, had={})
    assert found is not None
    assert found.ends, "the same values have other texts from there on"
    other = PLAIN.model_copy(
        update={"columns": (PLAIN.columns[0], MASKED.columns[0].model_copy(update={"name": "name"}))}
    )
    assert breaks.of_shape(PLAIN, other, MASK_AT, lost_names=False, had={}) is None, "it is no column of the key"


OTHERS = (OtherRules(tables=("shop.people",), until=MASK_AT, ts_ms=7, rules="of before"),)


@pytest.mark.parametrize(
    ("newest", "applied", "table", "broken"),
    [
        (MASKED, None, "shop.people", True),  # by another secret
        (PLAIN, MASKED, "shop.*", True),  # nothing changed since the mask
        (PLAIN, PLAIN, "shop.people", False),
        (MASKED, MASKED, "shop.others", False),
    ],
)
def test_other_rules_for_a_hashed_key_break_the_past_once(
    spark: SparkSession, lake: Lake, newest: TableSchema, applied: TableSchema | None, table: str, broken: bool
) -> None:
    others = [OTHERS[0].model_copy(update={"tables": (table,)})]
    for _ in range(2):
        evolution = Evolution(spark, lake, Schemas([newest]))
        evolution.follow([], {}, {}, others, {("shop", "people"): applied})
    assert [(one.seq, one.ts_ms, one.ends) for one in evolution.state.breaks] == (
        [(MASK_AT, 7, True)] if broken else []
    )


def test_as_of_a_time_before_the_mask_is_refused_and_a_row_has_one_present_version(
    spark: SparkSession, lake: Lake
) -> None:
    """bob@x was changed at 10 and at 30; then the key got its mask, and a snapshot was taken."""
    before, after = {**person("bob@x"), "name": "B"}, person("bob@x")
    facts = ("shop", "shop.people", compact_json({"email": "bob@x"}))
    changes = [
        (*facts, "c", None, compact_json(before), 1, (0, 1, 10, 0, 0), "u:10", at(10)),
        (*facts, "u", compact_json(before), compact_json(after), 1, (0, 1, 30, 0, 0), "u:30", at(30)),
    ]
    spark.createDataFrame(changes, CHANGE).write.format("delta").partitionBy("tbl").save(lake.changes)
    now = [(hashed("bob@x"), "Bob", (0, 1, 50, -1, -1), at(50))]
    rows = spark.createDataFrame(now, f"email string, name string, _seq {SPARK_TYPE}, _ts timestamp")
    rows.write.format("delta").save(lake.table("shop", "people"))
    found = [*breaks.of_rules("shop", "people", [MASKED], OTHERS)]
    lake.write(lake.at(FILE), State(breaks=found).model_dump(mode="json"))
    history = History(spark, lake, "shop", "people")
    with pytest.raises(LakeError, match="begins"):
        history.as_of(at(20))
    assert history.versions().where("valid_to is null").count() == 1
