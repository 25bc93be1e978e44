"""Values of one of the lake's types as those of another."""

from __future__ import annotations

from functools import cache

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession


def cast(value: str, was: str, now: str) -> str:
    """Spark SQL of the value, of type `was`, as one of type `now`; null where it does not convert."""
    if was == now:
        return value
    return f"try_cast({value} as {now})" if _known(was, now) else f"cast(null as {now})"


@cache
def _known(was: str, now: str) -> bool:
    # Of two types that it never converts, such as DATE and BIGINT, Spark refuses the whole query before it runs.
    try:
        SparkSession.active().range(0).selectExpr(f"try_cast(cast(null as {was}) as {now})")
    except AnalysisException:
        return False
    return True
