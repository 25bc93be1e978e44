"""Puts the staged parts in their place, behind the merge of a compaction run.

By then `_changes` has every change of a part's rows up to P1, and the table is merged as far. So the part's rows are
the staged ones and what `_changes` says of their keys behind P0, whatever the table has; where it has another row, or
one more, or none, that one is written, in one commit. A row that is right is not touched. Before that the audit table
`_repairs` has a row of each: a run that dies in between finds the same again, and writes neither twice. Where the table
does not take them, or the part is refused by then, those that it lacks go out of `_repairs` again: a snapshot leaves
out what that has as mended.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass, field

from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as fn

from contract import status
from contract.checkpoint import Checkpoint
from contract.names import quoted
from contract.pipeline_keys import told_of
from contract.status import PartStatus
from contract.steps import SNAPSHOT_TABLE
from spark.errors import TableStoppedError
from spark.evolution.renames import renames_of, since
from spark.failpoints import reached
from spark.lake.applied import NEVER, AppliedSnapshots
from spark.lake.erasures import Erased, Erasures
from spark.lake.lake import Lake
from spark.lake.stopped import Name
from spark.mending.audit import counts, forget, forget_all, note
from spark.mending.final import KIND, compared, differing, folded, widened
from spark.merging.mended import keys_behind, mended
from spark.merging.parts import MYSQL, Part, parts, remove
from spark.merging.tables import USED
from spark.merging.taken import taken, taking
from spark.proof.differences import EXTRA, MISSING
from spark.proof.unplaced import behind_all
from spark.tables.merge import behind, sequence
from spark.tables.refused import unfit
from spark.tables.rows import beside, keyed, parsed
from spark.tables.schema import Schemas, fitted, prepare

GONE = beside("gone")
TOLD: set[tuple[str, str]] = set()  # lake and part, of those that wait


@dataclass
class Mending:
    """One run's. `waiting`: the tables whose changes wait themselves. `at`: the version of `_changes` that counts, None
    where there is none. `foreign`: the tables that somebody else wrote. `done`: what became of each part, by its id;
    `tables`: those that were written; `whole`: those of which all rows were compared and are right now."""

    spark: SparkSession
    lake: Lake
    schemas: Schemas
    snapshots: AppliedSnapshots
    waiting: Iterable[Name]
    at: int | None
    foreign: Container[Name] = ()
    done: dict[str, PartStatus] = field(default_factory=dict)
    tables: set[Name] = field(default_factory=set)
    whole: set[Name] = field(default_factory=set)
    erased: list[Erased] = field(default_factory=list, init=False)
    merged: Checkpoint | None = field(default=None, init=False)

    def run(self, checkpoint: Checkpoint | None) -> None:
        """`checkpoint`: what the lake is merged up to."""
        self.erased, self.merged = Erasures(self.lake).known.erased, checkpoint
        for part in parts(self.lake):
            if checkpoint and checkpoint.place >= part.p0.place and checkpoint.covers(part.p1):
                self._part(part)
            elif checkpoint and checkpoint.epoch > part.p0.epoch:
                self._end(part, refused=_moved(part))
            else:
                _tell_waits(self.lake, part)

    def clear(self) -> None:
        """Removes the parts, once it is written down what became of them."""
        remove(self.lake, self.done)

    def told(self, before: dict[str, PartStatus]) -> dict[str, PartStatus]:
        """With those of the runs before, as many as are kept: who staged them may ask for hours what became of them."""
        known, since = {**before, **self.done}, int(time.time() * 1000) - status.PARTS_MS
        last = sorted(known)[-status.PARTS :]
        return {id: known[id] for id in sorted(known) if id in last or id in self.done or known[id].at >= since}

    def _part(self, part: Part) -> None:
        if part.name in set(self.waiting) and not self.lake.pipeline.changes_only(*part.name):
            return
        if (refused := self._refused(part)) is None and part.all:
            self.whole.add(part.name)
        self._end(part, refused)

    def _end(self, part: Part, refused: str | None) -> None:
        if refused and taken(self.spark, self.lake, part) is False:
            forget_all(self.spark, self.lake, part)  # what a run noted that died before the table had it
        rows = {} if refused else counts(self.spark, self.lake, part)
        db, table = part.name
        at = int(time.time() * 1000)
        self.done[part.id] = PartStatus(db=db, table=table, job=part.job, at=at, rows=rows, refused=refused)

    def _refused(self, part: Part) -> str | None:
        """Why the part was not put in its place; None where it was."""
        try:
            if (reason := self._unwanted(part)) is None:
                self._replace(part)
            return reason
        except Exception as error:
            if (told := self._told(part, error)) is None:
                raise
            return told

    def _told(self, part: Part, error: Exception) -> str | None:
        """In the words that the part is refused with; None where the failure is another than the table's or the part's
        own."""
        if isinstance(error, TableStoppedError):
            return str(error)
        if told := unfit(self.lake, part.name, error):
            return f"{told}. Then run the {part.job} again"
        return part.broken(self.lake, error)

    def _unwanted(self, part: Part) -> str | None:
        if not self.lake.pipeline.tables.match(*part.name):
            return f"{'.'.join(part.name)} is not one of the pipeline's tables any more: nothing is left to do"
        if self.lake.pipeline.changes_only(*part.name):
            return told_of(".".join(part.name))
        applied = self.snapshots.tables.get(part.name)
        if applied and (applied.floor > part.sequence or part.snapshot not in (None, applied.id)):
            name = ".".join(part.name)
            return f"the snapshot {applied.id} has read all of {name} since: nothing is left to do but to check it"
        if part.source != MYSQL and self.snapshots.gap(part.name):
            return f"{'.'.join(part.name)} lacks changes, and so do rows that were made of them: {SNAPSHOT_TABLE}"
        if since(renames_of(self.lake), part.shape, part.p0.place):
            return f"a column of {'.'.join(part.name)} was renamed since the rows were read: run the {part.job} again"
        if part.source != MYSQL and (count := mended(self.spark, self.lake, part, applied or NEVER)):
            return (
                f"rows ({count:,}) were mended from the source meanwhile, and no change says what they are: take the "
                "rows from MySQL (source mysql, --source mysql)"
            )
        mine = (one for one in self.erased if one.tbl == ".".join(part.name))
        if any(one.behind(part.erasures, part.p0.place) for one in mine):
            return f"rows of {'.'.join(part.name)} were erased since these were read: run the {part.job} again"
        return None

    def _replace(self, part: Part) -> None:
        path = self.lake.table(*part.name)
        known = self.schemas.all(*part.name)
        columns = prepare(self.spark, path, part.shape, known[-1] if known else part.shape, self.lake.deletion_vectors)
        inside = self._inside(part)
        rows = inside(folded(self._staged(part, columns), self._later(part), part.shape, self.schemas, columns))
        table = inside(self.spark.read.format("delta").load(path))
        found = compared(table, rows, part.shape, self._strange(part)).persist()
        try:
            if found.isEmpty():
                return
            applied = self.snapshots.tables.get(part.name)
            note(self.spark, self.lake, part, differing(found, part.shape), applied.id if applied else "")
            self.lake.settle()  # once the rows are there, nothing tells what they were
            if refusal := self._write(part, path, found, rows, columns):
                forget(self.spark, self.lake, part, differing(found, part.shape))
                raise refusal
        finally:
            found.unpersist()
        self.tables.add(part.name)

    def _strange(self, part: Part) -> Column | None:
        """Of a table that somebody else wrote: whether a row's order is one that no change can have."""
        if part.name not in self.foreign or self.merged is None:
            return None
        changes = None if self.at is None else self.lake.frame(self.lake.changes, self.at)
        mine = None if changes is None else changes.where(fn.col("tbl") == ".".join(part.name))
        return behind_all(mine, self.merged.place)

    def _inside(self, part: Part) -> Callable[[DataFrame], DataFrame]:
        """Takes the part's rows out, without those that were mended already as the source had them later."""
        mine = part.inside(self.spark, self.lake)
        if part.source != MYSQL or (later := keys_behind(self.spark, self.lake, part.shape, part.sequence)) is None:
            return mine
        return lambda rows: mine(rows).join(later, later.columns, "left_anti")

    def _later(self, part: Part) -> DataFrame | None:
        """The changes behind the part's P0; None where nothing was changed yet."""
        if self.at is None:
            return None
        changes = self.lake.frame(self.lake.changes, self.at)
        return behind(changes.select(*USED), part.name, part.sequence)

    def _staged(self, part: Part, columns: dict[str, str]) -> DataFrame:
        rows = part.rows(self.spark, self.lake)
        if part.texts:
            if part.keyed:  # two keys that the source takes for one may be asked for apart, and each gives both rows
                rows = rows.dropDuplicates(["key"])
            at = {"_seq": sequence(part.sequence), "_ts": fn.timestamp_millis(fn.lit(part.p0.ts_ms))}
            wire = rows.withColumn("_wire", parsed("after", part.shape.columns))
            rows = wire.select(*keyed("_wire", part.shape, columns)).withColumns(at)
        return widened(fitted(rows, columns), columns)

    def _write(
        self, part: Part, path: str, found: DataFrame, rows: DataFrame, columns: dict[str, str]
    ) -> Exception | None:
        """Gives what the part is refused with, so that a failure behind it has no such cause; raises what is another
        failure."""
        key = list(part.shape.key)
        other = {name: beside(f"k{at}") for at, name in enumerate(key)}
        marks = [fn.col(quoted(name)).alias(alias) for name, alias in other.items()]
        gone = found.where(fn.col(KIND) != MISSING).select(*marks, fn.lit(True).alias(GONE))
        made = rows.join(found.where(fn.col(KIND) != EXTRA).select(*map(quoted, key)), key, "left_semi")
        nothing = [fn.lit(None).cast(dict(rows.dtypes)[name]).alias(alias) for name, alias in other.items()]
        source = gone.unionByName(made.select("*", *nothing, fn.lit(False).alias(GONE)), allowMissingColumns=True)
        values: dict[str, str | Column] = {quoted(name): f"c.{quoted(name)}" for name in (*columns, "_seq", "_ts")}
        # A row without a key, which somebody else wrote, is to go, too.
        equal = [f"t.{quoted(name)} <=> c.{quoted(alias)}" for name, alias in other.items()]
        same = " and ".join([f"c.{quoted(GONE)}", *equal])
        merge = DeltaTable.forPath(self.spark, path).alias("t").merge(source.alias("c"), same)
        merge = merge.whenMatchedDelete().whenNotMatchedInsert(f"not c.{quoted(GONE)}", values)
        try:
            with taking(self.spark, path, part):
                merge.execute()
        except Exception as error:
            if self._told(part, error) is None:
                raise
            return error
        reached("part replaced")
        return None


def _tell_waits(lake: Lake, part: Part) -> None:
    """Once, of many rounds in one process."""
    if (lake.root, part.id) not in TOLD:
        to = part.p1 or part.p0.behind
        told = f"{'.'.join(part.name)}: the part {part.id} of a {part.job} waits until the lake has come to {to}"
        print(told, flush=True)
    TOLD.add((lake.root, part.id))


def _moved(part: Part) -> str:
    return (
        f"the stream went to another server, or to another place, before the lake had come to {part.p1}, where the "
        f"reading of these rows of {'.'.join(part.name)} ended. Behind a failover to a server that never had these "
        f"transactions it never comes there. The table is as it was: run the {part.job} again"
    )
