"""The comparison at a commit boundary: which states count as equal, and what is said of a difference."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import polars as pl
import pytest
from deltalake import write_deltalake
from pydantic import TypeAdapter
from pyspark.sql import SparkSession
from pyspark.sql import functions as fn

from contract.checkpoint import Checkpoint, Earlier
from contract.patterns import TablePattern
from contract.pipeline import Pipeline, Tables
from contract.pipeline_columns import Columns
from contract.schema import Column, TableSchema
from contract.status import AppliedSnapshot, Foreign, LakeStatus, Stale, TableStatus
from quality.report import differences
from spark.errors import LakeError, PassingError
from spark.jobs.verify import _line
from spark.lake.applied import Applied, AppliedSnapshots
from spark.lake.lake import Lake
from spark.proof.answer import Answer
from spark.proof.boundary import Read, match, window
from spark.proof.checksum import Total, totals
from spark.proof.finding import LACKS, Finding, apart, found_of, incomparable, result, why
from spark.proof.rewind import Step
from spark.proof.splits import Ranges
from spark.proof.verification import Verification
from spark.proof.waiting import Waiting
from spark.tables.schema import Schemas
from tests.checkpoints import checkpoint

ANOTHER = "4e11fa47-71ca-11e1-9e33-c80aa9429562"
UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
SCHEMA = TableSchema(db="shop", table="t", columns=(Column(name="id", type="int"),), key=("id",))
LOW = checkpoint(pipeline="shop", server_uuid="u", pos=100, gtid_set="u:1-5")
# Two transactions in the window, and what came after it.
WALK = [
    Step((0, 1, 200), f"{UUID}:6", {0: Total(1, 10)}),
    Step((0, 1, 300), f"{UUID}:7", {0: Total(-1, -3)}),
    Step((0, 1, 999), None, {0: Total(5, 500)}),
]
NOW = {0: Total(15, 1507)}  # so: 10 rows and 1000 at the low end, 11 and 1010 after :6, 10 and 1007 after :7


def answer(rows: int, sum_: int, seen: str = "", exact: bool = False, high: int = 900) -> Answer:
    split = Ranges((SCHEMA.columns[0],), [])
    return Answer(Columns().show(SCHEMA), split, [Read({0: Total(rows, sum_)}, seen, (0, 1, high), exact)], 0.1)


def test_each_boundary_of_the_window_proves_it() -> None:
    for total, boundary in ((Total(10, 1000), ""), (Total(11, 1010), ":6"), (Total(10, 1007), ":7")):
        finding = found_of(answer(*total), NOW, WALK, None)
        assert (finding.boundary, finding.lake, finding.now) == (boundary and UUID + boundary, total, 15)
        assert result(answer(*total), finding, LOW)["boundary"] == ((boundary and UUID + boundary) or "u:1-5")


def test_a_state_outside_of_the_window_is_a_difference() -> None:
    finding = found_of(answer(15, 1507), NOW, WALK, "why")
    told = result(answer(15, 1507), finding, LOW)
    assert (told["equal"], told["boundary"], told["reason"]) == (False, None, "why")
    assert (told["source_count"], told["lake_count"]) == (15, 10)
    assert finding.wrong == {0}


@pytest.mark.parametrize(
    ("read", "bounds"),
    [
        (answer(0, 0), (0, 2)),
        (answer(0, 0, high=300), (0, 1)),  # the second began at the end of what was read
        (answer(0, 0, seen=f"{UUID}:1-6"), (1, 2)),
        (answer(0, 0, seen=f"{UUID}:1-7"), (2, 2)),
        (answer(0, 0, high=250, exact=True), (1, 1)),
    ],
)
def test_what_the_read_showed_for_certain_narrows_the_window(read: Answer, bounds: tuple[int, int]) -> None:
    assert window(read.reads[0], WALK) == bounds


def test_a_row_twice_in_the_lake_is_not_taken_for_the_state_before_it_came() -> None:
    """The lake has the row of :6 twice. Before :6 it would be equal; but the read showed :6 for certain."""
    now = {0: Total(16, 1517)}
    assert found_of(answer(11, 1010, seen=f"{UUID}:1-6"), now, WALK, None).boundary is None
    assert found_of(answer(11, 1010), now, WALK, None).boundary == "", "which is why the window is narrowed"


def test_a_missing_row_and_a_changed_value_are_told_by_count_and_checksum() -> None:
    missing = result(answer(11, 1000), found_of(answer(11, 1000), NOW, [], None), LOW)
    assert (missing["equal"], missing["source_count"], missing["lake_count"]) == (False, 11, 15)
    changed = found_of(answer(10, 1001), NOW, WALK, None)
    assert changed.boundary is None
    assert changed.lake.rows == 10
    assert changed.now == 15  # MySQL would have as many rows now as the lake has


def test_only_what_differs_at_the_nearest_boundary_is_wrong() -> None:
    """Four groups of one read: one has another row in the lake, two changed about the read."""
    steps = [
        Step((0, 1, 200), f"{UUID}:6", {"a": Total(0, 5)}),
        Step((0, 1, 300), f"{UUID}:7", {"b": Total(1, 40)}),
        Step((0, 1, 400), f"{UUID}:8", {"a": Total(0, 7), "b": Total(-1, -40)}),
    ]
    read = Read({"a": Total(1, 15), "b": Total(1, 40), "c": Total(1, 3), "d": Total()}, "", (0, 1, 900))
    found = match(read, {"a": Total(1, 22), "c": Total(1, 4)}, steps)
    assert (found.gtid, found.wrong, found.states["c"]) == (f"{UUID}:7", {"c"}, Total(1, 4))
    equal = match(read, {"a": Total(1, 22), "c": Total(1, 3)}, steps)
    assert (equal.gtid, equal.wrong) == (f"{UUID}:7", frozenset())


def test_a_table_of_which_changes_are_left_out_is_not_compared() -> None:
    rules = [
        {"tables": ["shop.*"], "drop": ["ddl"]},
        {"tables": [r"/shop\.(audit|log)/"], "drop": ["delete", "truncate"]},
    ]
    pipeline = Pipeline.model_validate(
        {
            "format": 1,
            "name": "shop",
            "source": {"host": "h", "user": "u", "password": "p", "server_id": 7},
            "tables": {"include": ["shop.*"]},
            "events": rules,
            "kafka": {"bootstrap": "h:9092"},
            "lake": {"path": "lake"},
            "transforms": [{"tables": ["shop.visits"], "function": "visits.transform"}],
            "path": "shop.yaml",
        }
    )
    transformed = incomparable(pipeline, "shop", "visits")
    assert transformed is not None
    assert (transformed["equal"], "transforms in shop.yaml change" in transformed["reason"]) == (None, True)
    assert incomparable(pipeline, "shop", "orders") is None, "all of its rows are there"
    facts = incomparable(pipeline, "shop", "audit")
    assert facts is not None
    assert facts["equal"] is None
    assert facts["reason"].startswith("not compared: events in shop.yaml leaves out its delete, truncate changes")
    assert differences({"tables": {"shop.audit": facts}}) == {}, "no false alarm"


def test_a_lake_that_is_late_is_a_reason_to_try_again() -> None:
    pipeline = SimpleNamespace(name="shop", path="s.yaml")
    lake: Any = SimpleNamespace(status="_status.json", text=lambda path: None, pipeline=pipeline)
    told = r"the lake is complete up to nothing yet, the check needs u:1-9: .*\(or `headrace compact s\.yaml`\) run"
    with pytest.raises(PassingError, match=told):
        Waiting(lake, 0, print, None).until_complete(["shop.t"], (0, 1, 900), "u:1-9", -1.0)


@pytest.mark.parametrize("p1", [f"{UUID}:1-50", f"{ANOTHER}:1-9"], ids=["to come", "lost by a failover"])
def test_a_snapshot_is_waited_for_that_the_lake_can_still_come_to(p1: str) -> None:
    """Where another server went on that never had its last transactions, all tables would wait for ever."""
    of = AppliedSnapshot(id="1", p0="", p1=p1, rows=1, applied_at=1)
    tables = {"shop.t": TableStatus(db="shop", table="t", rows=1, changes=0, snapshot=of)}
    wait = Waiting(Mock(), LOW.epoch, print, None)

    def complete(pos: int) -> bool:
        at = LOW.model_copy(update={"gtid_set": f"{UUID}:1-{pos}"})
        known: dict[str, Any] = {"pipeline": "shop", "run": 1, "written_at": 1, "seconds": 1, "changes_version": 1}
        status = LakeStatus(checkpoint=at, tables=tables, **known)
        return wait._complete(status, ["shop.t"], f"{UUID}:1-60", LOW.place)

    assert not complete(40)
    assert complete(60)


def test_a_lake_of_an_older_epoch_is_late_and_one_of_a_newer_epoch_ends_the_check() -> None:
    """Behind a failover no compaction may have run yet, and the check's own is to make it."""
    known: dict[str, Any] = {"pipeline": "shop", "run": 1, "written_at": 1, "seconds": 1, "changes_version": 1}
    status = LakeStatus(checkpoint=LOW, tables={}, **known)
    wait = Waiting(Mock(), LOW.epoch + 1, print, None)
    assert not wait._complete(status, [], LOW.gtid_set, (LOW.epoch + 1, 1, 4))
    with pytest.raises(PassingError, match="moved to another server during the check"):
        Waiting(Mock(), LOW.epoch - 1, print, None)._complete(status, [], LOW.gtid_set, LOW.place)


def test_its_table_is_told_to_differ_by_that_and_may_be_mended() -> None:
    of = AppliedSnapshot(id="1", p0="", p1=f"{ANOTHER}:1-9", rows=1, applied_at=1)
    ahead = "its snapshot is ahead of the lake's checkpoint"
    table = TableStatus(db="shop", table="t", rows=1, changes=0, snapshot=of, ahead=ahead)
    assert apart(table) == ahead
    assert why(table) is None


def waiting(
    monkeypatch: pytest.MonkeyPatch, *texts: str | None, compact: Any = None, person: bool = False, seconds: float = 1e9
) -> list[str]:
    """What a check tells that looks at these texts of the lake's status, one after the other, 20 seconds apart."""
    left, told, clock = [*texts], list[str](), iter(range(0, 10_000, 20))
    pipeline = SimpleNamespace(name="shop", path="s.yaml")
    lake: Any = SimpleNamespace(status="", root="/lake/shop", text=lambda _: left.pop(0), pipeline=pipeline)
    monkeypatch.setattr("spark.proof.waiting.time.sleep", lambda _: None)
    monkeypatch.setattr("spark.proof.waiting.time.monotonic", lambda: next(clock))
    monkeypatch.setattr("spark.proof.waiting.for_a_person", lambda: person)
    monkeypatch.setattr(Waiting, "_complete", lambda *_: False)
    with suppress(IndexError):  # no more texts
        Waiting(lake, 0, told.append, compact).until_complete([], (0, 1, 900), "u:1-9", seconds)
    return told


def test_a_wait_says_what_ends_it_and_is_told_again_where_the_lake_went_on(monkeypatch: pytest.MonkeyPatch) -> None:
    empty, later = (
        json.dumps({**STATUS, "tables": {}, "checkpoint": found}) for found in (None, json.loads(LOW.model_dump_json()))
    )
    first, second = waiting(monkeypatch, empty, empty, empty, later, later)
    assert first.startswith("waiting for a compaction to complete the lake up to u:1-9; it has nothing yet. ")
    assert "`headrace compact s.yaml --loop`, the DAG shop.compaction, or this check's --compact" in first
    assert f"it has {LOW.gtid_set}. " in second
    assert "headrace" not in waiting(monkeypatch, empty, compact=lambda: None)[0], "it compacts itself"


def test_a_person_without_a_lake_is_told_at_once_and_a_scheduler_may_make_one(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LakeError, match=r"no lake yet.*add --compact, or start `headrace compact s\.yaml --loop`"):
        waiting(monkeypatch, None, person=True)
    assert waiting(monkeypatch, None, person=True, compact=lambda: None)
    assert waiting(monkeypatch, None)


def test_a_wait_is_as_long_as_it_is_to_be_where_the_clock_is_set_back(monkeypatch: pytest.MonkeyPatch) -> None:
    back = iter(range(10**9, 0, -3600))
    monkeypatch.setattr("spark.proof.waiting.time.time", lambda: next(back))
    with pytest.raises(PassingError, match=r"quality\.wait_seconds is the limit"):
        waiting(monkeypatch, *[None] * 100, seconds=40)


PATTERN: TypeAdapter[Any] = TypeAdapter(TablePattern)
STALE = Stale(kind="partition", since=(0, 1, 500), ts_ms=1, reason="stale since DROP PARTITION")
APPLIED = AppliedSnapshot(id="s", p0="", p1="", rows=1, applied_at=1)
TABLE = TableStatus(db="shop", table="t", rows=1, changes=0, version=0, snapshot=APPLIED)
STATUS = {"pipeline": "shop", "run": 1, "written_at": 1, "seconds": 1, "checkpoint": None, "changes_version": None}


def of_shop() -> Pipeline:
    source = {"host": "h", "user": "u", "password": "p", "server_id": 7}
    given = {"format": 1, "name": "shop", "source": source, "tables": {"include": ["shop.*"]}, "lake": {"path": "lake"}}
    return Pipeline.model_validate(given | {"kafka": {"bootstrap": "h:9092"}})


def compared(
    spark: SparkSession,
    answer: Answer,
    table: TableStatus,
    altered: Sequence[Any] = (),
    unplaced: bool = False,
    end: Checkpoint = LOW,
    losses: Sequence[Any] = (),
    written: str | None = None,
) -> tuple[Any, Finding]:
    """The check of a table of one row. `written`: what is said of somebody else who wrote it since.
    `altered`, `losses`: as the lake knows of them; `unplaced`: whether the row is;
    `end`: what the lake is complete up to."""
    state, complete = json.dumps({"altered": [*altered]}), STATUS | {"checkpoint": json.loads(end.model_dump_json())}
    texts = {
        "_evolution.json": state,
        "_lost.json": json.dumps([*losses]),
        "_status.json": json.dumps(complete | {"tables": {"shop.t": table.model_dump()}}),
    }
    lake = SimpleNamespace(status="_status.json", at=lambda name: name, text=texts.pop, pipeline=of_shop())  # once each
    row, place = spark.createDataFrame([(1,)], "id bigint"), LOW.place
    known: dict[str, Any] = {
        "frames": {},
        "later": {},
        "lost": set[str](),
        "low": LOW,
        "tell": print,
        "compact": None,
        "status": None,
    }
    check: Any = SimpleNamespace(lake=lake, frame=lambda *_: row, past=lambda *_: None, **known)
    check._written = lambda _: written
    check._unplaced, check._erased = lambda *_: unplaced, lambda *_: None
    status = Verification.wait(check, ["shop.t"], place, "u:1-9", 1.0)
    assert check.status == status
    found = [Verification.compare(check, answer, status, Schemas([SCHEMA])) for _ in range(2)]
    return check, found[-1]


def test_an_empty_sample_of_a_table_that_the_lake_lacks_proves_nothing() -> None:
    none: Any = SimpleNamespace(tables={})
    for chosen, reason in ((None, None), (frozenset({0}), LACKS)):
        found = Verification.compare(Mock(), replace(answer(0, 0), chosen=chosen), none, Schemas([]))
        assert (found.reason, result(answer(0, 0), found, LOW)["equal"]) == (reason, reason is None)


def test_what_speaks_against_a_table_is_told_though_it_is_equal(spark: SparkSession) -> None:
    [one] = totals(spark.createDataFrame([(1,)], "id bigint"), SCHEMA, fn.lit(0)).values()
    equal = answer(one.rows, one.sum)
    told = result(equal, compared(spark, equal, TABLE.model_copy(update={"stale": STALE}))[1], LOW)
    assert (told["equal"], told["doubts"]) == (True, ["stale since DROP PARTITION"])
    assert "doubts" not in result(equal, compared(spark, equal, TABLE)[1], LOW)
    foreign = TABLE.model_copy(update={"foreign": Foreign(reason="somebody else changed it", at=1)})
    [doubt] = result(equal, compared(spark, equal, foreign)[1], LOW)["doubts"]
    assert doubt.startswith(
        "somebody else changed it. This check found all of its rows equal: the next compaction takes"
    )
    strange = result(equal, compared(spark, equal, foreign, unplaced=True)[1], LOW)
    assert (strange["equal"], strange["unplaced"]) == (True, True)
    assert "some have an order (_seq) that no change can have" in strange["doubts"][0]
    wrong = result(answer(2, 5), compared(spark, answer(2, 5), foreign)[1], LOW)
    assert (wrong["equal"], wrong["doubts"]) == (False, ["somebody else changed it"])
    sampled = replace(equal, chosen=frozenset({0}))
    assert result(sampled, compared(spark, sampled, foreign)[1], LOW)["doubts"] == ["somebody else changed it"]
    made_in_the_stream = TABLE.model_copy(update={"snapshot": None})
    assert why(made_in_the_stream) is None
    assert why(made_in_the_stream.model_copy(update={"unread": "not yet snapshotted"})) == "not yet snapshotted"
    assert "doubts" not in result(equal, compared(spark, equal, made_in_the_stream)[1], LOW)


def test_a_table_that_somebody_wrote_since_is_not_called_equal(spark: SparkSession) -> None:
    """What is compared is the version that the last compaction left, and readers see another."""
    [one] = totals(spark.createDataFrame([(1,)], "id bigint"), SCHEMA, fn.lit(0)).values()
    equal = answer(one.rows, one.sum)
    check, found = compared(spark, equal, TABLE, written="somebody deleted rows")
    told = result(equal, found, LOW)
    assert (told["equal"], told["reason"], check.lost) == (False, "somebody deleted rows", {"shop.t"})


def test_what_somebody_wrote_since_is_found_in_the_tables_log(spark: SparkSession, lake: Lake) -> None:
    path = lake.table("shop", "t")
    spark.sql(f"CREATE TABLE delta.`{path}` (id bigint) USING delta")
    snapshots, one = AppliedSnapshots(lake), Applied(**APPLIED.model_dump(), floor=[0, 1, 4, -1, -1])
    snapshots.note(("shop", "t"), one)
    check: Any = SimpleNamespace(lake=lake, pipeline=lake.pipeline, status=None)
    check._replaced = partial(Verification._replaced, check)
    check.compact, check.low, check.tell = Mock(side_effect=LakeError("compacted")), LOW, print
    check._written, check._any_written = (
        partial(Verification._written, check),
        partial(Verification._any_written, check),
    )
    table = TABLE.model_copy(update={"version": lake.version(path)})
    lake.write(lake.status, STATUS | {"tables": {"shop.t": table.model_dump(mode="json")}})
    spark.sql(f"INSERT INTO delta.`{path}` VALUES (1)")  # by a compaction that runs beside
    assert check._written(table) is None
    assert not check._any_written(["shop.t"])
    write_deltalake(path, pl.DataFrame({"id": [7]}), mode="append")
    told = check._written(table)
    assert re.search(r"\(WRITE as version 2.*\), which is not compared: .*verify with --compact$", told), told
    with pytest.raises(LakeError, match="compacted"):
        Verification.wait(check, ["shop.t"], LOW.place, "", 1.0)
    snapshots.note(("shop", "t"), one.model_copy(update={"id": "another"}))
    assert check._written(table) is None, "its log is another one"


def test_a_read_of_before_the_tables_last_statement_proves_nothing(spark: SparkSession) -> None:
    """The lake has all of the check before by now, which read before a statement that no change tells of."""
    [one] = totals(spark.createDataFrame([(1,)], "id bigint"), SCHEMA, fn.lit(0)).values()
    resumed = replace(answer(one.rows, one.sum, high=400), resumed=1)
    check, found = compared(spark, resumed, TABLE, [("shop", "t", (0, 1, 500)), ("shop", "t", (0, 1, 300))])
    told = result(resumed, found, LOW)
    assert (told["equal"], check.lost) == (False, {"shop.t"})
    assert "verify again" in told["reason"]
    for well, statements in ((resumed, [("shop", "t", (0, 1, 300))]), (replace(resumed, resumed=0), [])):
        assert compared(spark, well, TABLE, statements)[1].boundary == ""


def test_a_table_that_was_altered_and_read_again_meanwhile_is_checked_again(spark: SparkSession) -> None:
    """By the snapshot since it has no row of before the statement, and no change leads back to what this check read."""
    wrong = answer(2, 5, high=400)
    statement = ("shop", "t", (0, 1, 500))
    check, found = compared(spark, wrong, TABLE, [statement])
    assert ("verify again" in str(found.reason), check.lost) == (True, {"shop.t"})
    check, found = compared(spark, answer(2, 5, high=600), TABLE, [statement])
    assert (found.reason, check.lost) == (None, set()), "what was read behind it is a difference"
    stale = TABLE.model_copy(update={"stale": STALE})
    check, found = compared(spark, wrong, stale, [statement])
    assert ("stale" in str(found.reason), check.lost) == (True, set()), "nobody has read it again"


OTHERS = Tables(include=("shop.*",), exclude=("shop.t",))
GAP = LOW.model_copy(
    update={"tables": Tables(include=("shop.*",)), "earlier": (Earlier(tables=OTHERS, until=(0, 1, 500)),)}
)
LOST = {"topic": "shop.shop.t", "partition": 0, "until": [0, 1, 500, 3, 1]}


@pytest.mark.parametrize("known", [{"end": GAP}, {"losses": [LOST]}], ids=["not followed for a time", "lost by Kafka"])
def test_a_read_of_before_changes_that_the_lake_never_got_proves_nothing(spark: SparkSession, known: Any) -> None:
    """The lake lacks them, as it did when the source was read: that was told as equal."""
    [one] = totals(spark.createDataFrame([(1,)], "id bigint"), SCHEMA, fn.lit(0)).values()
    resumed = replace(answer(one.rows, one.sum, high=400), resumed=1)
    check, found = compared(spark, resumed, TABLE, **known)
    told = result(resumed, found, LOW)
    assert (told["equal"], check.lost) == (False, {"shop.t"})
    assert "changes of it were left out: verify again" in told["reason"]
    behind = replace(answer(one.rows, one.sum, high=900), resumed=1)
    assert compared(spark, behind, TABLE, **known)[1].boundary == ""


def test_nothing_is_taken_up_that_was_read_before_changes_that_the_lake_never_got() -> None:
    for low, losses in ((GAP, []), (LOW, [LOST])):
        kept = SimpleNamespace(drop=Mock(), drop_before=Mock(), low=LOW)
        texts = {"_lost.json": json.dumps(losses)}
        pipeline = of_shop()
        lake = SimpleNamespace(status="_status.json", at=lambda name: name, text=texts.get, pipeline=pipeline)
        check: Any = SimpleNamespace(lake=lake, pipeline=pipeline, low=low, reading=SimpleNamespace(kept=kept))
        Verification._drop_altered(check, [("shop", "t"), ("shop", "other")])
        assert [one.args for one in kept.drop_before.mock_calls] == [("shop.t", (0, 1, 500))]


def test_nothing_is_taken_up_of_a_table_that_changes_without_a_change_that_tells_of_it() -> None:
    kept = SimpleNamespace(drop=Mock(), drop_before=Mock(), low=LOW)
    tables = {f"shop.{name}": TABLE.model_dump() | {"table": name} for name in "at"}
    tables["shop.a"]["stale"] = STALE.model_dump()
    texts = {
        "_status.json": json.dumps(STATUS | {"tables": tables}),
        "_evolution.json": json.dumps({"altered": [("shop", "t", (0, 1, 500)), ("shop", "gone", (0, 1, 9))]}),
    }
    rules = SimpleNamespace(tables=SimpleNamespace(cascades=(PATTERN.validate_python("shop.child*"),)))
    lake = SimpleNamespace(status="_status.json", at=lambda name: name, text=texts.get)
    check: Any = SimpleNamespace(lake=lake, pipeline=rules, low=LOW, reading=SimpleNamespace(kept=kept))
    Verification._drop_altered(check, [("shop", name) for name in ("a", "t", "child1", "other")])
    assert [one.args for one in kept.drop.mock_calls] == [("shop.a",), ("shop.child1",)]
    assert [one.args for one in kept.drop_before.mock_calls] == [("shop.t", (0, 1, 500))]


def test_a_line_of_the_report_says_from_when_its_oldest_read_is() -> None:
    split = Ranges((SCHEMA.columns[0],), [("9",)])
    reads = [Read({n: Total(1, 1)}, "", (0, 1, 5), at=1_790_000_000.0 + n) for n in (0, 1)]
    told = result(Answer(Columns().show(SCHEMA), split, reads), Finding(Total(), "", 2, 0.0), LOW)
    assert told["oldest_read"] == "2026-09-21T14:13:20+00:00"
    assert "taken_up" not in told
    assert _line("shop.t", told).startswith("shop.t: equal, 2 rows in the source")
    older = result(Answer(Columns().show(SCHEMA), split, reads, resumed=1), Finding(Total(), "", 2, 0.0), LOW)
    as_of = "as it was from 2026-09-21T14:13:20+00:00 on (a check before read that)"
    assert older["taken_up"] == 1
    assert _line("shop.t", older).startswith(f"shop.t: equal, {as_of}, 2 rows in the source")
