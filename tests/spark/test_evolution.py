"""Which tables are stale, from when to when, and that each change of a shape is told once."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

from contract import breaks
from contract.breaks import Break, last
from contract.ddl_record import DdlRecord
from contract.renames import FILE
from contract.schema import Column, TableSchema
from contract.sequence import Sequence
from spark.evolution.evolution import Evolution
from spark.lake.lake import Lake
from spark.lake.unfinished import Plan, Unfinished
from spark.tables.schema import Schemas
from tests.spark.changes_by_hand import ITEMS, LINES
from tests.spark.lake_by_hand import stage

NAME = ("shop", "items")
NOTE = Column(name="note", type="varchar", length=9)
WIDE = Column(name="name", type="varchar", length=200)
FIRST = ITEMS.model_copy(update={"since": Sequence(0, 1, 10)})


def shape(version: int, pos: int, *columns: Column) -> TableSchema:
    return ITEMS.model_copy(update={"version": version, "columns": columns, "since": Sequence(0, 1, pos)})


def ddl(pos: int, kind: str = "alter", **more: Any) -> DdlRecord:
    facts = {"db": "shop", "table": "items", "statement": "ALTER TABLE items ...", "gtid": f"u:{pos}", "ts_ms": 1000}
    return DdlRecord.model_validate({**facts, "kind": kind, "seq": (0, 1, pos), **more})


class Followed:
    """A lake whose runs follow what is given; each with a fresh Evolution, as a job of its own."""

    def __init__(self, spark: SparkSession, lake: Lake) -> None:
        self.spark, self.lake = spark, lake
        self.schemas: list[TableSchema] = [FIRST]
        self.floors: dict[tuple[str, str], list[int]] = {}
        self.applied: dict[tuple[str, str], TableSchema | None] = {}
        self.known: Schemas | None = None
        self.until: tuple[int, int, int] | None = None
        self.told: list[str] = []

    def run(self, *records: DdlRecord, read: int = 0) -> set[tuple[str, str]]:
        evolution = Evolution(self.spark, self.lake, Schemas(self.schemas))
        offsets = {0: read} if read else {}
        evolution.follow(records, offsets, self.floors, applied=self.applied, known=self.known, until=self.until)
        self.told = evolution.told
        return set(evolution.stale())

    def breaks(self) -> list[Break]:
        return breaks.parse(self.lake.text(self.lake.at(FILE)))

    def rows(self) -> list[tuple[Any, ...]]:
        frame = self.spark.read.format("delta").load(self.lake.at("_schema_changes"))
        return sorted(map(tuple, frame.select("tbl", "kind", "rule").collect()))


@pytest.fixture
def followed(spark: SparkSession, lake: Lake) -> Followed:
    return Followed(spark, lake)


def test_a_stale_table_is_stale_until_a_snapshot_from_behind_the_statement(followed: Followed) -> None:
    assert followed.run(ddl(50), read=1) == {NAME}
    assert "shop.items: ALTER TABLE items ...: values of rows that were there may have changed" in followed.told
    assert followed.run() == {NAME}
    assert followed.told == []
    followed.floors[NAME] = [0, 1, 50, -1, -1]  # its checkpoint is the end of the transaction before
    assert followed.run() == {NAME}
    followed.floors[NAME] = [0, 1, 51, -1, -1]
    assert followed.run() == set()
    assert followed.run(ddl(60)) == {NAME}
    assert followed.rows() == [("items", "alter", "stale"), ("items", "alter", "stale")]
    assert Evolution(followed.spark, followed.lake, Schemas([])).read == {0: 1}


def test_it_says_since_when_why_and_what_mends_it(followed: Followed) -> None:
    evolution = Evolution(followed.spark, followed.lake, Schemas([FIRST]))
    secret = "ALTER TABLE items ADD c VARCHAR(9) DEFAULT 'a row''s value'"
    evolution.follow([ddl(50, statement=secret), ddl(60)], {}, {})
    stale = evolution.stale()[NAME]
    assert (stale.kind, stale.since, stale.ts_ms, stale.gtid) == ("alter", (0, 1, 50), 1000, "u:50")
    assert stale.reason == (
        "stale since 1970-01-01 00:00:01 UTC (u:50, and again at 0:1:60): ALTER TABLE items ADD c VARCHAR(9) DEFAULT "
        "'...': values of rows that were there may have changed. To mend it, run the snapshot DAG, or `headrace "
        "snapshot`, for the table"
    )


def test_a_table_that_is_dropped_and_made_again_and_again_is_stale_anew_each_time(followed: Followed) -> None:
    """What is to read it again by itself does so once for the same reason."""
    followed.floors[NAME] = [0, 1, 1, -1, -1]
    told = []
    for record in (ddl(50, "drop"), ddl(60, "shape"), ddl(70, "drop"), ddl(80, "shape", table="lines")):
        evolution = Evolution(followed.spark, followed.lake, Schemas([FIRST]))
        evolution.follow([record], {}, followed.floors)
        told.append(evolution.stale()[NAME].reason)
    assert "(u:50): ALTER" in told[0]
    assert ["(u:50, and again at 0:1:60)" in told[1], "(u:50, and again at 0:1:70)" in told[2]] == [True, True]
    assert told[3] == told[2]


@pytest.mark.parametrize(
    ("kind", "stale"),
    [
        ("drop", True), ("rename", True), ("partition", True), ("alter", True), ("unknown", True), ("cascade", True),
        ("truncate", False), ("shape", False), ("harmless", False),
    ],
)  # fmt: skip
def test_every_kind_of_statement_has_its_rule_and_its_row(followed: Followed, kind: str, stale: bool) -> None:
    assert followed.run(ddl(50, kind)) == ({NAME} if stale else set())
    assert followed.rows() == [("items", kind, "stale" if stale else "carried")]
    assert len(followed.told) == (kind != "harmless")


def test_what_comes_again_is_neither_told_nor_stale_again(followed: Followed) -> None:
    """In a new epoch the same statement has another place; a run that died had written its row."""
    followed.run(ddl(50))
    followed.floors[NAME] = [0, 1, 70, -1, -1]
    assert followed.run() == set()
    again = ddl(50).model_copy(update={"seq": (1, 1, 50)})
    assert followed.run(again, ddl(50)) == set()
    assert followed.rows() == [("items", "alter", "stale")]


def test_a_run_that_died_before_it_kept_its_marks_loses_none(followed: Followed) -> None:
    followed.run(ddl(50))
    followed.lake.delete(followed.lake.at("_evolution.json"))
    assert followed.run(ddl(50)) == {NAME}
    assert followed.rows() == [("items", "alter", "stale")]


def test_a_table_of_which_nothing_older_is_in_the_lake_is_not_stale(followed: Followed) -> None:
    assert followed.run(ddl(5)) == set()
    followed.floors[NAME] = [0, 1, 1, -1, -1]
    assert followed.run(ddl(6)) == {NAME}


@pytest.mark.parametrize("kind", ["alter", "drop", "unknown"])
def test_a_statement_behind_the_reads_of_a_table_that_is_in_no_lake_yet_makes_it_stale(
    followed: Followed, kind: str
) -> None:
    """Nothing was streamed of it, and other tables of its snapshot are still being read."""
    followed.schemas = []
    plan = Plan(tables=["shop.items"], began=1.0, landing=None, place=(0, 1, 40))
    Unfinished(followed.lake, "20260101T000000000Z").begin(plan)
    assert followed.run(ddl(30, kind)) == set(), "the snapshot has that"
    assert followed.run(ddl(50, kind)) == {NAME}
    followed.floors[NAME] = [0, 1, 40, -1, -1]
    assert followed.run() == {NAME}
    followed.floors[NAME] = [0, 1, 51, -1, -1]
    assert followed.run() == set()


def test_nor_is_one_stale_for_ever_that_was_dropped_before_its_turn(followed: Followed) -> None:
    followed.schemas = []
    job = Unfinished(followed.lake, "20260101T000000000Z")
    job.begin(Plan(tables=["shop.items", "shop.lines"], began=1.0, landing=None, place=(0, 1, 40)))
    assert followed.run(ddl(50, "drop")) == {NAME}
    assert followed.run() == {NAME}
    job.begin(Plan(tables=["shop.lines"], began=1.0, landing=None, place=(0, 1, 40)))
    assert followed.run() == set()


def test_also_where_the_snapshot_is_staged_whole(followed: Followed) -> None:
    followed.schemas = []
    stage(followed.spark, followed.lake, "1", 40, {"id": 1, "name": "a", "price": "1.00"})
    assert followed.run(ddl(30)) == set()
    assert followed.run(ddl(50)) == {NAME}


def test_a_table_that_takes_rows_of_another_name_is_stale_before_it_is_known(followed: Followed) -> None:
    followed.schemas = []
    assert followed.run(ddl(50, "rename"), ddl(51, "drop", table="lines")) == {NAME}


def test_a_table_that_is_made_with_a_key_that_changes_rows_in_silence_is_stale_until_a_snapshot(
    followed: Followed,
) -> None:
    """Whatever its shapes show: the rows are yet to come."""
    made = "CREATE TABLE new (p INT, FOREIGN KEY (p) REFERENCES items (id) ON DELETE CASCADE)"
    assert followed.run(ddl(50, "cascade", table="new", statement=made)) == {("shop", "new")}
    followed.schemas.append(ITEMS.model_copy(update={"table": "new", "since": Sequence(0, 1, 60)}))
    assert followed.run() == {("shop", "new")}
    followed.floors[("shop", "new")] = [0, 1, 70, -1, -1]
    assert followed.run() == set()


def test_values_that_stayed_by_the_shapes_are_not_stale(followed: Followed) -> None:
    modify = ddl(50, statement="ALTER TABLE items MODIFY name VARCHAR(200)")
    assert followed.run(modify) == {NAME}, "no row came since: nobody knows"
    followed.schemas.append(shape(2, 60, ITEMS.columns[0], WIDE, ITEMS.columns[2]))
    assert followed.run() == set()
    assert ("items", "widened", "carried") in followed.rows()
    dropped = ddl(70, statement="ALTER TABLE items DROP COLUMN price")
    followed.schemas.append(shape(3, 80, ITEMS.columns[0], WIDE))
    assert followed.run(dropped) == set()
    assert followed.told == [
        "shop.items: ALTER TABLE items DROP COLUMN price: values of rows that were there may have changed",
        "shop.items: dropped price (decimal(10, 2) -> none): it stays in the lake, and is null in rows that change "
        "from now on",
    ]


@pytest.mark.parametrize(
    "statements",
    [
        [(50, "alter", "ALTER TABLE items DROP price"), (51, "shape", "ALTER TABLE items ADD price DECIMAL(10, 2)")],
        [(50, "alter", "ALTER TABLE items MODIFY name VARCHAR(9)"), (51, "alter", "ALTER TABLE items MODIFY name ...")],
        [(50, "alter", "ALTER TABLE items MODIFY name VARCHAR(200) GENERATED ALWAYS AS (price) STORED")],
        [(50, "alter", "ALTER TABLE items MODIFY name VARCHAR(200) AFTER price, MODIFY price FLOAT8 (7,2)")],
        [(50, "rename", "RENAME TABLE items TO old, new TO items")],
    ],
    ids=["dropped and added again", "cut and widened", "an expression", "rounded", "a swap"],
)
def test_shapes_do_not_excuse_what_they_cannot_see(followed: Followed, statements: list[tuple[int, str, str]]) -> None:
    followed.schemas.append(shape(2, 60, ITEMS.columns[0], ITEMS.columns[2], WIDE))
    assert followed.run(*(ddl(pos, kind, statement=text) for pos, kind, text in statements)) == {NAME}


MADE = "create table IF NOT EXISTS items (id INT PRIMARY KEY)"


@pytest.mark.parametrize(
    ("others", "stale"),
    [
        ([(45, "shape", f"/* app */ {MADE}"), (55, "shape", MADE)], False),
        ([(55, "shape", "CREATE TABLE items (id INT PRIMARY KEY)")], True),
        ([(54, "drop", "DROP TABLE items"), (55, "shape", MADE)], True),
    ],
    ids=["the table is there", "made", "dropped and made"],
)
def test_an_application_that_makes_its_tables_at_each_start_leaves_an_alter_alone_between_the_shapes(
    followed: Followed, others: list[tuple[int, str, str]], stale: bool
) -> None:
    followed.schemas.append(shape(2, 60, ITEMS.columns[0], WIDE, ITEMS.columns[2]))
    records = [ddl(pos, kind, statement=text) for pos, kind, text in others]
    alter = ddl(50, statement="ALTER TABLE items MODIFY name VARCHAR(200)")
    assert followed.run(*records, alter) == ({NAME} if stale else set())


def test_a_table_that_is_made_and_made_again_while_a_run_is_under_way_is_stale(followed: Followed) -> None:
    """The run asked for the shapes before there was one, and reads the statements behind it."""
    followed.schemas, followed.known = [], Schemas([FIRST])
    assert followed.run(ddl(50, "drop", statement="DROP TABLE items")) == {NAME}
    again = FIRST.model_copy(update={"version": 2, "since": Sequence(0, 1, 60)})
    followed.schemas, followed.known = [FIRST, again], None
    assert followed.run() == {NAME}, "the statement does not come again"
    followed.floors[NAME] = [0, 1, 70, -1, -1]
    assert followed.run() == set()


def test_such_a_statement_counts_before_the_table_is_known(followed: Followed) -> None:
    followed.schemas = []
    followed.floors[NAME] = [0, 1, 1, -1, -1]
    followed.run(ddl(5, "shape", statement=MADE))
    assert Evolution(followed.spark, followed.lake, Schemas([])).state.shaped == [(*NAME, (0, 1, 5))]


@pytest.mark.parametrize(
    ("facts", "stale"),
    [({"dropped": ("gone",)}, False), ({"dropped": ("Name",)}, True), ({"computed": True}, True)],
    ids=["another column", "another of its name", "computed"],
)
def test_nor_what_the_statement_did_besides(followed: Followed, facts: dict[str, Any], stale: bool) -> None:
    followed.schemas.append(shape(2, 60, ITEMS.columns[0], ITEMS.columns[2], WIDE))
    alter = ddl(50, statement="ALTER TABLE items MODIFY name VARCHAR(200) AFTER price")
    assert followed.run(alter.model_copy(update=facts)) == ({NAME} if stale else set())


@pytest.mark.parametrize(
    ("more", "computed", "stale"),
    [
        ("", True, False),
        (", MODIFY name VARCHAR(100)", True, True),
        (", MODIFY name VARCHAR(100)", False, False),
        (", DEFAULT COLLATE utf8mb4_bin", True, True),
    ],
)
def test_nor_a_collation_by_which_another_column_is_computed(
    followed: Followed, more: str, computed: bool, stale: bool
) -> None:
    """Which no shape has: it is another one where a column is defined without it."""
    followed.schemas.append(shape(2, 60, *ITEMS.columns[:2]))
    alter = ddl(50, statement=f"ALTER TABLE items DROP price{more}", computed=computed)
    assert followed.run(alter) == ({NAME} if stale else set())


def test_a_column_that_comes_back_is_not_taken_for_what_it_was(followed: Followed) -> None:
    followed.schemas.append(shape(2, 60, *ITEMS.columns[:2]))
    followed.run(ddl(50, statement="ALTER TABLE items DROP price"))
    followed.schemas.append(shape(3, 90, *ITEMS.columns))
    assert followed.run(ddl(80, "shape", statement="ALTER TABLE items ADD price DECIMAL(10, 2)")) == {NAME}
    assert ("items", "added again", "stale") in followed.rows()
    assert last(breaks.of(followed.breaks(), *NAME)) == (0, 1, 90), "its values of before are another column's"


def test_a_statement_about_a_whole_database_or_of_which_nothing_is_known(followed: Followed) -> None:
    followed.schemas.append(LINES.model_copy(update={"since": Sequence(0, 1, 10)}))
    lines = ("shop", "lines")
    assert followed.run(ddl(50, "unknown", db="other", table=None, statement="FROBNICATE shop.lines")) == {lines}
    assert followed.run(ddl(51, "drop", db="other", table=None)) == {lines}
    assert followed.run(ddl(52, "drop", table=None)) == {NAME, lines}


def test_a_table_that_is_no_longer_the_pipelines_is_not_marked(spark: SparkSession, lake: Lake) -> None:
    globs = lake.pipeline.tables.model_copy(update={"exclude": ("*.items",)})
    without = Lake(spark, lake.pipeline.model_copy(update={"tables": globs}))
    assert Followed(spark, without).run(ddl(50)) == set()


def test_a_column_that_came_back_of_another_type_breaks_the_past_and_one_behind_a_rename_does_not(
    followed: Followed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark.evolution.evolution.rewritten", lambda *_: True)
    number = Column(name="note", type="int")
    followed.schemas = [FIRST, shape(2, 20, *ITEMS.columns, NOTE), shape(3, 30, *ITEMS.columns)]
    followed.schemas.append(shape(4, 40, *ITEMS.columns, number))
    followed.run()
    assert [(one.version, one.columns, one.ends) for one in followed.breaks()] == [(4, ("note",), False)]
    label = number.model_copy(update={"name": "label"})
    followed.schemas += [shape(5, 60, *ITEMS.columns, label), shape(6, 70, *ITEMS.columns, label, NOTE)]
    followed.run(ddl(50, renamed=(("note", "label"),), only_renamed=True))
    assert [one.version for one in followed.breaks()] == [4]


@pytest.mark.parametrize(
    ("columns", "key", "broken"),
    [
        ((*ITEMS.columns[:2], Column(name="price", type="int")), ITEMS.key, (False, ("price",))),
        ((ITEMS.columns[0].model_copy(update={"name": "ident"}), *ITEMS.columns[1:]), ("ident",), (True, ())),
        ((ITEMS.columns[0], WIDE, ITEMS.columns[2]), ITEMS.key, None),
    ],
    ids=["another type", "the key renamed", "wider"],
)
def test_a_snapshot_that_reads_the_new_shape_before_a_change_tells_of_it_breaks_the_past(
    followed: Followed, columns: tuple[Column, ...], key: tuple[str, ...], broken: tuple[bool, tuple[str, ...]] | None
) -> None:
    followed.run(ddl(50))
    anew = shape(0, 0, *columns).model_copy(update={"key": key, "since": None})
    followed.floors[NAME], followed.applied[NAME] = [0, 1, 60, -1, -1], anew
    wanted = [(*broken, (0, 1, 60), 2)] if broken else []
    for _ in range(2):
        assert followed.run() == set()
        assert [(one.ends, one.columns, one.seq, one.version) for one in followed.breaks()] == wanted
    followed.schemas.append(anew.model_copy(update={"version": 2, "since": Sequence(0, 1, 90)}))
    assert followed.run() == set()
    assert len(followed.breaks()) == 2 * len(wanted)
