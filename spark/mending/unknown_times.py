"""Times of which nobody knows which of a table's present rows changed in them. Raise TableError."""

from __future__ import annotations

from datetime import datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from contract import breaks, lost_changes
from contract.kept_history import Kept
from contract.renames import FILE
from spark.errors import TableError
from spark.lake.lake import Lake
from spark.lake.stopped import Name
from spark.landing.commit_times import first_behind
from spark.tables.merge import sequence

INSTEAD = "Nothing was written: choose a later time, keys, or the whole table"


def refuse_removed(lake: Lake, name: Name, kept: Kept | None, landed: DataFrame | None, since: datetime) -> None:
    """`kept`: what maintenance left of the table's changes; `landed`: `_changes`, where there are any."""
    if kept and kept.since > since:
        raise TableError(
            f"{'.'.join(name)}: the changes of before {kept.since:%Y-%m-%d %H:%M} UTC were removed "
            f"(maintenance.history_days), so nobody knows which rows changed then. {INSTEAD}"
        )
    lost = lost_changes.until(lake.text(lake.at(lost_changes.FILE)), lake.pipeline, *name)
    begins = first_behind(landed, lost) if lost and landed else None
    if lost and (begins is None or begins > since):
        raise TableError(
            f"{'.'.join(name)}: changes of before {_told(begins)} were removed from Kafka before they reached the "
            f"lake, so nobody knows which rows changed then. {INSTEAD}"
        )


def refuse_ended(lake: Lake, name: Name, landed: DataFrame, mine: DataFrame) -> None:
    """`mine`: the table's changes of the time. Those by a shape of before its last key are not of its present rows."""
    known = breaks.of(breaks.parse(lake.text(lake.at(FILE))), *name)
    if (end := breaks.last(one for one in known if one.ends and one.version)) is None:
        return
    if mine.where(fn.col("_seq") < sequence([*end, -1, -1])).isEmpty():
        return
    raise TableError(
        f"{'.'.join(name)}: its history begins anew {_told(first_behind(landed, end))} (it has another key "
        f"since), and changes of before do not tell which of its present rows changed in that time. {INSTEAD}"
    )


def _told(begins: datetime | None) -> str:
    return f"{begins:%Y-%m-%d %H:%M:%S} UTC" if begins else "now"
