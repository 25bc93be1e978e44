"""Rows of the source as the very texts that the stream carries, made by the server, through Spark's JDBC reader."""

from __future__ import annotations

import json
from urllib.parse import quote, urlencode

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as fn

from contract.names import quoted
from contract.pipeline import Pipeline
from contract.pipeline_columns import Shown
from contract.schema import TableSchema
from spark.source import chunks, no_days, tls
from spark.source.source import SILENT, Source, session_of

LONGER = (
    "is longer than the server's max_allowed_packet: raise that (a blob takes 4/3 of its size), or exclude the table"
)


def row_json(shown: Shown, flavor: str, columns: tuple[str, ...] | None = None) -> str:
    """SQL of the flavor that gives a row's JSON text, the same bytes as the stream's; of its key with `columns`."""
    parts, before = [], "{"
    for name in columns or [column.name for column in shown.schema.columns]:
        label = before + json.dumps(name, ensure_ascii=False) + ":"
        column = quoted(name)
        value = shown.type_of(name, flavor).snapshot_sql(column)
        # By the column and not by its text, which is NULL as well if it is too long: that makes the row NULL.
        parts.append(f"{text_literal(label)}, if({column} is null, 'null', {value})")
        before = ","
    return f"concat({', '.join(parts)}, '}}')"


def text_literal(text: str) -> str:
    return f"_utf8mb4 x'{text.encode().hex()}'"


def jdbc_options(spark: SparkSession, pipeline: Pipeline, only: str = "") -> dict[str, str]:
    """How Spark reaches the source: row by row (the default holds whole results in memory), in UTC. `only`: what each
    connection runs first, as `Source.only`."""
    source = pipeline.source
    encrypted = tls.jdbc(spark, source.tls)
    session = quote(",".join(f"{name}={value}" for name, value in session_of(pipeline).items()), safe="")
    return {
        "url": f"jdbc:mysql://{source.where}/?sessionVariables={session}"
        f"&characterEncoding=UTF-8&socketTimeout={SILENT * 1000}&tinyInt1isBit=false&allowPublicKeyRetrieval=true"
        # A table's name may have a brace.
        f"&processEscapeCodesForPrepStmts=false&{urlencode(encrypted)}",
        "driver": "com.mysql.cj.jdbc.Driver",
        "user": source.user,
        "password": source.secret(),
        "fetchsize": str(-(2**31)),
        **({"sessionInitStatement": only} if only else {}),
    }


def rows_of(spark: SparkSession, source: Source, schema: TableSchema, wanted: list[str], within: str = "") -> DataFrame:
    """`key` and `after` of the rows that `selected` gives. `schema`: the source's; the texts are of what the pipeline
    shows of it."""
    flavor, shown = source.pipeline.source.flavor, source.shown(schema)
    texts = {"row_key": row_json(shown, flavor, shown.schema.key), "row_after": row_json(shown, flavor)}
    rows = selected(spark, source, schema, wanted, within, texts)
    after = fn.when(fn.col("row_after").isNull(), too_long(schema)).otherwise(fn.col("row_after"))
    return rows.select(fn.col("row_key").alias("key"), after.alias("after"))


def selected(
    spark: SparkSession, source: Source, schema: TableSchema, wanted: list[str], within: str, asked: dict[str, str]
) -> DataFrame:
    """What is `asked`, name -> SQL, of the rows of each condition (over k0, k1 .. of the key), one partition a
    condition; of those alone that are `within` another one, over the columns' names. Of that server alone."""
    keys = {f"k{at}": quoted(name) for at, name in enumerate(schema.key)}
    terms = ", ".join(f"{sql} AS {name}" for name, sql in (keys | asked).items())
    chosen = f" WHERE {within}" if within else ""
    query = f"(SELECT {terms} FROM {chunks.table_sql(schema)}{chosen}) AS q"
    only = source.only
    if no_days.named([*wanted, within], source.pipeline.source.flavor):
        only += f", {no_days.ALLOWED}"
    options = jdbc_options(spark, source.pipeline, only)
    url = options.pop("url")
    return spark.read.jdbc(url, query, predicates=wanted, properties=options).select(*asked)


def too_long(schema: TableSchema) -> Column:
    """Raises: a row or a value longer than max_allowed_packet comes as NULL."""
    return fn.raise_error(fn.lit(f"a row of {schema.db}.{schema.table} {LONGER}"))
