"""Whether a snapshot goes on with what an earlier run of the same tables left, or begins again, and why.

One of all tables goes on with another one of all, whichever there were then: those that are gone are left out, and
those that are new are read, each from a P0 of its own. What the plan says of all of them (`letters`, `seen`) stays as
it was: it is of before the first read, and so it says too little of the new ones, never too much.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable

from contract import names
from contract.checkpoint import Checkpoint
from spark.kafka.topic_places import TopicPlaces
from spark.lake.applied import AppliedSnapshots
from spark.lake.growing import grown, moment_id, moment_of
from spark.lake.lake import Lake
from spark.lake.letters import state_of
from spark.lake.manifests import manifests
from spark.lake.unfinished import BEAT, Found, Plan, Progress, Unfinished, unfinished

ABANDONED = 3600.0  # seconds without a beat behind which what has no plan is swept


class Resume:
    """For one run. `now`: the newest checkpoint. `tell` gets a line of what is gone on with, or is not. `seen`: what
    was in Kafka before."""

    def __init__(
        self, lake: Lake, now: Checkpoint, tell: Callable[[str], None], seen: TopicPlaces | None = None
    ) -> None:
        self.lake, self.now, self.tell, self.seen = lake, now, tell, dict(seen or {})
        self.landing = landing(lake)

    def job(self, tables: list[str], all: bool = False) -> Unfinished:
        """The one to go on with, or a new one. `all`: as of Plan. Removes those that nobody goes on with any more."""
        for one in unfinished(self.lake):
            plan = one.plan
            if plan is None or one.over():
                _sweep(one)
            elif (sorted(tables) == plan.tables or (all and plan.all)) and one.silent():
                if (reason := self._passed_by(one, plan, tables)) is None:
                    return self._of(one, plan, tables)
                self.tell(f"the snapshot {one.id} did not end, and is begun again: {reason}")
                self.lake.delete(one.folder)
        return self._new(tables, all)

    def table(self, job: Unfinished, found: Found) -> Progress | None:
        """How far the table was read, where that still holds."""
        progress = job.progress(found.schema.db, found.schema.table)
        if progress is None or not progress.parts:
            return None
        if reason := self._stale(progress, found):
            self.tell(f"{progress.name}: is read again from its beginning: {reason}")
            job.forget(found.schema.db, found.schema.table)
            return None
        state = "was read whole" if progress.whole else f"goes on behind its first {progress.rows:,} rows"
        self.tell(f"{progress.name}: {state}")
        return progress

    def _of(self, one: Unfinished, plan: Plan, tables: list[str]) -> Unfinished:
        """The same one, of these tables."""
        if gone := sorted({*plan.tables} - {*tables}):
            self.tell(f"the snapshot {one.id} goes on without what is no table of it any more: {', '.join(gone)}")
        if plan.tables != sorted(tables):
            one.begin(plan.model_copy(update={"tables": sorted(tables)}))
        return one

    def _new(self, tables: list[str], all: bool) -> Unfinished:
        now = time.time()
        made = Unfinished(self.lake, self._id(now))
        letters, to_kafka = state_of(self.lake).number, self.lake.pipeline.snapshot.to_kafka
        facts = {"landing": self.landing, "to_kafka": to_kafka, "letters": letters, "seen": self.seen}
        made.claim()
        made.begin(Plan(tables=sorted(tables), all=all, began=now, place=self.now.place, **facts))
        return made

    def _id(self, now: float) -> str:
        """Greater than all before it, which are older. Two snapshots of one id would be of one job."""
        known = {applied.id for applied in AppliedSnapshots(self.lake).tables.values()}
        return grown(moment_id(now), max({*known, *self.lake.list(self.lake.at(names.STAGING))}, default=""))

    def _passed_by(self, one: Unfinished, plan: Plan, tables: list[str]) -> str | None:
        if plan.landing not in (None, self.landing):
            return "compaction's place in Kafka was moved away since, so changes may be missing there"
        if self.lake.pipeline.snapshot.to_kafka and not plan.to_kafka:
            return "snapshot.to_kafka was set since, and the rows that were read before are not in Kafka"
        applied = AppliedSnapshots(self.lake)
        newer = {f"{db}.{table}" for db, table in applied.tables if applied.has((db, table), one.id)}
        for manifest in manifests(self.lake):
            if manifest.id > one.id:
                newer |= set(manifest.counts)
        if known := newer & set(tables):
            return f"{', '.join(sorted(known))} has a newer snapshot"
        return None

    def _stale(self, progress: Progress, found: Found) -> str | None:
        p0, now = progress.p0, self.now
        # What the checkpoint has forgotten may have been any table's.
        since = max(filter(None, (now.since(found.schema.db, found.schema.table), now.forgotten)), default=None)
        if not progress.same(found):
            return "the table was altered since"
        if progress.unfit != self.lake.pipeline.lake.unrepresentable:
            return "lake.unrepresentable was changed since"
        if progress.version is None:
            return "an earlier version of Headrace staged it"
        if not progress.resumable:
            return "a masked key's values are not written down"
        if (p0.server_uuid, p0.epoch) != (now.server_uuid, now.epoch) or now.place < p0.place:
            return "the streamer has moved to another server or place since"
        if p0.rules != now.rules:
            return "columns, keys, transforms or events were changed since"
        if since is not None and since > p0.place:
            return "the streamer did not follow it for a time since"
        return None


def landing(lake: Lake) -> str | None:
    """The identity of compaction's own place in Kafka: another one begins at what Kafka has left."""
    text = lake.text(f"{lake.checkpoint('changes')}/metadata")
    return str(json.loads(text)["id"]) if text else None


def _sweep(one: Unfinished) -> bool:
    """Whether it was removed: nobody has written it for long."""
    beat = one.lake.read(f"{one.folder}/{BEAT}") or {"at": moment_of(one.id)}
    if time.time() - beat["at"] <= ABANDONED or not one.silent():
        return False
    one.lake.delete(one.folder)
    return True
