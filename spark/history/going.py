"""Which of the changes before a day of their table go. Pure: DataFrames in, conditions and DataFrames out.

Days are of commit times, which do not only grow (commit_times.py), and the past is told by order. So a change that came
behind one that stays, stays with it: what goes of a table is what came before all that is of the day or later.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from contract.kept_history import KeptHistory
from contract.sequence import SPARK_TYPE
from spark.conditions import any_of
from spark.landing.commit_times import AHEAD
from spark.tables.merge import sequence


class Going(NamedTuple):
    """A table's changes that go: how many, how many of them were not noted before, and the greatest `_seq`."""

    all: int
    new: int
    last: tuple[int, ...]


def going(
    changes: DataFrame, cuts: Mapping[str, date], today: date, known: KeptHistory
) -> tuple[Column, dict[str, Going]]:
    """What goes, and what that is of each table. `cuts`: the days, by `db.table`."""
    old = _before(cuts)
    found = _counted(changes.where(old), known)
    if late := _late(changes, cuts, today, found):
        old = old & ~any_of(late)
        found = _counted(changes.where(old), known)
    return old, found


def staying(changes: DataFrame, known: KeptHistory) -> DataFrame:
    """Without what is noted as removed: a run that died may have left it."""
    if not known.tables:
        return changes
    rows = [(table, kept.since, kept.gone) for table, kept in known.tables.items()]
    noted = changes.sparkSession.createDataFrame(rows, f"_tbl string, _since timestamp, _gone {SPARK_TYPE}")
    found = changes.join(fn.broadcast(noted), fn.col("tbl") == fn.col("_tbl"), "left")
    stays = fn.expr("coalesce(ts >= _since OR _seq > _gone, _since IS NULL)")
    return found.where(stays).drop("_tbl", "_since", "_gone")


def _before(cuts: Mapping[str, date]) -> Column:
    """By the partitions alone, so whole files go."""
    days: dict[date, list[str]] = {}
    for table, day in cuts.items():
        days.setdefault(day, []).append(table)
    return any_of([fn.col("tbl").isin(mine) & (fn.col("day") < fn.lit(day)) for day, mine in days.items()])


def _counted(old: DataFrame, known: KeptHistory) -> dict[str, Going]:
    facts = [fn.count("*").alias("n"), fn.max("_seq").alias("last")]
    new = {row["tbl"]: row["n"] for row in staying(old, known).groupBy("tbl").agg(facts[0]).collect()}
    rows = old.groupBy("tbl").agg(*facts).collect()
    return {row["tbl"]: Going(row["n"], new.get(row["tbl"], 0), tuple(row["last"])) for row in rows}


def _late(changes: DataFrame, cuts: Mapping[str, date], today: date, found: Mapping[str, Going]) -> list[Column]:
    """Of each table of which something would go that came behind a change that stays, the places behind that. A day
    that is to come yet is a clock's that was ahead: for its sake all that came since would stay for ever."""
    stays = list[Column]()
    for table, one in found.items():
        epoch, file = one.last[:2]  # by which Delta passes by nearly all files
        near = fn.expr(f"_seq.epoch < {epoch} OR _seq.epoch = {epoch} AND _seq.file <= {file}")
        mine = (fn.col("tbl") == table) & (fn.col("day") >= fn.lit(cuts[table])) & near
        stays.append(mine & (fn.col("_seq") < sequence(one.last)))
    believed = fn.col("day") <= fn.lit(today + timedelta(AHEAD.days))
    firsts = changes.where(any_of(stays) & believed).groupBy("tbl").agg(fn.min("_seq").alias("first")).collect()
    return [(fn.col("tbl") == row["tbl"]) & (fn.col("_seq") > sequence(row["first"])) for row in firsts]
