"""Whether its table took a part: the commit that put its rows in their place says so, also where the run died then.

A hand-off may put another log in the table's place, so what the commit says is noted beside the part before one.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import AbstractContextManager

from pyspark.sql import SparkSession

from spark.lake.delta_log import last_transaction
from spark.lake.lake import Lake
from spark.lake.settings import settings
from spark.lake.stopped import Name
from spark.merging.parts import Part, parts, was_taken, write_taken
from spark.tables.refused import own_fault

APP = "headrace-mended-{}"
TRANSACTION = "spark.databricks.delta.write"


def taking(spark: SparkSession, path: str, part: Part) -> AbstractContextManager[None]:
    """For the part's MERGE into the table there. A second one is another transaction: somebody wrote in between."""
    app = APP.format(part.id)
    number = last_transaction(spark, path, app) + 1
    return settings(spark, {f"{TRANSACTION}.txnAppId": app, f"{TRANSACTION}.txnVersion": number})


def taken(spark: SparkSession, lake: Lake, part: Part) -> bool | None:
    """None where the table's log cannot be read."""
    path = lake.table(*part.name)
    if was_taken(lake, part):
        return True
    try:
        return lake.is_table(path) and last_transaction(spark, path, APP.format(part.id)) >= 0
    except Exception as error:
        if own_fault(lake, part.name, error) is None:
            raise
        return None


def note_taken(spark: SparkSession, lake: Lake, tables: Collection[Name]) -> None:
    """Of the parts of these tables, which a snapshot is to make anew."""
    for part in parts(lake):
        if part.name in tables and taken(spark, lake, part) and not was_taken(lake, part):
            write_taken(lake, part)
