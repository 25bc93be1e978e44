"""How the lake stands behind a run: what the run makes of the last status."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime

from pyspark.sql import SparkSession

from contract import names
from contract.checkpoint import Checkpoint, Place
from contract.start_at import since
from contract.status import LakeStatus, Stale, TableStatus, parse
from contract.steps import SNAPSHOT_TABLE
from spark.compaction.counted import counted, name_of
from spark.lake import lost
from spark.lake.lake import Lake
from spark.lake.letters import Letters
from spark.lake.stopped import Name
from spark.merging.ahead import ahead
from spark.merging.handoff import HandOff
from spark.merging.tables import Merging
from spark.tables.changes_only import KEPT
from spark.tables.refused import own_fault


class Standing:
    """What this run makes of the last status. Behind a run that did not end, or a status that is gone (`clean` is
    false), the counts are taken anew from the lake; else those of the changes of tables that are stopped no longer."""

    def __init__(
        self,
        spark: SparkSession,
        lake: Lake,
        merging: Merging,
        handoff: HandOff,
        clean: bool,
        stale: Mapping[Name, Stale],
        letters: Letters,
    ) -> None:
        self.spark, self.lake, self.merging, self.handoff, self.clean = spark, lake, merging, handoff, clean
        self.stale = stale
        text = lake.text(lake.status)
        self.last = parse(text) if text else None
        self.counts = self._counts()
        self.lacking = letters.tables(merging.schemas.tables())
        self.nulled = Counter(merging.nulled) + Counter(handoff.nulled)  # of this run

    def names(self, checkpoint: Checkpoint | None) -> list[Name]:
        """Of all tables that the status tells of, sorted."""
        known = {(t.db, t.table) for t in self.last.tables.values()} if self.last else set()
        touched = {*self.merging.merged, *self.handoff.snapshots.tables, *self.counts, *self.stale}
        touched |= {*self.merging.stopped.tables, *self.handoff.refused}
        joined = {name for name in map(name_of, checkpoint.joined) if name} if checkpoint else set()
        return sorted(
            name for name in known | touched | joined | {*self.lacking} if self.lake.pipeline.tables.match(*name)
        )

    def _counts(self) -> dict[Name, int]:
        freed, stopped = self.merging.freed, self.merging.stopped
        if self.clean and not freed:
            return {}
        known = [(t.db, t.table) for t in self.last.tables.values()] if self.last else []
        return counted(self.lake, stopped, known, freed if self.clean else None)

    def touched(self) -> set[Name]:
        """The tables that this run may have written; those of renamed columns have a commit more for it."""
        merging = self.merging
        return {*merging.merged, *merging.emptied, *merging.stopped.tables, *self.handoff.applied}

    def status(self, checkpoint: Checkpoint | None, began: float, versions: Mapping[Name, int | None]) -> LakeStatus:
        """`versions`: of each table, that the status is of."""
        tables = {".".join(name): self._table(*name, checkpoint, at) for name, at in versions.items()}
        return LakeStatus(
            pipeline=self.lake.pipeline.name,
            run=self.last.run + 1 if self.last else 1,
            written_at=int(time.time() * 1000),
            seconds=round(time.time() - began, 1),
            checkpoint=checkpoint,
            changes_version=self.merging.looked.version,
            tables=tables,
        )

    def _table(self, db: str, table: str, checkpoint: Checkpoint | None, at: int | None) -> TableStatus:
        name, path = (db, table), self.lake.table(db, table)
        last = self.last.tables.get(f"{db}.{table}") if self.last else None
        merged, stop = self.merging.merged.get(name, 0), self._stopped().get(name)
        more = (last.changes if last else 0) + merged if self.clean else 0
        changes = self.counts.get(name, more)
        if self.lake.pipeline.changes_only(db, table):  # there are no rows of which more could be said
            return TableStatus(
                db=db,
                table=table,
                rows=0,
                changes=changes,
                changes_last_run=merged,
                freshness_ms=self._fresh(last, stop, checkpoint),
                stopped=stop,
                unequal=self._lacking(name, checkpoint),
                changes_only=True,
            )
        snapshots = self.handoff.snapshots
        if last and self.clean and name not in self.handoff.applied | self.merging.emptied:
            rows = last.rows + self.merging.rows.get(name, 0)
        else:
            rows = self._rows(name, path, last) if at is not None else 0
        unread = self._unread(name, checkpoint)
        later = None if unread else self._ahead(name, checkpoint)
        return TableStatus(
            db=db,
            table=table,
            rows=rows,
            changes=changes,
            changes_last_run=merged,
            freshness_ms=None if unread or later else self._fresh(last, stop, checkpoint),
            version=at,
            snapshot=None if snapshots.gap(name) else snapshots.tables.get(name),
            stopped=stop,
            next_try_ms=self._next_try(name),
            unequal=self._unequal(name, checkpoint),
            stale=self.stale.get(name),
            outdated=self._outdated(name, checkpoint),
            unread=unread,
            ahead=later,
            nulled=(last.nulled if last else 0) + self.nulled.get(name, 0),
        )

    def _unread(self, name: Name, checkpoint: Checkpoint | None) -> str | None:
        applied, told = self.handoff.snapshots.tables.get(name), None
        if loss := self.handoff.snapshots.loss(name, self._born(name)):
            told = lost.told(loss)
        elif self.handoff.snapshots.gap(name):
            told = "it was not followed for a time since its snapshot, or counts as such"
        elif applied is None and checkpoint and self._was_there(name, checkpoint.all_until):
            told = "it was not followed for a time, or counts as such"
        elif checkpoint and (place := checkpoint.unread(*name, applied.floor if applied else None)):
            told = f"it is followed since {since(*place[1:])}, and rows of before were not read"
        return told and f"not yet snapshotted: {told}: {SNAPSHOT_TABLE}"

    def _was_there(self, name: Name, place: Place | None) -> bool:
        """Whether rows of the table were streamed before that place."""
        born = self._born(name)
        return place is not None and born is not None and tuple(born[:3]) < place

    def _ahead(self, name: Name, checkpoint: Checkpoint | None) -> str | None:
        applied = self.handoff.snapshots.tables.get(name)
        return ahead(self.lake.pipeline, checkpoint, applied.p1) if applied else None

    def _born(self, name: Name) -> list[int] | None:
        """The `_seq` of the first row that was streamed by a shape that is known."""
        first = next(iter(self.merging.schemas.all(*name)), None)
        return [*first.since] if first and first.since else None

    def _rows(self, name: Name, path: str, last: TableStatus | None) -> int:
        """Of a table that cannot be read nobody can count more than was known."""
        try:
            return self.spark.read.format("delta").load(path).count()
        except Exception as error:
            if own_fault(self.lake, name, error) is None:
                raise
            return last.rows if last else 0

    def _outdated(self, name: Name, checkpoint: Checkpoint | None) -> str | None:
        applied = self.handoff.snapshots.tables.get(name)
        if checkpoint is None or applied is None:
            return None
        if (until := checkpoint.shown_otherwise(*name, applied.floor, applied.rules)) is None:
            return None
        at = datetime.fromtimestamp(until / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        return (
            f"its rows of up to {at} are shown by other columns, keys, transforms or events than those since: "
            f"{SNAPSHOT_TABLE}, which shows all of them by those of now"
        )

    def _unequal(self, name: Name, checkpoint: Checkpoint | None) -> str | None:
        """A snapshot that begins behind the change has it."""
        place = checkpoint.unequal.get(".".join(name)) if checkpoint else None
        applied = self.handoff.snapshots.tables.get(name)
        if name in self.lacking and (applied is None or applied.letters < self.lacking[name]):
            return (
                "records of its topic are no change and were put aside (the lake's table "
                f"{names.DEAD_LETTERS} has them), so it may lack changes: {SNAPSHOT_TABLE}, which "
                "reads its rows from the source"
            )
        if place is None or (applied and tuple(applied.floor[:3]) > place):
            return None
        return (
            f"a record too large for Kafka was put aside (the topic {names.dead_letter_topic(self.lake.pipeline)} says "
            f"where): {SNAPSHOT_TABLE}, which reads such rows from the source"
        )

    def _lacking(self, name: Name, checkpoint: Checkpoint | None) -> str | None:
        """What the changes lack of a table that has nothing else: no snapshot brings it."""
        if loss := self.handoff.snapshots.loss(name, self._born(name)):
            return f"its changes are not all: {lost.told(loss)}"
        if name in self.lacking:
            told = f"records of its topic are none and were put aside (the lake's table {names.DEAD_LETTERS} has them)"
            return f"its changes may not be all: {told}"
        if checkpoint is None or ".".join(name) not in checkpoint.unequal:
            return None
        topic = names.dead_letter_topic(self.lake.pipeline)
        return f"its changes are not all: a record too large for Kafka was put aside (the topic {topic} says where)"

    def _fresh(self, last: TableStatus | None, stop: str | None, checkpoint: Checkpoint | None) -> int | None:
        if stop:
            return last.freshness_ms if last else None
        return checkpoint.ts_ms if checkpoint else None

    def _stopped(self) -> dict[Name, str]:
        stopped = self.merging.stopped.tables.items()
        waiting = {name: stop.reason for name, stop in stopped if stop.reason != KEPT}
        return {**waiting, **self.handoff.refused}

    def _next_try(self, name: Name) -> int | None:
        at = None if name in self.handoff.refused else self.merging.tries.left.get(name)
        return None if at is None else int(at * 1000)
