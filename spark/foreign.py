"""What somebody else did to the lake's tables since the last run: every commit of Headrace's jobs says that it is one.

Of a current table that is told, with the way to make it whole; the run goes on, and a check shows what it did. A change
in `_changes` would become a change of the tables, so there the run stops before anything is merged.
"""

from __future__ import annotations

import re
from datetime import UTC

from delta.tables import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql import functions as fn

from contract.status import LakeStatus
from spark.applied import AppliedSnapshots
from spark.errors import LakeError
from spark.lake import Lake
from spark.schema import at
from spark.session import OURS
from spark.stopped import Name

# They change no row, or take out of the log what is not there any more.
HARMLESS = re.compile(r"OPTIMIZE|REORG|VACUUM|TBLPROPERTIES|FSCK|COMPUTE STATS|MANIFEST", re.IGNORECASE)


def refuse_foreign_changes(spark: SparkSession, lake: Lake, last: LakeStatus) -> None:
    """Raises LakeError where somebody else wrote into `_changes`, or took it away."""
    if last.changes_version is None or (did := _done(spark, lake, lake.changes, last.changes_version)) is None:
        return
    back = (
        f"Take that back: RESTORE TABLE {at(lake.changes)} TO VERSION AS OF {last.changes_version}"
        if lake.is_table(lake.changes)
        else "Put it back from a copy"
    )
    raise LakeError(
        f"somebody else than Headrace's jobs changed {lake.changes}: {did}. Nothing was landed or merged. {back}; then "
        "run this again"
    )


def foreign_writes(spark: SparkSession, lake: Lake, last: LakeStatus) -> dict[Name, str]:
    """The current tables that somebody else changed or took away, and what to do about each."""
    found = {}
    for name, table in last.tables.items():
        path = lake.table(table.db, table.table)
        if table.version is not None and (did := _done(spark, lake, path, table.version)) is not None:
            found[table.db, table.table] = (
                f"somebody else than Headrace's jobs changed the lake's table {name}: {did}. A check shows what "
                "differs now; the snapshot DAG makes the table anew"
            )
    return found


def forget_lost(lake: Lake, snapshots: AppliedSnapshots, found: dict[Name, str]) -> None:
    """Tables that are gone lack what their snapshot had: they count as not snapshotted."""
    for name in found:
        if not lake.is_table(lake.table(*name)) and name in snapshots.tables:
            snapshots.note(name, snapshots.tables[name].model_copy(update={"gap": True}))


def _done(spark: SparkSession, lake: Lake, path: str, since: int) -> str | None:
    """What was done behind the version, in words; None where nothing was that changes a row."""
    now = lake.version(path)
    if now == since:
        return None
    if now is None:
        return "it is gone"
    if now < since:
        return f"it ends at version {now} and had version {since}"
    history = DeltaTable.forPath(spark, path).history().where(fn.col("version") > since)
    commits = history.select("version", "operation", "operationParameters", "userMetadata", "timestamp").collect()
    strange = [one for one in commits if one["userMetadata"] != OURS and not HARMLESS.search(one["operation"])]
    if not strange or (commits[0]["operationParameters"] or {}).get("version") == str(since):
        return None  # or restored to what it was
    first = strange[-1]
    when = f"{first['timestamp'].astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    return f"{first['operation']} as version {first['version']}, at {when}"
