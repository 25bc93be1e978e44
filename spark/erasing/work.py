"""An erasure, step by step. The caller has the lake's slot.

Before it the lake is compacted up to behind the place up to which is erased, and behind it again, so that the status
names the tables as they are then. What is to go is noted before anything goes: a run that dies in between is run again,
and ends as it would have.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from contract import names
from contract.checkpoint import Checkpoint
from contract.erased_key import ErasedKey
from contract.schema import TableSchema
from contract.status import parse
from spark.compaction import compaction
from spark.erasing import past
from spark.erasing.topics import Topics
from spark.erasing.traces import Traces
from spark.failpoints import reached
from spark.job import JobFailedError
from spark.kafka.broker import Broker
from spark.lake.applied import AppliedSnapshots
from spark.lake.erasures import Begun, Erased, Erasures
from spark.lake.lake import ASIDE, UNFINISHED, Lake
from spark.lake.manifests import manifests
from spark.lake.marked_rows import purged
from spark.lake.merged import followed
from spark.lake.unfinished import unfinished
from spark.landing.foreign import look
from spark.maintenance.tidying import files_of, vacuum
from spark.merging.parts import sweep
from spark.merging.tables import Merging
from spark.tables.merge import sequence
from spark.tables.schema import Schemas

AUDITS = (names.DIFFERENCES, names.REPAIRS)  # tables of findings: `db`, `tbl`, and the `key` of each


@dataclass(frozen=True)
class Found:
    """What there is to erase."""

    rows: int
    events: DataFrame | None
    letters: DataFrame | None
    audited: dict[str, DataFrame]

    def counts(self) -> dict[str, int]:
        own = {names.CHANGES: self.events, names.DEAD_LETTERS: self.letters, **self.audited}
        return {"table": self.rows, **{name: rows.count() for name, rows in own.items() if rows is not None}}


@dataclass
class Erasing:
    """One. `schema`: the table's present version; `until`: up to where; `hours`: for which files that went are kept, 0
    where nothing of before is."""

    spark: SparkSession
    lake: Lake
    broker: Broker
    schemas: Schemas
    schema: TableSchema
    keys: Sequence[ErasedKey]
    until: Checkpoint
    hours: float

    def __post_init__(self) -> None:
        shapes = self.schemas.all(self.schema.db, self.schema.table) or [self.schema]  # nothing was changed yet
        name, secret = (self.schema.db, self.schema.table), self.lake.pipeline.columns.key()
        applied = AppliedSnapshots(self.lake).tables.get(name)
        self.traces = Traces(
            self.spark, self.lake, self.schema, shapes, self.keys, self.until.place, secret,
            applied.shape if applied else None, self.until.shown_since(*name),
        )  # fmt: skip
        self.topics, self.erasures = Topics(self.lake.pipeline, self.broker), Erasures(self.lake)

    def run(self) -> Begun:
        """Gives what was removed. Raises LakeError."""
        self.compact()
        found = self._found()
        try:
            begun = self._begin(found)
            self.lake.write(self.lake.at(UNFINISHED), {"began": time.time()})  # rows are counted anew
            self._bury(found, begun)
            self._erase(found)
        finally:
            if found.events is not None:
                found.events.unpersist()
        # An earlier one may have left files; a row that was deleted long ago may be marked as gone in one.
        if any(begun.removed.values()) or not self.hours or self._marked():
            self._clean()
        else:
            self.compact()
        return begun

    def compact(self) -> None:
        with suppress(JobFailedError):  # a table is stopped: its rows and changes are erased like others
            compaction.run(self.spark, self.lake.pipeline, self.lake)

    def _found(self) -> Found:
        events = self.traces.events()
        audited = {name: rows for name in AUDITS if (rows := self.traces.audited(name)) is not None}
        events = events.persist() if events is not None else None
        return Found(self.traces.rows(), events, self.traces.letters(), audited)

    def _begin(self, found: Found) -> Begun:
        """The keys' texts of other versions are noted too, also as `_changes` has them."""
        hashes = sorted({self._hash(key.text) for key in self.keys})
        texts = {*self.traces.texts()}
        if found.events is not None:
            texts |= {row["key"] for row in found.events.select("key").distinct().collect()}
        topics = self.topics.of(self.traces.topics(), found.events, int(time.time() * 1000))
        begun = Begun(id=uuid.uuid4().hex, tbl=self.traces.name, hashes=hashes, removed=found.counts(), topics=topics)
        known = {"until": self.until.place, "until_ms": self.until.ts_ms, "gtid_set": self.until.sent}
        return self.erasures.begin(begun, [Erased(tbl=begun.tbl, hash=self._hash(text), **known) for text in texts])

    def _hash(self, text: str) -> str:
        return self.erasures.hash_of(self.traces.name, text)

    def _bury(self, found: Found, begun: Begun) -> None:
        """None for a key that has a change since: the tombstone would stand behind it."""
        compacted = [topic.name for topic in begun.topics if topic.tombstone]
        if not compacted:
            return
        # As records have them now: what a mask hides since is not told again for its own removal's sake.
        keys = self.spark.createDataFrame([(key.text,) for key in self.keys], "key string")
        graves = self.topics.graves(compacted, keys, found.events)
        if (changes := self.traces.table(names.CHANGES)) is not None:
            later = fn.col("_seq") > sequence([*self.until.place, -1, -1])
            since = changes.where((fn.col("tbl") == self.traces.name) & later)
            graves = graves.join(since.select("key").distinct(), "key", "left_anti")
        self.topics.bury(graves)

    def _erase(self, found: Found) -> None:
        if found.rows:
            self.traces.erase_rows()
        if found.events is not None and not found.events.isEmpty():
            self.traces.erase_events(found.events)
        if found.letters is not None and not found.letters.isEmpty():
            self.traces.erase_letters(found.letters)
        for name, rows in found.audited.items():
            if not rows.isEmpty():
                self.traces.erase_audited(name, rows)
        self.traces.erase_chunks()
        for staging in unfinished(self.lake):
            # A snapshot that began since is behind the erasure; its rows are looked through when they are taken in.
            if staging.has(self.schema.db, self.schema.table) and staging.silent():
                staging.forget(self.schema.db, self.schema.table)
        for put_aside in self._put_aside():
            self.lake.delete(put_aside)
        sweep(self.lake, at_once=True)  # rows of any table: nobody goes on with them, nor says of which they are
        self.lake.delete(self.lake.at(names.QUALITY, "unfinished.json"))  # where its chunks begin
        reached("staging erased")

    def _put_aside(self) -> list[str]:
        """The table of before a snapshot, which a hand-off that died behind its last step leaves."""
        name = self.schema.db, self.schema.table
        found = [
            one.rows(self.lake, each)
            for one in manifests(self.lake)
            for each in one.tables
            if (each.db, each.table) == name
        ]
        return [f"{rows}{ASIDE}" for rows in found] if self.lake.is_table(self.traces.path) else []

    def paths(self) -> list[str]:
        """The tables that may have had something."""
        own = [self.lake.at(name) for name in (names.CHANGES, names.DEAD_LETTERS, *AUDITS)]
        return [path for path in (self.traces.path, *own) if self.lake.is_table(path)]

    def _marked(self) -> bool:
        return any(files_of(self.spark, path).marked for path in self.paths())

    def _clean(self) -> None:
        """Takes it from the files, too."""
        paths = self.paths()
        for path in paths:
            purged(self.spark, path)
            reached("marked rows purged")
        anew = {} if self.hours else {path: past.begun_anew(self.spark, self.lake, path) for path in paths}
        if anew:
            self._follow()
        self.compact()
        for path, version in anew.items():
            before = min(version, followed(self.lake) or 0) if path == self.lake.changes else version
            past.forgotten(self.spark, self.lake, path, before)
        for path in paths:
            vacuum(self.spark, self.lake, path, self.hours)

    def _follow(self) -> None:
        """Gets the merge behind the new beginning of the log of `_changes`: at its next start Spark asks for what the
        last batch had, so that one is to begin there."""
        text = self.lake.text(self.lake.status)
        watch = partial(look, self.lake, parse(text) if text else None)
        Merging(self.spark, self.lake, self.schemas, watch, AppliedSnapshots(self.lake).floors()).run()


def facts_of(begun: Begun) -> dict[str, Any]:
    return {"keys": len(begun.hashes), **{place.lstrip("_"): count for place, count in begun.removed.items()}}
