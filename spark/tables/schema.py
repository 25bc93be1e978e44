"""The shapes of the lake's tables, and how they follow the source's.

Added columns appear and are null in old rows; a dropped column stays and is null from then on. For a type that has
each value of the column's the table is written anew from itself; another one stops the table, and no other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from contract import lake_columns, types
from contract.lake_columns import holds, nameable
from contract.names import quoted
from contract.schema import TableSchema
from contract.sequence import SPARK_TYPE
from contract.steps import SNAPSHOT_TABLE
from spark.errors import TableStoppedError
from spark.failpoints import reached
from spark.lake.delta_names import VECTORS, may_have_vectors, without_vectors
from spark.tables.casts import cast
from spark.tables.folder_names import refuse_names

OWN = dict(zip(lake_columns.OWN, (SPARK_TYPE, "timestamp"), strict=True))
NOTHING: Mapping[str, str] = {}
OTHER_KEY = (
    "choose columns of it under keys in the pipeline file, or write changes_only: true there, for a history without a "
    "current table, or exclude it"
)


class Schemas:
    """Every version of every table's schema, as the schema topic has them."""

    def __init__(self, schemas: Iterable[TableSchema]) -> None:
        self._versions: dict[tuple[str, str], dict[int, TableSchema]] = {}
        for schema in schemas:
            self._versions.setdefault((schema.db, schema.table), {})[schema.version] = schema

    def of(self, db: str, table: str, version: int) -> TableSchema:
        """Raises TableStoppedError for a version that the topic does not have."""
        versions = self._versions.get((db, table), {})
        if version not in versions:
            known = ", ".join(map(str, sorted(versions))) or "none"
            raise TableStoppedError(
                f"{db}.{table}: a change names schema version {version}, the schema topic has {known}. "
                f"Start the streamer, which writes it again, or {SNAPSHOT_TABLE}"
            )
        return versions[version]

    def all(self, db: str, table: str) -> list[TableSchema]:
        """The table's shapes, oldest first."""
        return [schema for _, schema in sorted(self._versions.get((db, table), {}).items())]

    def tables(self) -> list[tuple[str, str]]:
        return sorted(self._versions)

    def newest(self, db: str, table: str) -> TableSchema:
        versions = self._versions[(db, table)]
        return versions[max(versions)]


def fields(schema: TableSchema) -> dict[str, str]:
    """The lake's columns of a schema: name -> Spark type. Raises TableStoppedError where it cannot be a lake table."""
    name = f"{schema.db}.{schema.table}"
    if not schema.key:
        raise TableStoppedError(
            f"{name} has no primary key, so its rows cannot be told apart in the lake. Add a key (ALTER TABLE "
            f"... ADD PRIMARY KEY), {OTHER_KEY}"
        )
    if inexact := _inexact(schema):
        raise TableStoppedError(
            f"{name}: its primary key has {inexact}: no text of it is exact, so its rows cannot be told apart, and the "
            "streamer stops at its next change, whatever keys in the pipeline file says. Give it a primary key of "
            f"exact types, then {SNAPSHOT_TABLE}; or exclude it"
        )
    return typed(schema)


def _inexact(schema: TableSchema) -> str | None:
    """The column of its key by which no row can be known, with its type."""
    key = (column for column in map(schema.column, schema.key) if column.type in types.INEXACT)
    return next((f"the column {column.name} of type {column.type}" for column in key), None)


def typed(schema: TableSchema) -> dict[str, str]:
    """The same of a table that is to have no rows, and needs no key for it."""
    name = f"{schema.db}.{schema.table}"
    refuse_names(schema)
    for column in schema.columns:
        if not nameable(column.name):
            raise TableStoppedError(
                f"{name}: the lake cannot have a column named {column.name!r}. Rename it, leave it out "
                "(columns.exclude), or exclude the table"
            )
    try:
        return {column.name: types.of(column).spark for column in schema.columns}
    except types.UnknownTypeError as error:
        raise TableStoppedError(f"{name}: {error}. Exclude the table, or upgrade Headrace") from None


def prepare(
    spark: SparkSession, path: str, schema: TableSchema, newest: TableSchema, deletion_vectors: bool = True
) -> dict[str, str]:
    """Makes the table, or adds the columns that it lacks. Gives its data columns in order, name -> type.

    Raises TableStoppedError where a column's type does not fit, unless that is because the table has the type of
    `newest`, a later shape than `schema`'s: `rows.typed` then casts.
    """
    if newest.key and not schema.key:
        raise TableStoppedError(
            f"{schema.db}.{schema.table}: it had no key, and its changes of then cannot be merged: {SNAPSHOT_TABLE}, "
            "which reads its rows as they are since"
        )
    if (inexact := _inexact(schema)) and not _inexact(newest):
        raise TableStoppedError(
            f"{schema.db}.{schema.table}: its primary key had {inexact}, and its changes of then cannot be merged: "
            f"{SNAPSHOT_TABLE}, which reads its rows as they are since"
        )
    wanted = fields(schema)
    if not DeltaTable.isDeltaTable(spark, path):
        create(spark, path, wanted, deletion_vectors)
        reached("table made")
        return wanted
    present = columns_of(spark, path)
    known = {name.lower(): kind for name, kind in present.items()}
    later = {name.lower(): kind for name, kind in fields(newest).items()}
    other = {
        name: kind
        for name, kind in wanted.items()
        if not _takes(known.get(name.lower(), kind), kind, later.get(name.lower(), kind))
    }
    wider = {name: kind for name, kind in other.items() if holds(kind, known[name.lower()])}
    wrong = [f"{name} is {kind} now and {known[name.lower()]} in the lake" for name, kind in other.items()]
    if len(wider) < len(other):
        if told := landed_otherwise(schema, present):
            raise TableStoppedError(told)
        raise TableStoppedError(
            f"{schema.db}.{schema.table}: a column's type changed: {'; '.join(wrong)}. To have it "
            f"written anew, {SNAPSHOT_TABLE}, which writes it with its new type"
        )
    missing = {name: kind for name, kind in wanted.items() if name.lower() not in known}
    without_vectors(spark, path, wanted)
    if wider:
        present = _widen(spark, path, present, wider)
    _add(spark, path, missing, list(present)[-1])
    return {**present, **missing}


def _takes(known: str, kind: str, later: str) -> bool:
    """Whether a column of the type `known` takes values of type `kind`, which the table has, or had before it got the
    type `later`: `rows.typed` casts them."""
    return known in (kind, later) or (holds(known, kind) and holds(later, known))


def _widen(spark: SparkSession, path: str, present: dict[str, str], wider: Mapping[str, str]) -> dict[str, str]:
    """Writes the table anew from itself, in one commit. Gives its data columns as they are then."""
    types_now = {name.lower(): kind for name, kind in wider.items()}
    columns = {name: types_now.get(name.lower(), kind) for name, kind in present.items()}
    rows = fitted(spark.read.format("delta").load(path), columns)
    rows.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(path)
    reached("columns widened")
    return columns


def landed_otherwise(schema: TableSchema, lake: Mapping[str, str]) -> str | None:
    """Why the lake's columns, name -> type, are texts where `schema`'s are moments, or the other way: the table was
    made by another `lake.unrepresentable`, or, of texts, the source itself had another type there."""
    kinds = {name.lower(): kind for name, kind in lake.items()}
    made = {column.name: types.of(column).spark for column in schema.columns if types.may_not_fit(column)}
    other = [name for name, kind in made.items() if (kinds.get(name.lower(), kind) == "string") != (kind == "string")]
    if not other:
        return None
    name, columns = f"{schema.db}.{schema.table}", ", ".join(other)
    if any(kinds[one.lower()] == "string" for one in other):
        return (
            f"{name}: the lake has texts in {columns}: the source had another type there, or lake.unrepresentable was "
            "string, when the lake's table was made. If it was the setting, put that back; else "
            f"{SNAPSHOT_TABLE}"
        )
    return (
        f"{name}: lake.unrepresentable was another when the lake's table was made, and so are its types of {columns}: "
        f"{SNAPSHOT_TABLE}, or put the setting back"
    )


def lacks_key(schema: TableSchema, lake: Mapping[str, str]) -> str | None:
    """Why the lake's rows are told apart by no key of `schema`'s: it is of columns that the source has since."""
    has = {name.lower() for name in lake}
    lacking = ", ".join(name for name in schema.key if name.lower() not in has)
    return f"{schema.db}.{schema.table}: the lake has no {lacking}, by which it is keyed now" if lacking else None


def widened_since(schema: TableSchema, lake: Mapping[str, str]) -> str | None:
    """Why rows of the lake may not be cast to `schema`'s types: the source widened a column since, and they have values
    that only the wider type holds."""
    kinds = {name.lower(): kind for name, kind in lake.items()}
    wider = [name for name, kind in fields(schema).items() if holds(kinds.get(name.lower(), kind), kind)]
    if not wider:
        return None
    return f"{schema.db}.{schema.table}: the lake's type of {', '.join(wider)} is wider than the one that was read"


def fitted(rows: DataFrame, lake: dict[str, str]) -> DataFrame:
    """The rows with their columns in the given types; what does not convert is null."""
    kinds = {name.lower(): kind for name, kind in lake.items()}
    for field in rows.schema:
        kind = kinds.get(field.name.lower(), "")
        was = field.dataType.simpleString()
        if kind and kind != was:
            rows = rows.withColumn(field.name, fn.expr(cast(quoted(field.name), was, kind)))
    return rows


def columns_of(spark: SparkSession, path: str) -> dict[str, str]:
    """The data columns of a lake table in order, name -> type."""
    shape = spark.read.format("delta").load(path).schema
    return {f.name: f.dataType.simpleString() for f in shape if f.name not in OWN}


def create(
    spark: SparkSession, path: str, wanted: dict[str, str], deletion_vectors: bool, more: Mapping[str, str] = NOTHING
) -> None:
    """Makes an empty table of these data columns. `more`: properties of it."""
    columns = ", ".join(f"{quoted(name)} {kind}" for name, kind in {**wanted, **OWN}.items())
    # With them merges mark rows as gone instead of writing whole files again.
    properties = {VECTORS: str(deletion_vectors and may_have_vectors(wanted)).lower(), **more}
    listed = ", ".join(f"'{name}' = '{value}'" for name, value in properties.items())
    spark.sql(f"CREATE TABLE IF NOT EXISTS {at(path)} ({columns}) USING delta TBLPROPERTIES ({listed})")


def _add(spark: SparkSession, path: str, missing: dict[str, str], last: str) -> None:
    for name, kind in missing.items():  # one at a time: AFTER may name only a column that is there
        spark.sql(f"ALTER TABLE {at(path)} ADD COLUMNS ({quoted(name)} {kind} AFTER {quoted(last)})")
        reached("column added")
        last = name


def at(path: str) -> str:
    """A Delta table by its path, as Spark SQL names it."""
    return f"delta.{quoted(path)}"
