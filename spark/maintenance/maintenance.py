"""Looks after the lake's files, table by table: few instead of many, without rows that are gone, and none that nothing
needs any more (tidying.py). Before that, what the history is too old for is removed (retention.py).

In: the lake as the last compaction left it. Out: the same rows in every table, the newest reports of checks, and what
was done, in the job's report and in one small file of the lake. The lake is let go between two tables, so that a
compaction waits for one of them at most. What cannot be done now is held back, and said: of `_changes` nothing is
removed while a compaction that was killed may need it.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from contract import names, steps, table_names
from contract.checkpoint import Checkpoint
from contract.pipeline import Pipeline
from contract.pipeline_maintenance import STEPS
from contract.pipeline_topics import settings as topic_settings
from contract.status import LakeStatus, parse
from contract.topic_template import unescape
from spark.errors import LakeError
from spark.failpoints import reached
from spark.failures import message_of
from spark.history.retention import Retention
from spark.job import Facts, JobFailedError
from spark.kafka.broker import Broker
from spark.lake.delta_log import shorten
from spark.lake.lake import UNFINISHED, Lake
from spark.lake.owner import refuse_foreign
from spark.lake.slot import writing
from spark.lake.stopped import Name
from spark.landing.foreign import look
from spark.maintenance.tidying import files_of, join_small_files, vacuum
from spark.proof.reports import remove_old
from spark.proof.trimmed import trim
from spark.tables.changes_only import tidy
from spark.tables.refused import own_fault

RECORD = "_maintenance.json"  # what the last run did
BETWEEN = 1.5  # seconds for which the lake is let go between two tables: those who wait look every second
OWN = (
    names.SCHEMA_CHANGES,
    names.DEAD_LETTERS,
    names.REPAIRS,
    names.CHECKS,
    names.DIFFERENCES,
    names.CHANGES,
)  # written under the slot alone, as the tables are


def maintain(spark: SparkSession, pipeline: Pipeline, tables: list[str], steps: str = "") -> Facts:
    """All tables of the lake and its own, or those named. Raises LakeError, JobFailedError where a table failed."""
    wanted = [step.strip() for step in steps.split(",") if step.strip()] or list(STEPS)
    if unknown := set(wanted) - set(STEPS):
        raise LakeError(f"{', '.join(sorted(unknown))} is no step of a maintenance: there are {', '.join(STEPS)}")
    lake = Lake(spark, pipeline)
    try:
        if (text := lake.text(lake.status)) is None:
            return {"tables": {}, "held_back": ["the lake is not there yet: nothing was done"]}
        newest, last = Broker(pipeline).checkpoint(), parse(text)
        refuse_foreign(lake, last, newest)
        lake.prove_writable()
        return Maintaining(spark, lake, wanted, [*behind(pipeline, last, newest)]).run(tables)
    finally:
        lake.close()


def behind(pipeline: Pipeline, last: LakeStatus, newest: Checkpoint | None) -> Iterator[str]:
    """Says it where the lake is so far behind that Kafka may soon remove what it has not read."""
    if newest is None or last.checkpoint is None or newest.place <= last.checkpoint.place:
        return
    hours = (newest.ts_ms - last.checkpoint.ts_ms) / 3_600_000
    tables = [(table.db, table.table) for table in last.tables.values()]
    kept = [topic_settings(pipeline.topics, pipeline.kafka, *name).retention_hours for name in tables]
    least = min(kept, default=pipeline.kafka.retention_hours)
    if hours >= least / 2:
        yield (
            f"the lake is {hours:.0f} h behind the streamer, and Kafka keeps records for {least} h: "
            f"{steps.compaction(pipeline)}, and raise kafka.retention_hours if "
            "its pauses are meant to be as long"
        )


@dataclass
class Maintaining:
    """One run. `warnings`: for its report, also where it fails. `held_back`: what was not done, and why; `failed`:
    likewise, by table, of a file that cannot be read."""

    spark: SparkSession
    lake: Lake
    steps: Collection[str] = tuple(STEPS)
    warnings: list[str] = field(default_factory=list)
    held_back: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)

    def run(self, tables: Collection[str] = ()) -> Facts:
        """`tables`: as `db.table`; all, and the lake's own, where none is named. Raises LakeError, JobFailedError."""
        began, done = time.time(), dict[str, Facts]()
        chosen = list(self._chosen(tables))
        removed = self._end_history(tables)
        for name, path in chosen:
            with writing(self.lake, "maintain"):
                if self.lake.is_table(path):
                    done[name] = self._one(name, path)
            time.sleep(BETWEEN)
        if "vacuum" in self.steps and not tables:
            remove_old(self.lake)
            with writing(self.lake, "maintain"):
                tidy(self.lake, self._status())
        for name, count in removed.items():
            done.setdefault(name, {"freed_bytes": 0})["changes_removed"] = count
        facts: Facts = {
            "seconds": round(time.time() - began, 1),
            "freed_bytes": sum(one["freed_bytes"] for one in done.values()),
            "held_back": self.held_back,
            "warnings": self.warnings,
            "tables": done,
        }
        self.lake.write(self.lake.at(RECORD), {"at": int(began * 1000), **facts})
        reached("maintenance noted")
        if self.failed:
            raise JobFailedError("; ".join(self.failed.values()), {**facts, "failed": self.failed})
        return facts

    def _chosen(self, tables: Collection[str]) -> Iterator[tuple[str, str]]:
        known = self._tables()
        if unknown := set(tables) - {*known}:
            told = ", ".join(table_names.told(name, known) for name in sorted(unknown))
            raise LakeError(f"the lake has no table {told}: check the name, as db.table")
        for name, path in known.items():
            if name in tables or not tables:
                yield name, path
        for name in () if tables else OWN:
            yield name, self.lake.at(name)

    def _tables(self) -> dict[str, str]:
        """Where each is, also of those that the pipeline file has no more: rows that were erased are in their files."""
        found = {name: self.lake.table(table.db, table.table) for name, table in self._status().tables.items()}
        for db in sorted({*self._named(self.lake.root)} - {*names.FOLDERS}):
            for table in self._named(self.lake.at(db)):
                name, path = f"{unescape(db)}.{unescape(table)}", self.lake.at(db, table)
                if name not in found and self.lake.is_table(path):
                    found[name] = path
        return found

    def _named(self, folder: str) -> list[str]:
        """What is named as the pipeline names databases and tables: what is below a file no store has to say."""
        return [name for name in self.lake.list(folder) if unescape(name) is not None]

    def _end_history(self, tables: Collection[str]) -> dict[str, int]:
        """How many changes of which table went."""
        days = self.lake.pipeline.maintenance.history_days
        if "history" not in self.steps or days is None:
            return {}
        with writing(self.lake, "maintain"):
            if not self.lake.is_table(self.lake.changes) or not self._merged():
                return {}
            retention = Retention(self.spark, self.lake, self._status(), days)
            removed = retention.run(tables)
        self.held_back += retention.held_back
        return removed

    def _one(self, name: str, path: str) -> Facts:
        freed = 0
        try:
            before = files_of(self.spark, path)
            if "optimize" in self.steps:
                join_small_files(self.spark, path, self.lake.pipeline.maintenance)
            if "vacuum" in self.steps and (name != names.CHANGES or self._merged()):
                trim(self.spark, self.lake, name)
                shorten(self.spark, path)
                freed = vacuum(self.spark, self.lake, path, self.lake.pipeline.maintenance.vacuum_hours)
            after = files_of(self.spark, path)
        except LakeError:
            raise
        except Exception as error:  # of one table: the others are looked after all the same
            told = _told(self.lake, name, error)
            self.failed[name] = told or f"{name}: {message_of(error, self.lake.pipeline)}"
            return {"freed_bytes": freed}
        facts = {"files": before.count, "files_after": after.count, "bytes": before.bytes, "bytes_after": after.bytes}
        print(f"{name}: {before.count} file(s) before, {after.count} after, {freed:,} bytes freed", flush=True)
        return {**facts, "freed_bytes": freed}

    def _merged(self) -> bool:
        """Whether all of `_changes` is in the tables, or noted as waiting. Raises LakeError where somebody else wrote
        into it."""
        if self.lake.exists(self.lake.at(UNFINISHED)):
            told = (
                f"{names.CHANGES}: a compaction has not come to its end, so nothing is removed: "
                f"{steps.compaction(self.lake.pipeline)}, first"
            )
            self.held_back += [told] if told not in self.held_back else []
            return False
        look(self.lake, self._status())
        return True

    def _status(self) -> LakeStatus:
        return parse(self.lake.text(self.lake.status) or "")


def _told(lake: Lake, name: str, error: BaseException) -> str | None:
    """Of a table's own failure, what it is; None of another one, and of one of the lake's own tables."""
    if name in OWN:
        return None
    return own_fault(lake, _split(name), error)


def _split(name: str) -> Name:
    db, _, table = name.partition(".")
    return db, table
