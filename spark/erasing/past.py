"""What a Delta table's files and log still have of rows that it no longer has, and its removal.

The log names the least and the greatest values of each file, also of those that went. `begun_anew` writes a checkpoint
that has the table as it is and nothing else; `forgotten` removes the log of before. Between the two whoever reads the
table on from a version (the merge of `_changes` does) has to get behind it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from delta.tables import DeltaTable
from pyspark.sql import SparkSession

from spark.errors import LakeError
from spark.failpoints import reached
from spark.lake.lake import Lake
from spark.tables.schema import at

# A checkpoint with the very next commit, and in it no word of files that went.
MEANWHILE = {"delta.checkpointInterval": "1", "delta.deletedFileRetentionDuration": "interval 0 hours"}
KEPT = "headrace.kept"  # a property: what the user has set these to, as JSON, for a run that dies meanwhile
VERSION = re.compile(r"\.?(\d{20})\.")


def begun_anew(spark: SparkSession, lake: Lake, path: str) -> int:
    """Gives the version of the checkpoint. Raises LakeError where Delta did not write it."""
    own = _own(spark, path)
    _set(spark, path, {**MEANWHILE, KEPT: json.dumps(own)})
    version = lake.version(path)
    reached("log begun anew")
    if own:
        _set(spark, path, own)
    _unset(spark, path, [name for name in (*MEANWHILE, KEPT) if name not in own])
    if not any(name.startswith(f"{version:020d}.checkpoint") for name in lake.list(f"{path}/_delta_log")):
        raise LakeError(f"Delta wrote no checkpoint of version {version} of {path}: run this again")
    assert version is not None
    return version


def forgotten(spark: SparkSession, lake: Lake, path: str, before: int) -> None:
    """Removes the log of the versions before that one, which has a checkpoint."""
    folder = f"{path}/_delta_log"
    lake.settle()  # what is newer is to be there before what it is made of goes
    for name in lake.list(folder):
        if (found := VERSION.match(name)) and int(found[1]) < before:
            lake.remove(f"{folder}/{name}")
    lake.forget_logs()
    reached("log forgotten")


def _own(spark: SparkSession, path: str) -> dict[str, str]:
    """What the user has set of MEANWHILE."""
    found: Any = DeltaTable.forPath(spark, path).detail().select("properties").first()
    properties: dict[str, str] = found["properties"] or {}
    if KEPT in properties:
        return dict(json.loads(properties[KEPT]))
    return {name: properties[name] for name in MEANWHILE if name in properties}


def _set(spark: SparkSession, path: str, properties: dict[str, str]) -> None:
    listed = ", ".join(f"'{name}' = '{value}'" for name, value in properties.items())
    spark.sql(f"ALTER TABLE {at(path)} SET TBLPROPERTIES ({listed})")


def _unset(spark: SparkSession, path: str, properties: Sequence[str]) -> None:
    listed = ", ".join(f"'{name}'" for name in properties)
    spark.sql(f"ALTER TABLE {at(path)} UNSET TBLPROPERTIES IF EXISTS ({listed})")
