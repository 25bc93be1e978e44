"""Rows that a Delta table's deletion vectors mark as gone, taken out of its files: what `REORG TABLE ... APPLY (PURGE)`
does, and on a cluster too.

That statement looks for dropped columns in the footers of all files, on the executors, with code that asks for a
session, which no executor has (Delta 4.4's ReorgTableHelper). `Marked` goes by the log alone; the rest is Delta's own.
"""

from __future__ import annotations

from typing import Any

from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession

from spark.lake.delta_log import newest


def purged(spark: SparkSession, path: str) -> None:
    """Writes the files anew in which rows are marked as gone, without these: a commit that changes no row."""
    jvm: Any = spark._jvm
    delta, none = jvm.org.apache.spark.sql.delta.commands, jvm.scala.Option.empty()
    options, table = jvm.scala.jdk.javaapi.OptionConverters, newest(spark, path)
    # Asked in Java: of a table's hundred thousand files each would cross to here and back.
    files = table.allFiles().filter("deletionVector is not null").collectAsList()
    if files.isEmpty():
        return
    ensure_callback_server_started(spark.sparkContext._gateway)
    context = delta.DeltaOptimizeContext(
        jvm.scala.Option.apply(Marked(_sequence(jvm, files))),
        options.toScala(jvm.java.util.OptionalLong.of(0)),  # no file is too small
        none,
        options.toScala(jvm.java.util.OptionalDouble.of(0.0)),
        False,
    )
    nothing = _sequence(jvm, jvm.java.util.ArrayList())
    delta.OptimizeExecutor(spark._jsparkSession, table, none, nothing, nothing, False, context).optimize()


class Marked:
    """Which files to write anew: Delta's DeltaReorgOperation, called by Java."""

    class Java:
        implements = ("org.apache.spark.sql.delta.commands.DeltaReorgOperation",)

    def __init__(self, files: Any) -> None:
        self.files = files

    def filterFilesToReorg(self, session: Any, table: Any, files: Any) -> Any:  # noqa: N802 Java's name
        return self.files


def _sequence(jvm: Any, items: Any) -> Any:
    return jvm.scala.jdk.javaapi.CollectionConverters.asScala(items).toSeq()
