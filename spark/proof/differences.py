"""What checks found, in two tables of the lake: `_checks`, a row for every table and expectation of each check, for
trends; `_differences`, a row for every key (or chunk) at which a table is not as the source, for whoever mends it.

Neither holds a value of a row but its key's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from contract import names
from spark.lake.growing import grown, moment_id
from spark.lake.lake import Lake

MISSING, EXTRA, CHANGED, DUPLICATE, CHUNK = "missing", "extra", "changed", "duplicate", "chunk"
EQUAL = "equal to the source"  # the check by that name: counts and checksums
UNJUDGED = "not judged"
CHECKS_SHAPE = (
    "run string, at timestamp, db string, tbl string, check string, column string, ok boolean, observed string, "
    "wanted string"
)
SHAPE = (
    "run string, at timestamp, db string, tbl string, kind string, key string, columns array<string>, "
    "source_where string, lake_where string, since timestamp"
)


@dataclass(frozen=True)
class Difference:
    """One row that differs, or a chunk of rows that were not told apart.

    `kind`: `missing` (the lake lacks the row), `extra` (the source has no such row), `changed`, `duplicate` (the lake
    has it twice), `chunk`. `key`: the primary key as records have it, a JSON object of wire values; None of a chunk.
    `columns`: which differ, of a changed row. `source_where`, `lake_where`: of a chunk, the conditions that choose its
    rows, in the SQL of the server and of Spark. `since`: when a check found it first, and each check since.
    """

    db: str
    table: str
    kind: str
    key: str | None = None
    columns: tuple[str, ...] = ()
    source_where: str | None = None
    lake_where: str | None = None
    since: datetime | None = None

    @property
    def identity(self) -> tuple[str, ...]:
        """What stays the same from one check to the next."""
        return self.kind, self.key or "", self.source_where or ""


class Unmet(NamedTuple):
    """An expectation that did not hold when it was judged last."""

    check: str
    column: str | None


class Run(NamedTuple):
    """Of one check. `id`: greater than those of all checks before, whatever the clock told; `at`: when it ended."""

    id: str
    at: datetime


def next_run(spark: SparkSession, lake: Lake, at: datetime) -> Run:
    """For who has the lake's slot. A check that died may have noted differences alone, and those are not this one's."""
    paths = [path for name in (names.CHECKS, names.DIFFERENCES) if lake.is_table(path := lake.at(name))]
    each = [spark.read.format("delta").load(path).agg(fn.max("run")).first() for path in paths]
    return Run(grown(moment_id(at.timestamp()), max((row[0] or "" for row in each if row), default="")), at)


def latest(spark: SparkSession, lake: Lake, db: str, table: str) -> list[Difference]:
    """What the table's last check found; empty where it was equal, or never checked."""
    last, found = last_check(spark, lake, db, table), _of(spark, lake, names.DIFFERENCES, db, table)
    if found is None or last is None:
        return []
    return [_difference(row.asDict()) for row in found.where(fn.col("run") == last).collect()]


def found_last(spark: SparkSession, lake: Lake) -> dict[tuple[str, str], list[Difference]]:
    """The same of all tables; without those of which nothing was found."""
    found, checks = lake.at(names.DIFFERENCES), lake.at(names.CHECKS)
    if not (lake.is_table(found) and lake.is_table(checks)):
        return {}
    each = spark.read.format("delta").load(checks).where(fn.col("check") == EQUAL).groupBy("db", "tbl")
    rows = spark.read.format("delta").load(found).join(each.agg(fn.max("run").alias("run")), ["db", "tbl", "run"])
    told: dict[tuple[str, str], list[Difference]] = {}
    for row in rows.collect():
        one = _difference(row.asDict())
        told.setdefault((one.db, one.table), []).append(one)
    return told


def unmet_last(spark: SparkSession, lake: Lake) -> dict[str, list[Unmet]]:
    """By `db.table`, what did not hold in the table's last check, or was not judged there and had not held before."""
    checks = lake.at(names.CHECKS)
    if not lake.is_table(checks):
        return {}
    noted = spark.read.format("delta").load(checks)
    last = noted.where(fn.col("check") == EQUAL).groupBy("tbl").agg(fn.max("run").alias("run"))
    unmet = noted.where((fn.col("check") != EQUAL) & ~fn.coalesce("ok", fn.lit(False)))
    told: dict[str, list[Unmet]] = {}
    for row in unmet.join(last, ["tbl", "run"]).select("tbl", "check", "column").collect():
        told.setdefault(row["tbl"], []).append(Unmet(row["check"], row["column"]))
    return told


def equal_last(spark: SparkSession, lake: Lake) -> set[str]:
    """The tables, as `db.table`, that were equal to the source in their last check."""
    checks = lake.at(names.CHECKS)
    if not lake.is_table(checks):
        return set()
    each = spark.read.format("delta").load(checks).where(fn.col("check") == EQUAL).groupBy("tbl")
    return {row["tbl"] for row in each.agg(fn.max_by("ok", "run").alias("ok")).where("ok").collect()}


def last_check(spark: SparkSession, lake: Lake, db: str, table: str) -> str | None:
    """The `run` of the table's last check; None where it was never checked."""
    checks = _of(spark, lake, names.CHECKS, db, table)
    last = checks.where(fn.col("check") == EQUAL).agg(fn.max("run")).first() if checks is not None else None
    return last[0] if last else None


def _of(spark: SparkSession, lake: Lake, name: str, db: str, table: str) -> DataFrame | None:
    path = lake.at(name)
    if not lake.is_table(path):
        return None
    rows = spark.read.format("delta").load(path)
    return rows.where((fn.col("db") == db) & (fn.col("tbl") == f"{db}.{table}"))


def _difference(row: Mapping[str, Any]) -> Difference:
    return Difference(
        db=row["db"],
        table=row["tbl"][len(row["db"]) + 1 :],
        kind=row["kind"],
        key=row["key"],
        columns=tuple(row["columns"] or ()),
        source_where=row["source_where"],
        lake_where=row["lake_where"],
        since=row["since"].astimezone(UTC),  # Spark gives the time of this machine, without its zone
    )


def dated(found: Sequence[Difference], before: Iterable[Difference], at: datetime) -> list[Difference]:
    """The differences with their `since`: that of the check before where it found the same, else `at`."""
    known = {one.identity: one.since for one in before}
    return [replace(one, since=known.get(one.identity) or at) for one in found]


def not_looked_at(
    known: Iterable[Difference], before: Iterable[Difference], found: Iterable[Difference]
) -> list[Difference]:
    """What is known of a table by now and stays: another check noted it since this one began, which has `found` what
    there is of what was known `before`."""
    done = {one.identity for one in (*before, *found)}
    return [one for one in known if one.identity not in done]


def note_differences(spark: SparkSession, lake: Lake, run: Run, found: Sequence[Difference]) -> None:
    """Appends one check's dated differences. They are to be there before its `_checks`, which make them the latest."""
    rows = [
        (
            *run, one.db, f"{one.db}.{one.table}", one.kind, one.key, list(one.columns), one.source_where,
            one.lake_where, one.since,
        )
        for one in found
    ]  # fmt: skip
    if rows:
        _append(spark, rows, SHAPE, lake.at(names.DIFFERENCES))


def note_checks(
    spark: SparkSession,
    lake: Lake,
    run: Run,
    facts: Mapping[str, Any],
    waiting: Mapping[str, Sequence[Unmet]] | None = None,
) -> None:
    """Appends a check's results, under the run of its differences. `facts`: its report, `tables` and `expectations`
    (quality/suite.py). `waiting`: what it did not judge and had not held before, whose `ok` is null."""
    rows: list[tuple[Any, ...]] = []
    for name, table in facts["tables"].items():
        counts = f"{table.get('lake_count')} rows", f"{table.get('source_count')} rows"
        rows.append((EQUAL, None, name, table.get("equal"), *counts))
    for name, table in (facts.get("expectations") or {}).get("tables", {}).items():
        for one in table.get("evaluations", ()):
            seen = _text(one.get("observed")), _text(one.get("expected"))
            rows.append((one["expectation"], one.get("column"), name, one["ok"], *seen))
    for name, unmet in (waiting or {}).items():
        rows += [(one.check, one.column, name, None, UNJUDGED, None) for one in unmet]
    db_of = {name: name.partition(".")[0] for name in facts["tables"]}
    told = [
        (*run, db_of[name], name, check, column, ok, observed, wanted)
        for check, column, name, ok, observed, wanted in rows
    ]
    if told:
        _append(spark, told, CHECKS_SHAPE, lake.at(names.CHECKS))


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _append(spark: SparkSession, rows: Sequence[tuple[Any, ...]], shape: str, path: str) -> None:
    frame = spark.createDataFrame(list(rows), shape).coalesce(1)
    frame.write.format("delta").mode("append").option("mergeSchema", "true").save(path)
