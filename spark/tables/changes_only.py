"""Tables of which the lake keeps the changes alone (`keys` in the pipeline file, `changes_only`).

Their changes land in `_changes` as those of others, and nothing is merged: the table waits with them, as one that is
stopped does, but without a word. So nothing is passed by for good, should the file ask for its rows one day. What a
reader cannot know of the changes are the table's columns; the lake has them as an empty table, in a folder of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from contract import names, steps
from contract.names import quoted
from contract.pipeline_keys import told_of
from contract.schema import TableSchema
from contract.status import LakeStatus
from spark.errors import LakeError, TableStoppedError
from spark.lake.applied import AppliedSnapshots
from spark.lake.lake import Lake
from spark.lake.stopped import Name, StoppedTables
from spark.tables.schema import OWN, Schemas, columns_of, typed

KEPT = "the pipeline file keeps its changes alone"  # the reason of a table that waits for nothing


def keep(
    spark: SparkSession, lake: Lake, stopped: StoppedTables, schemas: Schemas, name: Name, since: list[int]
) -> None:
    """Of changes that landed, the first of which is `since`."""
    reason = KEPT
    try:
        note_shape(spark, lake, schemas.all(*name))
    except TableStoppedError as error:
        reason = str(error)
    stopped.stop(name, since, reason, kept=True)


def note_shape(spark: SparkSession, lake: Lake, shapes: Sequence[TableSchema]) -> None:
    """Gives the empty table all columns that one of the table's shapes had, each with its newest type: there are no
    rows that it would have to fit. Raises TableStoppedError where the lake cannot have a column."""
    if not shapes:
        return
    path, wanted = lake.table(shapes[-1].db, shapes[-1].table), _columns(shapes)
    if lake.is_table(path) and columns_of(spark, path) == wanted:
        return
    listed = ", ".join(f"{quoted(name)} {kind}" for name, kind in {**wanted, **OWN}.items())
    nothing = spark.createDataFrame([], listed).write.format("delta").mode("overwrite")
    nothing.option("overwriteSchema", "true").save(path)


def _columns(shapes: Sequence[TableSchema]) -> dict[str, str]:
    """Name -> type. Capital letters make no other column."""
    spelled, kinds = dict[str, str](), dict[str, str]()
    for name, kind in (column for shape in shapes for column in typed(shape).items()):
        kinds[spelled.setdefault(name.lower(), name)] = kind
    return kinds


def note_missing(spark: SparkSession, lake: Lake, schemas: Schemas) -> None:
    """The shapes of tables that no change has come of since the pipeline file keeps their changes alone."""
    for name in schemas.tables():
        if not lake.pipeline.changes_only(*name) or not lake.pipeline.tables.match(*name):
            continue
        if not lake.is_table(lake.table(*name)):
            try:
                note_shape(spark, lake, schemas.all(*name))
            except TableStoppedError as error:
                print(f"{'.'.join(name)}: its changes cannot be shown: {error}", flush=True)


def forget_rows(snapshots: AppliedSnapshots) -> None:
    """Whatever rows the lake has of such tables, it does not follow them: they count as not snapshotted from now on."""
    for name, applied in list(snapshots.tables.items()):
        if snapshots.lake.pipeline.changes_only(*name) and not applied.gap:
            snapshots.note(name, applied.model_copy(update={"gap": True}))


def shape_of(lake: Lake, name: Name) -> DataFrame:
    """No rows, with the table's columns. Raises LakeError where no compaction has noted them yet."""
    path = lake.table(*name)
    if not lake.is_table(path):
        told = f"the lake has no changes of {'.'.join(name)} yet: check its name, or {steps.compaction(lake.pipeline)}"
        raise LakeError(told)
    return lake.frame(path).drop(*OWN)


def refused(name: Name) -> LakeError:
    """To who asks for the table's rows."""
    return LakeError(f"{told_of('.'.join(name))}: ask for {name[1]}_changes")


def telling(spark: SparkSession, lake: Lake, name: Name) -> DataFrame:
    """What has the table's columns and fails where it is read, with the reason: Spark would say that it knows no such
    view."""
    columns = [fn.lit(None).cast(kind).alias(column) for column, kind in shape_of(lake, name).dtypes]
    return spark.range(1).where(fn.raise_error(fn.lit(str(refused(name)))).isNull()).select(*columns)


def tidy(lake: Lake, status: LakeStatus) -> None:
    """Removes the columns of tables that are kept otherwise by now."""
    known = {lake.table(t.db, t.table) for t in status.tables.values() if lake.pipeline.changes_only(t.db, t.table)}
    for path in _shapes(lake):
        if path not in known:
            lake.delete(path)


def _shapes(lake: Lake) -> Iterator[str]:
    for db in lake.list(lake.at(names.SHAPES)):
        for table in lake.list(lake.at(names.SHAPES, db)):
            yield lake.at(names.SHAPES, db, table)
