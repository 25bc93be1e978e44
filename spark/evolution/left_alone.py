"""Statements that left their table as it was: a column got another DEFAULT or COMMENT, or the same definition again.

The streamer tells a shape with the first row that has it, and with nothing else: a checkpoint behind the statement, by
itself, says nothing of the shape. A change of a row does, which names the version of its own: where it has the one that
was in force before the statement, no row in between had another.

Why nothing else can have changed a value, where the table's mark is closed by that:
- The statement is the only one between the row that told the version and that change: no other took the shape away
  and brought it back, so that it began and ended with the same types, sizes, members, character sets and NOT NULLs.
  Each statement that came before the change is known: the change is before the checkpoint that this run began with, up
  to which everything was durable, and the DDL topic is read since.
- The three are of one epoch. In a new one rows of before the statement come again with places behind it.
- It does nothing but define columns, by words that change no value of a column whose shape is the same
  (defines.py), under the names that they have. The streamer says that it drops none, and that nothing in the table is
  computed, by a collation for instance, which no shape has.
- What the shape shows of these columns is their own and no mask's, which looks the same whatever is behind it. Those
  that it lacks, the lake does not have.

A statement that left all as it was does not count beside others any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Set

from pyspark.sql import Column
from pyspark.sql import functions as fn

from contract.schema import TableSchema
from spark.evolution.schema_change_rows import Place, place
from spark.evolution.state import Mark
from spark.evolution.statements import Statements
from spark.lake.lake import Lake
from spark.lake.stopped import Name
from spark.tables.schema import Schemas

Key = tuple[Name, Place]
Following = dict[Key, tuple[Place, int]]
ROWS = ("c", "u", "d")  # a truncation names the version in force, which no row has shown
PARTS = ("epoch", "file", "pos")
ASKED = "db string, tbl string, name string, at struct<epoch:bigint,file:bigint,pos:bigint>"


def first_changes(lake: Lake, schemas: Schemas, marks: Iterable[Mark], until: Place | None) -> Following:
    """The first change behind each mark, where one is there: its place and version. `until`: the checkpoint's place,
    read before the statements were; None without one. What stands between the two is known by then, so an answer holds
    for good, and is asked for once: a table may be stale for days, with all of its changes behind that."""
    asked = [mark for mark in marks if mark.defines and until and mark.seq[0] == until[0] and _before(schemas, mark)]
    found = {(mark.name, mark.seq): mark.followed for mark in asked if mark.followed}
    rest = [key for mark in asked if (key := (mark.name, mark.seq)) not in found]
    return found | (_next(lake, rest, until) if until and rest else {})


def left_alone(schemas: Schemas, marks: Iterable[Mark], known: Statements, following: Following) -> Set[Key]:
    """Those of the marks' statements, by their tables and places."""
    asked = {(mark.name, mark.seq): mark for mark in marks if (mark.name, mark.seq) in following}
    shapes = {key: shape for key, mark in asked.items() if (shape := _before(schemas, mark))}
    found: set[Key] = set()
    for name, seq in sorted(shapes):
        (behind, version), shape = following[name, seq], shapes[name, seq]
        between = known.between(name, place(shape), behind) or set()
        if version == shape.version and {one for one in between if (name, one) not in found} == {seq}:
            found.add((name, seq))
    return found


def _before(schemas: Schemas, mark: Mark) -> TableSchema | None:
    """The shape in force where the statement stands, which a row told, if what it defines is seen in it."""
    shapes = [shape for shape in schemas.all(*mark.name) if shape.since and place(shape) <= mark.seq]
    columns = {column.name.lower(): column for column in shapes[-1].columns} if shapes else {}
    masked = any(column.mask for column in columns.values())
    seen = not masked or all(name in columns and not columns[name].mask for name in mark.defines)
    return shapes[-1] if shapes and seen else None


def _next(lake: Lake, asked: Iterable[Key], until: Place) -> Following:
    """Of each the first change behind it in its epoch, and before the checkpoint: its place and its version."""
    if not lake.is_table(lake.changes):
        return {}
    rows = [(db, f"{db}.{table}", table, seq) for (db, table), seq in asked]
    changes = lake.frame(lake.changes).where(fn.col("tbl").isin([row[1] for row in rows]) & fn.col("op").isin(*ROWS))
    # Said of single fields, too, which lets Delta pass by the files that are older.
    first = min(file for *_, (_, file, _) in rows)
    changes = changes.where((fn.col("_seq.epoch") == until[0]) & (fn.col("_seq.file") >= first))
    mine = changes.join(fn.broadcast(lake.spark.createDataFrame(rows, ASKED)), ["db", "tbl"])
    later = mine.withColumn("place", fn.struct(*(f"_seq.{part}" for part in PARTS)))
    later = later.where((fn.col("place") > fn.col("at")) & (fn.col("place") < _literal(until)))
    told = later.groupBy("db", "name", "at").agg(fn.min(fn.struct("place", "schema")).alias("told")).collect()
    return {((db, table), tuple(at)): (tuple(told["place"]), told["schema"]) for db, table, at, told in told}


def _literal(place: Place) -> Column:
    return fn.struct(*(fn.lit(n).cast("bigint").alias(part) for n, part in zip(place, PARTS, strict=True)))
