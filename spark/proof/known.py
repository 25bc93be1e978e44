"""In which chunks of a check are the rows that the checks before it found to differ.

A sample has these chunks besides those that chance gives it, and nothing that was read of them before is taken up: an
equal chunk says that what was found there is mended.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import reduce

from pyspark.errors import PySparkException
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as fn

from contract.names import quoted
from contract.schema import TableSchema
from spark.proof.differences import Difference
from spark.proof.splits import Split
from spark.tables.rows import parsed, typed


def chunks_of(spark: SparkSession, schema: TableSchema, split: Split, found: Sequence[Difference]) -> frozenset[int]:
    """All of them where one cannot be told: where the table was cut into other chunks, or had another key."""
    wanted = {one.source_where for one in found if one.source_where}
    numbers = {at for at, where in enumerate(split.source_wheres()) if where in wanted} if wanted else set()
    keys = {one.key for one in found if one.key}
    of_keys = _numbers(spark, schema, split, keys) if keys else set()
    if of_keys is None or len(numbers) < len(wanted):
        return frozenset(range(split.count))
    return frozenset(numbers | of_keys)


def _numbers(spark: SparkSession, schema: TableSchema, split: Split, keys: Iterable[str]) -> set[int] | None:
    """None where a text is no key of the table."""
    if any(json.loads(key).keys() != {*schema.key} for key in keys):
        return None
    key = schema.of_key()
    texts = spark.createDataFrame([(text,) for text in keys], "key string")
    rows = texts.select(parsed("key", key.columns, "PERMISSIVE").alias("_wire")).select(*typed("_wire", key))
    lost = reduce(Column.__or__, [fn.col(quoted(name)).isNull() for name in schema.key])
    try:
        told = rows.select(fn.when(~lost, fn.expr(split.number())).alias("n")).distinct().collect()
    except PySparkException:  # a value that is none of the column's type any more
        return None
    numbers = {row["n"] for row in told}
    return None if None in numbers else numbers
