"""A part of a table that is made anew: its rows as they were at P0, staged until a compaction puts them in their place.

A folder of `_parts` each: the rows, the keys where the part is a list of them, and the manifest, which is written last.
Without that nobody uses the folder.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import UTC, datetime

from pydantic import BaseModel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from contract import names
from contract.checkpoint import Checkpoint
from contract.counted import counted
from contract.mended import SOURCE
from contract.schema import TableSchema
from contract.sequence import file_number
from spark.errors import LakeError, TableStoppedError
from spark.failpoints import reached
from spark.lake.broken import broken_within
from spark.lake.growing import moment_id
from spark.lake.lake import Lake
from spark.lake.letters import BEFORE_ALL
from spark.lake.unfinished import BEAT, silent
from spark.tables.rows import keys_of

MANIFEST = "part.json"
BEGUN = "begun.json"  # there from before its rows are read
TAKEN = "taken.json"  # there where the table has its rows, and the run died then
ABANDONED = 60.0  # seconds without a beat behind which nobody writes a folder any more
MYSQL, CHANGES, KAFKA = SOURCE, "changes", "kafka"  # where the rows come from


@dataclass(frozen=True)
class Chosen:
    """Which rows of a table. `told`: in words. `where`: Spark's SQL over the key's columns, and `within` the same in
    the source's; `keys`: the keys' texts, as records have them, besides. With none of them: all rows."""

    told: str
    where: str | None = None
    within: str | None = None
    keys: tuple[str, ...] | None = None

    @property
    def all(self) -> bool:
        return self.where is None and self.keys is None


class Part(BaseModel):
    """`job`: repair or backfill, started by `by`. `source`: where the rows come from. `shape`: by which the table was
    shown. `where`, `keyed`: which rows, as of Chosen. `texts`: the rows are staged as records have them, else typed,
    each with its `_seq`. `p1`: a GTID set; once the lake has it, every change of the rows is in `_changes`. `count`: of
    the staged rows; None where an earlier version of Headrace staged them. `snapshot`: the one of whose rows, and the
    changes since, they were made, empty where the table had none; None where they were read, or that version staged
    them. `erasures`: the number of
    the last one when their reading began."""

    id: str
    pipeline: str
    job: str
    by: str
    source: str
    shape: TableSchema
    told: str
    where: str | None
    keyed: bool
    texts: bool
    p0: Checkpoint
    p1: str
    count: int | None = None
    snapshot: str | None = None
    erasures: int = BEFORE_ALL

    @property
    def name(self) -> tuple[str, str]:
        return self.shape.db, self.shape.table

    @property
    def all(self) -> bool:
        return self.where is None and not self.keyed

    @property
    def sequence(self) -> list[int]:
        """Behind everything before P0, before everything after it."""
        return [self.p0.epoch, file_number(self.p0.file), self.p0.pos, -1, -1]

    def folder(self, lake: Lake) -> str:
        return lake.at(names.PARTS, self.id)

    def rows(self, spark: SparkSession, lake: Lake) -> DataFrame:
        """As they were staged, all of them: of a row that is missing here the lake's would go. Raises
        TableStoppedError."""
        folder = f"{self.folder(lake)}/rows"
        if not any(name.endswith(".parquet") for name in lake.list(folder)):
            raise TableStoppedError(self._lost(f"nothing is in {folder}"))
        rows = spark.read.parquet(folder)
        if self.count is not None and (found := rows.count()) != self.count:
            raise TableStoppedError(
                f"{'.'.join(self.name)}: the {self.job} staged {counted(self.count, 'row')}, and "
                f"{self.folder(lake)}/rows has {found:,}: something removed the others. The table is as it was; "
                f"run the {self.job} again"
            )
        return rows

    def inside(self, spark: SparkSession, lake: Lake) -> Callable[[DataFrame], DataFrame]:
        """Takes the part's rows out of rows that have the key's columns."""
        if self.keyed and not lake.exists(keys_file(self.folder(lake))):
            raise TableStoppedError(self._lost(f"there is no {keys_file(self.folder(lake))}"))
        keys = keys_of(texts_of(spark, self.folder(lake)), self.shape) if self.keyed else None
        return lambda rows: within(rows, self.where, keys)

    def broken(self, lake: Lake, error: BaseException) -> str | None:
        """Why it cannot be taken; None where the failure is another than a file of it that cannot be read."""
        file = broken_within(self.folder(lake), error)
        return None if file is None else self._lost(f"{file} is missing or cannot be read")

    def _lost(self, what: str) -> str:
        return (
            f"{'.'.join(self.name)}: the rows that the {self.job} staged are not whole: {what}. The table is as it "
            f"was; run the {self.job} again"
        )


def within(rows: DataFrame, where: str | None, keys: DataFrame | None) -> DataFrame:
    """`keys`: typed; neither: all rows."""
    if keys is None:
        return rows.where(where) if where else rows
    named = rows.join(keys, keys.columns, "left_semi")
    return rows.where(where).unionByName(named.where(f"not ({where})")) if where else named


def texts_of(spark: SparkSession, folder: str) -> DataFrame:
    return spark.read.schema("key string").json(keys_file(folder))


def keys_file(folder: str) -> str:
    return f"{folder}/keys.json"


def write_keys(lake: Lake, folder: str, keys: tuple[str, ...]) -> None:
    lake.write(keys_file(folder), [{"key": key} for key in keys])


def new_id() -> str:
    """Sorts by time, where the clock was not set back."""
    return f"{moment_id(time.time())}-{secrets.token_hex(3)}"


def put(lake: Lake, part: Part) -> None:
    """Behind its rows: from here on a compaction uses them. Raises LakeError where they were swept meanwhile, so that
    those that were written since are not all."""
    if not lake.exists(f"{part.folder(lake)}/{BEAT}"):
        raise LakeError(
            f"this job stood still for so long that it was taken for dead, and its folder {part.folder(lake)} was "
            f"removed. Nothing was staged of it: run the {part.job} again"
        )
    lake.write(f"{part.folder(lake)}/{MANIFEST}", part.model_dump(mode="json"))


def parts(lake: Lake) -> list[Part]:
    """Those that are staged whole, the oldest first: by their P0, since ids are of a clock that may go back."""
    texts = [lake.text(lake.at(names.PARTS, name, MANIFEST)) for name in lake.list(lake.at(names.PARTS))]
    found = [Part.model_validate_json(text) for text in texts if text]
    landed = [one.model_copy(update={"shape": lake.pipeline.lake.lands(one.shape)}) for one in found]
    return sorted(landed, key=lambda part: (part.p0.place, part.id))


def was_taken(lake: Lake, part: Part) -> bool:
    return lake.exists(f"{part.folder(lake)}/{TAKEN}")


def write_taken(lake: Lake, part: Part) -> None:
    lake.write(f"{part.folder(lake)}/{TAKEN}", {"at": time.time()})


def begin(lake: Lake, part: Part) -> None:
    """Says, before its rows are read, from where on its table's changes are needed."""
    lake.write(f"{part.folder(lake)}/{BEGUN}", {"ts_ms": part.p0.ts_ms})


def begun(lake: Lake) -> list[tuple[str, datetime]]:
    """Those whose rows are being read: their ids, and the time of P0, from which on they need changes."""
    found = [(name, lake.at(names.PARTS, name)) for name in lake.list(lake.at(names.PARTS))]
    times = [(name, folder, lake.read(f"{folder}/{BEGUN}")) for name, folder in found]
    return [
        (name, datetime.fromtimestamp(at["ts_ms"] / 1000, UTC))
        for name, folder, at in times
        if at and not (lake.exists(f"{folder}/{MANIFEST}") or silent(lake, folder))
    ]


def remove(lake: Lake, ids: Collection[str]) -> None:
    """The manifests first: a folder that is half gone is nobody's part."""
    for name in lake.list(lake.at(names.PARTS)):
        if name in ids:
            folder = lake.at(names.PARTS, name)
            lake.delete(f"{folder}/{MANIFEST}")
            reached("part closed")
            lake.delete(folder)
            reached("part removed")


def sweep(lake: Lake, at_once: bool = False) -> None:
    """Removes what was left by those that did not end: nobody writes it, and its last beat is not of now, which is no
    matter `at_once`."""
    for name in lake.list(lake.at(names.PARTS)):
        folder = lake.at(names.PARTS, name)
        beat = lake.read(f"{folder}/{BEAT}") or {"at": 0.0}
        old = at_once or time.time() - beat["at"] > ABANDONED  # or the clock was set forward, and somebody writes it
        if old and not lake.exists(f"{folder}/{MANIFEST}") and silent(lake, folder):
            lake.delete(folder)


def wire_text(key: dict[str, object]) -> str:
    return json.dumps(key, ensure_ascii=False, separators=(",", ":"))


def empty(rows: DataFrame) -> DataFrame:
    return rows.where(fn.lit(False))
