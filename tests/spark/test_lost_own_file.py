"""A file of one of the lake's own tables that is gone or broken: who reads it says whose it is and the way back, which
loses no row of a user's table. docs/operations.md tells the same way."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import SparkSession

from contract import names, status
from contract.ddl_record import DdlRecord
from contract.pipeline import Compaction, Pipeline
from spark.compaction import compaction
from spark.erasing import record
from spark.failures import message_of
from spark.lake.cut_off import TABLES
from spark.lake.erasures import Begun
from spark.lake.lake import Lake
from spark.lake.letters import state_of
from spark.lake.own_tables import FORGOTTEN
from spark.landing.changes import Landing
from spark.proof.differences import CHANGED, Difference, dated, found_last, next_run, note_checks, note_differences
from tests.spark.changes_by_hand import records
from tests.spark.lake_by_hand import AT, NAME, checkpoint, ids, item, part, stage

Rows = list[tuple[int, str]]
BOTH, MENDED = [(1, "a"), (2, "a")], [(1, "a"), (2, "mended")]
DIFFERS = Difference("shop", "items", CHANGED, '{"id":2}', ("name",))


@pytest.fixture
def pipeline(pipeline: Pipeline) -> Pipeline:
    return pipeline.model_copy(update={"compaction": Compaction(unreadable="dead_letter")})


class Given(NamedTuple):
    spark: SparkSession
    lake: Lake
    compact: Callable[[], dict[str, Any]]
    statements: list[DdlRecord]


@pytest.fixture
def given(
    spark: SparkSession, lake: Lake, compact: Callable[[], dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> Given:
    """A table of two rows; `compact` reads the `statements`, too."""
    statements: list[DdlRecord] = []
    broker: Any = compaction.Broker

    class Broker(broker):  # type: ignore[misc]
        def __init__(self, pipeline: Pipeline) -> None:
            super().__init__(pipeline)
            self.ddl = lambda read: (statements[read.get(0, 0) :], {0: len(statements)})

    monkeypatch.setattr(compaction, "Broker", Broker)
    stage(spark, lake, "1", 50, item(1), item(2))
    compact()
    return Given(spark, lake, compact, statements)


def repair(given: Given) -> None:
    """Of a row that no change tells of. Behind it a snapshot is staged."""
    part(given.spark, given.lake, "p1", AT, item(2, "mended"), keys=[item(2)])
    given.compact()
    stage(given.spark, given.lake, "2", AT + 5, item(1), item(2, "mended"), item(3))


def check(given: Given) -> None:
    """Finds the row, as of the check before where that did."""
    spark, lake = given.spark, given.lake
    run, before = next_run(spark, lake, datetime.now(UTC)), found_last(spark, lake)
    note_differences(spark, lake, run, dated([DIFFERS], before.get(NAME, ()), run.at))
    note_checks(spark, lake, run, {"tables": {"shop.items": {"equal": False}}})


def check_and_mend(given: Given) -> None:
    check(given)
    part(given.spark, given.lake, "p1", AT, item(2, "mended"), keys=[item(2)])


def alter(given: Given) -> None:
    facts = {"db": "shop", "table": "items", "kind": "harmless", "statement": "ANALYZE TABLE items", "ts_ms": 1000}
    given.statements.append(DdlRecord.model_validate({**facts, "seq": (0, 1, 500 + len(given.statements))}))


def alter_and_compact(given: Given) -> None:
    alter(given)
    given.compact()


def put_aside(given: Given) -> dict[str, Any]:
    """One more record that is no change; the batch that did not end comes again."""
    number = sum(found.count for found in state_of(given.lake).topics.values())
    batch = records(given.spark, (b"key", b"no change", "shop.shop.items", 0, number))
    Landing(given.spark, given.lake.pipeline, given.lake)._batch(batch, number, "q")
    return given.compact()


def erase(given: Given) -> None:
    begun = Begun(id="e", tbl="shop.items", hashes=["h"], removed={"table": 0}, topics=[])
    record.note(given.spark, given.lake, begun, checkpoint(AT), [], datetime.now(UTC).isoformat(), "ada")


class Case(NamedTuple):
    """`fill`: gives the table a row; `job`: what reads it behind that; `after`: the rows of the user's table then."""

    table: str
    fill: Callable[[Given], Any]
    job: Callable[[Given], Any]
    before: Rows = BOTH
    after: Rows = BOTH


def compact(given: Given) -> None:
    given.compact()


CASES = {
    "repairs": Case(names.REPAIRS, repair, compact, MENDED, [*MENDED, (3, "a")]),
    "checks at a check": Case(names.CHECKS, check, check),
    "checks at a part": Case(names.CHECKS, check_and_mend, compact, after=MENDED),
    "differences at a check": Case(names.DIFFERENCES, check, check),
    "differences at a part": Case(names.DIFFERENCES, check_and_mend, compact, after=MENDED),
    "schema changes": Case(names.SCHEMA_CHANGES, alter_and_compact, alter_and_compact),
    "dead letters": Case(names.DEAD_LETTERS, put_aside, put_aside),
    "erasures": Case(names.ERASURES, erase, erase),
}


def files(lake: Lake, table: str) -> list[Path]:
    return [file for file in Path(lake.at(table)).rglob("*.parquet") if "_delta_log" not in file.parts]


def lose(lake: Lake, table: str, how: str = "gone") -> None:
    for file in files(lake, table):
        file.unlink()
        if how == "broken":
            file.write_bytes(b"PAR1" + b"\0" * 400)
    lake.forget_logs()


def refused(given: Given, case: Case) -> None:
    """Twice, and nothing comes of either."""
    for _ in range(2):
        with pytest.raises(Exception, match="parquet") as failed:
            case.job(given)
        told, folder = message_of(failed.value, given.lake.pipeline), given.lake.at(case.table)
        assert told.startswith("a file of the lake is missing or cannot be read (")
        assert f"of the lake's own table {folder}. Put it back from a copy. Without one, " in told
        assert ids(given.spark, given.lake) == case.before


@pytest.mark.parametrize("how", ["gone", pytest.param("broken", marks=pytest.mark.soak)])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_with_its_folder_moved_away_each_job_goes_on_and_makes_it_anew(given: Given, case: Case, how: str) -> None:
    case.fill(given)
    lose(given.lake, case.table, how)
    refused(given, case)
    folder = Path(given.lake.at(case.table))
    folder.rename(f"{given.lake.root}-{case.table}-before")
    case.job(given)
    assert ids(given.spark, given.lake) == case.after
    case.job(given)
    assert ids(given.spark, given.lake) == case.after
    if case.job is not compact:
        given.lake.forget_logs()
        assert not given.spark.read.format("delta").load(str(folder)).isEmpty()


def test_each_of_the_lake_s_own_tables_is_known_and_walked() -> None:
    assert FORGOTTEN.keys() == {*TABLES} - {names.CHANGES} == {case.table for case in CASES.values()}


@pytest.mark.parametrize("copied", [True, False])
def test_a_row_that_a_repair_removed_stays_away_with_the_copy_and_without_it_from_the_next_snapshot_on(
    given: Given, copied: bool
) -> None:
    """The snapshot that is staged was read before the repair, and has it."""
    part(given.spark, given.lake, "p1", AT, keys=[item(2)])
    given.compact()
    stage(given.spark, given.lake, "2", AT - 5, item(1), item(2))
    [file] = files(given.lake, names.REPAIRS)
    copy = file.read_bytes()
    lose(given.lake, names.REPAIRS)
    refused(given, CASES["repairs"]._replace(before=[(1, "a")]))
    if copied:
        file.write_bytes(copy)
    else:
        Path(given.lake.at(names.REPAIRS)).rename(f"{given.lake.root}-repairs-before")
    given.compact()
    assert ids(given.spark, given.lake) == ([(1, "a")] if copied else BOTH)
    stage(given.spark, given.lake, "3", AT + 5, item(1))
    given.compact()
    assert ids(given.spark, given.lake) == [(1, "a")]


def test_records_that_are_put_aside_behind_that_are_counted_on_and_make_their_table_unequal(given: Given) -> None:
    """The new table has as many, in a version of the same number, as the one that went."""
    assert put_aside(given)["tables"]["shop.items"]["unequal"] is not None
    number = state_of(given.lake).number
    manifest = stage(given.spark, given.lake, "2", AT, item(1), item(2))
    plan = f"{manifest.folder(given.lake)}/manifest.json"
    given.lake.write(plan, {**given.lake.read(plan), "letters": number})
    assert given.compact()["tables"]["shop.items"]["unequal"] is None
    Path(given.lake.at(names.DEAD_LETTERS)).rename(f"{given.lake.root}-letters-before")
    told = put_aside(given)
    assert (told["unreadable"], told["tables"]["shop.items"]["unequal"] is None) == (1, False)
    standing = status.read(given.lake.pipeline)
    assert standing is not None
    assert standing.unreadable == 2
