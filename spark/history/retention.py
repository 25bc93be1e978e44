"""Which changes of `_changes` go, by `maintenance.history_days`: whole days of a table, and only what nothing needs.

Needed are, whatever their age: the changes that a stopped or excluded table waits for, those behind the beginning of a
snapshot that is not applied yet, or of a repair or backfill that reads, those that an unfinished check compares by,
and all since two days before the lake's own place, since a streamer that falls back behind a failover sends them again
and they are known by these. For the same reason nothing goes while the streamer, or the lake, is further behind than
the history is long. And the age counts from the lake's own day where that is before today: a machine's clock may be
ahead.

First it is noted that the history begins later (contract/kept_history.py), then the rows go. Days are of commit times,
which may go back: what is needed is known by its place, and a change that came behind one that stays stays with it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from typing import NamedTuple

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from contract import kept_history
from contract.kept_history import Kept, KeptHistory
from contract.sequence import SPARK_TYPE, Sequence
from contract.status import LakeStatus
from spark.failpoints import reached
from spark.history.going import Going, going
from spark.kafka.epochs import DAYS
from spark.lake.applied import AppliedSnapshots
from spark.lake.lake import Lake
from spark.lake.manifests import manifests
from spark.lake.stopped import StoppedTables
from spark.lake.unfinished import Unfinished, unfinished
from spark.merging.parts import begun, parts
from spark.proof.kept import unfinished_since

UNCHECKED = "a check that has not come to its end compares by them"
MARGIN = timedelta(2 * DAYS)  # commit times of one transaction may differ by DAYS, and do not only grow


class Place(NamedTuple):
    """A `_seq` of a table."""

    table: str
    seq: Sequence


class Need(NamedTuple):
    """From `day` on the changes are needed, as `why` says."""

    day: date
    why: str


@dataclass
class Retention:
    """One run's. `status`: as the last compaction left it, with nothing unmerged. `held_back`: in words, of the tables
    that keep more than `days`."""

    spark: SparkSession
    lake: Lake
    status: LakeStatus
    days: int
    held_back: list[str] = field(default_factory=list)

    def run(self, tables: Collection[str] = ()) -> dict[str, int]:
        """How many changes of which tables went. `tables`: of these alone, as `db.table`; empty: of all."""
        cuts = self._cuts(tables)
        if not cuts:
            return {}
        known = history_of(self.lake)
        old, found = going(self._changes(), cuts, today(), known)
        kept = {table: _kept(known, table, cuts[table], more) for table, more in found.items()}
        noted = KeptHistory(tables={**known.tables, **kept})
        self.lake.write(self.lake.at(kept_history.FILE), noted.model_dump(mode="json"))
        reached("history begins later")
        DeltaTable.forPath(self.spark, self.lake.changes).delete(old)
        reached("history removed")
        return {table: more.all for table, more in found.items()}

    def _cuts(self, tables: Collection[str]) -> dict[str, date]:
        """The day before which the changes of each table go, where there are any."""
        oldest = {
            row["tbl"]: row["day"]
            for row in self._changes().groupBy("tbl").agg(fn.min("day").alias("day")).collect()
            if row["day"] < self._by_clock and (row["tbl"] in tables or not tables)
        }
        cuts, needs = dict[str, date](), self._needs(oldest) if oldest else {}
        for table, day in sorted(oldest.items()):
            need = min(needs.get(table, []), default=None)
            cut = min(self._wanted, need.day) if need else self._wanted
            if need and need.day < self._by_clock:
                kept = f"changes since {cut}" if cut > date.min else "all changes"
                self.held_back.append(f"{table}: {kept} are kept, not since {self._by_clock} alone: {need.why}")
            if day < cut:
                cuts[table] = cut
        return cuts

    @property
    def _by_clock(self) -> date:
        return today() - timedelta(self.days)

    @property
    def _wanted(self) -> date:
        """Whatever the clock of this machine says, the source's has come so far."""
        at = self.status.checkpoint
        known = at is not None and at.ts_ms
        return min(self._by_clock, _day(known / 1000) - timedelta(self.days)) if known else self._by_clock

    def _needs(self, tables: Collection[str]) -> dict[str, list[Need]]:
        common = [*self._for_all()]
        needs = {table: [*common] for table in tables}
        found = [*self._places(), *self._begun(tables)]
        places = [(Place(table, Sequence(*seq)), why) for table, seq, why in found if table in needs]
        days = self._since({place for place, _ in places})
        for place, why in places:
            if day := days.get(place):
                needs[place.table].append(Need(day, why))
        for one in self._under_way:
            plan = one.plan
            for table in plan.tables if plan else ():
                if plan and table in needs:
                    needs[table].append(Need(_day(plan.began) - timedelta(DAYS), f"the snapshot {one.id} is under way"))
        return needs

    @cached_property
    def _under_way(self) -> list[Unfinished]:
        """The snapshots with which a later run may go on."""
        return [one for one in unfinished(self.lake) if not (one.over() and one.silent())]

    def _for_all(self) -> Iterator[Need]:
        at = self.status.checkpoint
        if at is None or not at.ts_ms:
            yield Need(date.min, "the lake has no place in the source's changes yet")
        else:
            place = _day(at.ts_ms / 1000)
            yield Need(place - MARGIN, f"the lake is complete up to {place}, and what is behind it may come again")
        if (low := unfinished_since(self.lake)) is not None:
            yield Need(_day(low.ts_ms / 1000) - timedelta(DAYS), UNCHECKED)
        for id, began in begun(self.lake):
            yield Need(began.date() - timedelta(DAYS), f"rows for a repair or backfill are being read ({id})")

    def _places(self) -> Iterator[tuple[str, list[int], str]]:
        """From where on changes of a table are needed, as a `_seq`."""
        for name, stop in StoppedTables(self.lake).tables.items():
            if self.lake.pipeline.changes_only(*name):  # its changes wait for nothing, and may go by their age
                continue
            yield ".".join(name), stop.since, f"it waits for them: {stop.reason}"
        for part in parts(self.lake):
            yield ".".join(part.name), part.sequence, f"the {part.job} {part.id} is not in its place yet"
        applied = AppliedSnapshots(self.lake)
        for manifest in manifests(self.lake):
            for schema in manifest.tables:
                if not applied.has((schema.db, schema.table), manifest.id):
                    why = f"the snapshot {manifest.id} is not applied yet"
                    yield f"{schema.db}.{schema.table}", manifest.sequence(schema), why

    def _begun(self, tables: Collection[str]) -> Iterator[tuple[str, list[int], str]]:
        """The same, of what is under way."""
        low = unfinished_since(self.lake)
        for table in tables:
            if low is not None:
                yield table, [*low.place, -1, -1], UNCHECKED
            known = self.status.tables.get(table)
            for one in self._under_way if known else ():
                if known and (progress := one.progress(known.db, known.table)):
                    yield table, [*progress.p0.place, -1, -1], f"the snapshot {one.id} is under way"

    def _since(self, places: Collection[Place]) -> dict[Place, date]:
        """Of each place the first day of the table's changes from there on; nothing where there are none. One question
        for all of them: of a thousand tables each would be a job."""
        if not places:
            return {}
        asked = self.spark.createDataFrame([*places], f"_tbl string, _place {SPARK_TYPE}")
        mine = self._changes().where(fn.col("tbl").isin(sorted({place.table for place in places})))
        behind = (fn.col("tbl") == fn.col("_tbl")) & (fn.col("_seq") >= fn.col("_place"))
        found = mine.join(fn.broadcast(asked), behind).groupBy("_tbl", "_place").agg(fn.min("day").alias("day"))
        return {Place(row["_tbl"], Sequence(*row["_place"])): row["day"] for row in found.collect()}

    def _changes(self) -> DataFrame:
        return self.spark.read.format("delta").load(self.lake.changes)


def today() -> date:
    """Days of changes are of UTC."""
    return datetime.now(UTC).date()


def history_of(lake: Lake) -> KeptHistory:
    return kept_history.parse(lake.text(lake.at(kept_history.FILE)))


def _kept(known: KeptHistory, table: str, cut: date, more: Going) -> Kept:
    """What a run that died had noted as removed already is not counted again."""
    before = known.tables.get(table, Kept(begins=0, removed=0))
    begins = int(datetime(cut.year, cut.month, cut.day, tzinfo=UTC).timestamp() * 1000)
    gone = max(before.gone or (), more.last)
    return Kept(begins=max(begins, before.begins), removed=before.removed + more.new, gone=gone)


def _day(seconds: float) -> date:
    return datetime.fromtimestamp(seconds, UTC).date()
