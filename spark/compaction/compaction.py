"""One compaction run: land, apply ready snapshots, merge, and say how the lake stands.

The commit log is read before the topics' ends are: everything up to that checkpoint is then in the lake, which
makes it the lake's. A failed run leaves nothing to mend; the next one goes on.
"""

from __future__ import annotations

import time
from typing import Any

from pyspark.sql import SparkSession

from contract.pipeline import Pipeline
from contract.status import LakeStatus, parse
from spark.compaction.report import facts_of, nulled, put_aside
from spark.compaction.standing import Standing
from spark.errors import LakeError
from spark.evolution.evolution import Evolution
from spark.evolution.renames import in_lake
from spark.failpoints import reached
from spark.kafka.broker import Broker
from spark.lake.applied import Applied, AppliedSnapshots
from spark.lake.lake import UNFINISHED, Lake
from spark.lake.merged import merged_to
from spark.lake.owner import refuse_foreign, refuse_staged
from spark.lake.slot import PATIENCE, writing
from spark.lake.stopped import Name
from spark.landing import ddl_topic
from spark.landing.changes import Landing
from spark.landing.foreign import (
    Found,
    Looked,
    foreign_writes,
    forget_lost,
    look,
    lost_of,
    since_last,
    since_looked,
)
from spark.landing.foreign_marks import marked
from spark.mending.apply import Mending
from spark.merging.ahead import foretold
from spark.merging.handoff import HandOff, apply_ready
from spark.merging.merged_changes import merged_changes
from spark.merging.parts import remove
from spark.merging.tables import Merging
from spark.tables.changes_only import forget_rows
from spark.tables.schema import Schemas

RUNS: dict[str, int] = {}  # by lake, the last run that this process brought to its end


def compact(spark: SparkSession, pipeline: Pipeline, patience: float = PATIENCE) -> dict[str, Any]:
    """Runs both steps for all of the pipeline's tables. `patience`: seconds for which it waits for another job. Raises
    LakeError, JobFailedError where a table is stopped."""
    lake = Lake(spark, pipeline)
    try:
        lake.prove_writable()
        with writing(lake, "compact", patience):
            return run(spark, pipeline, lake)
    finally:
        lake.close()


def run(spark: SparkSession, pipeline: Pipeline, lake: Lake) -> dict[str, Any]:
    """The same for who has the lake's slot."""
    return Compaction(spark, pipeline, lake).run()


class Compaction:
    """One run. `last`: how the lake stood behind the last one; `gone`: whether nothing tells that any more; `clean`:
    whether something does, and that one came to its end. `foreign`: what somebody else did to the tables since, as this
    run began. `floors`: where each table's snapshot begins."""

    def __init__(self, spark: SparkSession, pipeline: Pipeline, lake: Lake) -> None:
        self.began = time.time()
        self.spark, self.lake, self.broker = spark, lake, Broker(pipeline)
        self.checkpoint = self.broker.checkpoint()
        text = lake.text(lake.status)
        self.last = parse(text) if text else None
        self.gone = not text and (bool(AppliedSnapshots(lake).tables) or merged_to(lake) is not None)
        self.clean = not self.gone and not lake.exists(lake.at(UNFINISHED))
        self.landing = Landing(spark, pipeline, lake, self.look)
        self.foreign = Found()
        self.unlisted: tuple[int, ...] = ()
        self.floors: dict[Name, list[int]] = {}

    def run(self) -> dict[str, Any]:
        if not self.clean or (self.last and self.last.run != RUNS.get(self.lake.root)):
            self.lake.forget_logs()  # another process may have put another table, with another log, in a table's place
        self._refuse_others()
        if self.last:  # of a run that died as it cleared up: taken once more, a part would be told anew
            remove(self.lake, self.last.parts)
        self._land()
        letters, landed_at = self.landing.letters.count(), time.time()
        shapes = self.broker.schemas()
        evolution = Evolution(self.spark, self.lake, Schemas(shapes))
        handoff = self._hand_off(evolution)
        self._follow(evolution, handoff)
        schemas = in_lake(self.lake, shapes)
        merging = self._merge(schemas, evolution)
        mending = self._mend(merging, handoff, schemas)
        standing = Standing(
            self.spark, self.lake, merging, handoff, self.clean, evolution.stale(), self.landing.letters
        )
        status = self._end(standing, mending, letters)
        counts: dict[str, Any] = {
            "changes": self.landing.landed,
            "landing_seconds": round(landed_at - self.began, 1),
            "unreadable": put_aside(self.landing.letters, letters, self.last),
            "nulled": nulled(standing.nulled),
            "parts": {id: part.model_dump() for id, part in mending.done.items()},
        }
        return facts_of(status, counts, evolution.told)

    def _refuse_others(self) -> None:
        """Raises LakeError where the lake is another's, or somebody else changed its `_changes`."""
        refuse_foreign(self.lake, self.last, self.checkpoint)
        refuse_staged(self.lake, self.broker.checkpoint)
        if self.last:
            self.foreign = foreign_writes(self.lake, since_last(self.lake, self.last))
        elif self.gone:
            print("the lake's status is gone: what others did to its tables is not known, a check shows it", flush=True)
        self.unlisted = self.look().unlisted

    def look(self) -> Looked:
        """Of `_changes`. Raises LakeError where somebody else wrote into it, which the status then says to who reads
        the lake meanwhile."""
        try:
            return look(self.lake, self.last)
        except LakeError as error:
            if self.last and self.last.refused != str(error):
                self.last = self.last.model_copy(update={"refused": str(error), "written_at": int(time.time() * 1000)})
                self.lake.write(self.lake.status, self.last.model_dump(mode="json"))
            raise

    def _land(self) -> None:
        topics = self.broker.topics(self.landing.topics())
        ids, ends = self.broker.topic_ids(topics), self.broker.ends(topics, self.checkpoint)
        self.lake.write(self.lake.at(UNFINISHED), {"began": self.began})
        reached("run noted")
        self.landing.run(ends, ids, self.checkpoint)

    def _hand_off(self, evolution: Evolution) -> HandOff:
        """Applies what is staged, once it is known that nothing of the shapes and statements is lost."""
        evolution.refuse_lost_shapes()
        ddl_topic.prove(self.lake, self.broker, evolution, self.landing.seen)
        if self.last and (told := foretold(self.lake, self.last)):
            self.lake.write(self.lake.status, told.model_dump(mode="json"))
            self.last = told
            reached("snapshot foretold")
        merged = merged_changes(self.lake, self.look().version, self.last.changes_version if self.last else None)
        handoff = apply_ready(self.spark, self.lake, merged, self._doubted)
        forget_rows(handoff.snapshots)
        if self.checkpoint:
            handoff.snapshots.find_gaps(self.checkpoint, self.last.checkpoint if self.last else None)
        self.floors = handoff.snapshots.floors()
        return handoff

    def _doubted(self, name: Name, applied: Applied | None) -> str | None:
        """Why the table's own rows do not count: somebody else wrote it, and nothing has settled that yet. `applied`:
        the snapshot of which this run has made it already, which settled what was before."""
        if applied:
            return foreign_writes(self.lake, {name: applied.version}).told.get(name)
        table = self.last.tables.get(".".join(name)) if self.last else None
        if table and table.foreign:
            return table.foreign.reason
        return (self.foreign.told | foreign_writes(self.lake, since_looked(self.foreign, {}, [name])).told).get(name)

    def _follow(self, evolution: Evolution, handoff: HandOff) -> None:
        """What the source's statements did to the tables, and what somebody else did to those of the lake."""
        others = self.checkpoint.other_rules if self.checkpoint else ()
        shapes = {name: applied.shape for name, applied in handoff.snapshots.tables.items()}
        statements, read = self.broker.ddl(evolution.read)
        # The hand-off may have taken long: a table may be new since, and its statement does not come again.
        known = Schemas(self.broker.schemas()) if statements else None
        if self.checkpoint and (said := lost_of(self.lake, self.unlisted)):
            evolution.lack(said, self.checkpoint)
        until = self.checkpoint.place if self.checkpoint else None
        evolution.follow(statements, read, self.floors, others, shapes, known, until)
        self.foreign = self.foreign.without(handoff.applied)
        forget_lost(handoff.snapshots, self.foreign.gone)
        for line in (*self.foreign.told.values(), *evolution.told):
            print(line, flush=True)

    def _merge(self, schemas: Schemas, evolution: Evolution) -> Merging:
        dropped = {name: stale.since for name, stale in evolution.stale().items() if stale.kind == "drop"}
        merging = Merging(self.spark, self.lake, schemas, self.look, self.floors, dropped)
        if not (self.clean and self.last and self.last.changes_version == self.lake.version(self.lake.changes)):
            merging.run()
        merging.retry()
        return merging

    def _mend(self, merging: Merging, handoff: HandOff, schemas: Schemas) -> Mending:
        """Takes in the parts that repairs and backfills staged."""
        stopped = [*merging.stopped.tables, *handoff.refused]
        before = self.last.tables.values() if self.last else ()
        foreign = {*self.foreign.told, *((one.db, one.table) for one in before if one.foreign)}
        mending = Mending(self.spark, self.lake, schemas, handoff.snapshots, stopped, merging.looked.version, foreign)
        mending.run(self.checkpoint)
        merging.emptied |= {*self.foreign.told} | mending.tables  # nobody counted their rows
        return mending

    def _end(self, standing: Standing, mending: Mending, letters: int) -> LakeStatus:
        """Says how the lake stands; what the run was known by goes behind that."""
        more = {"unreadable": letters, "parts": mending.told(self.last.parts if self.last else {})}
        meanwhile = self._meanwhile(standing)
        status = standing.status(self.checkpoint, self.began, meanwhile.versions).model_copy(update=more)
        found = self.foreign.without(mending.whole).told | meanwhile.told
        status = marked(status, self.lake, self.last, found, mending.whole)
        self.lake.write(self.lake.status, status.model_dump(mode="json"))
        RUNS[self.lake.root] = status.run
        reached("status written")
        mending.clear()
        self.lake.delete(self.lake.at(UNFINISHED))
        reached("run ended")
        return status

    def _meanwhile(self, standing: Standing) -> Found:
        """What somebody else did to the tables since the run began, told; the status is of what was looked at here."""
        handoff = standing.handoff
        applied = {name: handoff.snapshots.tables[name] for name in handoff.applied}
        names = standing.names(self.checkpoint)
        looked = names if self.last else [*applied]  # without a status nobody knows more
        since = dict.fromkeys(names) | since_looked(self.foreign, applied, looked)
        found = foreign_writes(self.lake, since, self.foreign.versions.keys() - standing.touched())
        standing.merging.emptied |= {*found.told}
        forget_lost(handoff.snapshots, found.gone)
        for line in found.told.values():
            print(line, flush=True)
        return found
