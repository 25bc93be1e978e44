"""`_repairs`, the audit table: what was wrong with each row that a part mended, since when, and what was done."""

from __future__ import annotations

from datetime import UTC, datetime

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from contract import names
from spark.failpoints import reached
from spark.lake.lake import Lake
from spark.merging.mended import P0
from spark.merging.parts import Part
from spark.proof.differences import CHANGED, CHUNK, DUPLICATE, EXTRA, MISSING, last_check, latest
from spark.tables.merge import sequence

DID = {
    MISSING: "inserted", EXTRA: "removed", CHANGED: "replaced", DUPLICATE: "made one",
}  # fmt: skip
FOUND = "key string, since timestamp"


def note(spark: SparkSession, lake: Lake, part: Part, found: DataFrame, snapshot: str) -> None:
    """A row for each of `found`, once, also where a run that died comes again. `snapshot`: the one that the table is
    of, empty of a table that has none."""
    path = lake.at(names.REPAIRS)
    last = lake.version(path)
    version = 0 if last is None else last + 1  # of two drivers that come here at once, one notes
    if (mine := _noted(spark, lake, part)) is not None:
        found = found.join(mine.select("key"), "key", "left_anti")
    db, table = part.name
    known = latest(spark, lake, db, table)
    each = {one.key: one.since for one in known if one.key}
    chunks = min((one.since for one in known if one.kind == CHUNK and one.since), default=None)
    since = spark.createDataFrame([*each.items()], FOUND)
    did = fn.create_map(*[fn.lit(text) for pair in DID.items() for text in pair])
    facts = {
        "run": fn.lit(part.id), "at": fn.lit(datetime.now(UTC)), "job": fn.lit(part.job), "by": fn.lit(part.by),
        "source": fn.lit(part.source), "part": fn.lit(part.told), "db": fn.lit(db), "tbl": fn.lit(f"{db}.{table}"),
        "snapshot": fn.lit(snapshot), P0: sequence(part.sequence),
    }  # fmt: skip
    check = fn.lit(last_check(spark, lake, db, table)).cast("string")
    began = fn.coalesce("since", fn.lit(chunks).cast("timestamp"))
    rows = found.join(fn.broadcast(since), "key", "left").select(
        *[value.alias(name) for name, value in facts.items()],
        "kind", "key", "columns", did[fn.col("kind")].alias("did"),
        began.alias("since"), fn.when(began.isNotNull(), check).alias("check"),
    )  # fmt: skip
    writer = rows.write.format("delta").mode("append").option("mergeSchema", "true")
    writer.option("txnAppId", f"headrace-part-{part.id}").option("txnVersion", version).save(path)
    reached("repair noted")


def forget(spark: SparkSession, lake: Lake, part: Part, found: DataFrame) -> None:
    """Takes out the rows of `found`, which the table did not take. Others that are noted of the part stay: a run that
    died had put those in their place."""
    repairs = DeltaTable.forPath(spark, lake.at(names.REPAIRS)).alias("t")
    mine = (fn.col("t.run") == part.id) & (fn.col("t.key") == fn.col("c.key"))
    repairs.merge(found.select("key").alias("c"), mine).whenMatchedDelete().execute()
    reached("repair forgotten")


def forget_all(spark: SparkSession, lake: Lake, part: Part) -> None:
    """Of a part of which the table has nothing."""
    if (mine := _noted(spark, lake, part)) is not None and not mine.isEmpty():
        forget(spark, lake, part, mine)


def counts(spark: SparkSession, lake: Lake, part: Part) -> dict[str, int]:
    """Of the part's differing rows, by their kind; of a run that died behind the part, too."""
    if (mine := _noted(spark, lake, part)) is None:
        return {}
    return {row["kind"]: row["count"] for row in mine.groupBy("kind").count().orderBy("kind").collect()}


def _noted(spark: SparkSession, lake: Lake, part: Part) -> DataFrame | None:
    path = lake.at(names.REPAIRS)
    if not lake.is_table(path):
        return None
    return spark.read.format("delta").load(path).where(fn.col("run") == part.id)
