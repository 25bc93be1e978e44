"""Whether its table took a part: the commit that put its rows in their place says so, also where the run died then."""

from __future__ import annotations

from contextlib import AbstractContextManager

from pyspark.sql import SparkSession

from spark.lake.delta_log import last_transaction
from spark.lake.lake import Lake
from spark.lake.settings import settings
from spark.merging.parts import Part

APP = "headrace-mended-{}"
TRANSACTION = "spark.databricks.delta.write"


def taking(spark: SparkSession, path: str, part: Part) -> AbstractContextManager[None]:
    """For the part's MERGE into the table there. A second one is another transaction: somebody wrote in between."""
    app = APP.format(part.id)
    number = last_transaction(spark, path, app) + 1
    return settings(spark, {f"{TRANSACTION}.txnAppId": app, f"{TRANSACTION}.txnVersion": number})


def taken(spark: SparkSession, lake: Lake, part: Part) -> bool:
    path = lake.table(*part.name)
    return lake.is_table(path) and last_transaction(spark, path, APP.format(part.id)) >= 0
