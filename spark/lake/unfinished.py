"""A snapshot that is not staged whole yet, as its folder tells of it: what it is to be, and what of it is done.

A table is read by its key in order, group of chunks by group, each a part of its own; so the missing chunks are those
behind the last part. Where a key column is masked that place is not written down, and such a table is read anew.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple

from pydantic import BaseModel

from contract import names
from contract.checkpoint import Checkpoint, Place
from contract.schema import TableSchema, Unfit
from spark.errors import LakeError
from spark.kafka.topic_places import TopicPlace
from spark.lake.lake import Lake
from spark.lake.letters import BEFORE_ALL
from spark.lake.manifests import MANIFEST, rows_folder
from spark.source.chunks import Boundary

PLAN = "plan.json"
BEAT = "beat.json"  # when it was last seen to be written, and by whom
BEATS = 3.0  # seconds from one to the next
LOOKS, AGAIN = 3, 0.5  # how often it is looked for a beat that is not there, and seconds from one look to the next
BEGINNING = (0, 0, 0)
WITHIN = 24 * 3600.0  # seconds since its last part, or its begin, in which a snapshot may be gone on with
SILENT = 20.0  # seconds without one after which nobody writes it any more


class Plan(BaseModel):
    """`tables`: as `db.table`, sorted. `began`: Unix seconds. `landing`: the identity of compaction's own place in
    Kafka, None before the first. `all`: of all tables that the pipeline had. `to_kafka`: whether the rows go there,
    too. `letters`: as of Applied; `seen`: as of Manifest. `place`: of the first run's P0, which no read is before."""

    tables: list[str]
    began: float
    landing: str | None
    to_kafka: bool = False
    all: bool = False
    letters: int = BEFORE_ALL
    seen: dict[str, TopicPlace] = {}
    place: Place = BEGINNING  # of an earlier version


class Part(BaseModel):
    """`to`: the boundary at its end; None where that is the table's, or is not told. `version`: of the staged rows'
    table that has it; None where an earlier version of Headrace staged it. `nulled`: for how many values the lake has a
    null. `at`: when it was noted, Unix seconds; 0 by an earlier version."""

    rows: int
    to: Boundary | None = None
    version: int | None = None
    nulled: int = 0
    at: float = 0.0


class Found(NamedTuple):
    """A table as the source has it. `made`: of Source.made."""

    schema: TableSchema
    made: str


class Progress(BaseModel):
    """Of one table. `shape`, `made`: as it was found. `unfit`: lake.unrepresentable, by which its rows are staged.
    `whole`: nothing is missing. `erasures`: as of Applied."""

    shape: TableSchema
    made: str
    p0: Checkpoint
    unfit: Unfit = "null"
    parts: list[Part] = []
    whole: bool = False
    erasures: int = BEFORE_ALL

    @property
    def name(self) -> str:
        return f"{self.shape.db}.{self.shape.table}"

    def same(self, found: Found) -> bool:
        """Whether the table is still what it was."""
        return (self.shape.shape(), self.made) == (found.schema.shape(), found.made)

    @property
    def rows(self) -> int:
        return sum(part.rows for part in self.parts)

    @property
    def nulled(self) -> int:
        return sum(part.nulled for part in self.parts)

    @property
    def version(self) -> int | None:
        """Of the staged rows' table that has the parts, and nothing else; None where there are none."""
        return self.parts[-1].version if self.parts else None

    @property
    def behind(self) -> Boundary | None:
        return self.parts[-1].to if self.parts else None

    @property
    def resumable(self) -> bool:
        return self.whole or not self.parts or self.parts[-1].to is not None


class Unfinished:
    """The folder of one."""

    def __init__(self, lake: Lake, id: str) -> None:
        self.lake, self.id, self.folder = lake, id, lake.at(names.STAGING, id)
        self._writer: Beating | None = None

    def beating(self) -> Beating:
        """Of who writes it from here on."""
        self._writer = Beating(self.lake, self.folder)
        return self._writer

    def claim(self) -> None:
        """The first beat, before anything else is there: without one the folder would be nobody's."""
        Beating(self.lake, self.folder).show()

    def prove_own(self) -> None:
        """Raises LakeError where another job has taken it over from who writes it here."""
        if self._writer:
            self._writer.prove()

    @property
    def plan(self) -> Plan | None:
        text = self.lake.text(f"{self.folder}/{PLAN}")
        return Plan.model_validate_json(text) if text else None

    def begin(self, plan: Plan) -> None:
        self.lake.write(f"{self.folder}/{PLAN}", plan.model_dump(mode="json"))

    def progress(self, db: str, table: str) -> Progress | None:
        text = self.lake.text(self._file(db, table))
        return Progress.model_validate_json(text) if text else None

    def last_part(self) -> float:
        """When the last part was noted, Unix seconds; 0 where none is, or that is not told."""
        notes = [
            name for name in self.lake.list(self.folder) if name.startswith("progress.") and name.endswith(".json")
        ]
        texts = [text for name in notes if (text := self.lake.text(f"{self.folder}/{name}"))]
        return max((part.at for text in texts for part in Progress.model_validate_json(text).parts), default=0.0)

    def over(self) -> bool:
        """Whether so long nothing was read of it that nobody is to go on with it. What was read holds for as long as
        the stream fits (resume.py), so a snapshot of days loses nothing by its length."""
        since, plan = time.time() - WITHIN, self.plan
        return plan is not None and plan.began < since and self.last_part() < since

    def note(self, progress: Progress) -> None:
        self.prove_own()
        self.lake.write(self._file(progress.shape.db, progress.shape.table), progress.model_dump(mode="json"))

    def has(self, db: str, table: str) -> bool:
        """Whether rows of the table are there, also such as no note tells of any more."""
        return self.lake.exists(self._file(db, table)) or self.lake.exists(rows_folder(self.folder, db, table))

    def forget(self, db: str, table: str) -> None:
        """The table is read anew; so its parts are nobody's. The note goes first: rows that it tells of are there."""
        self.prove_own()
        self.lake.delete(self._file(db, table))
        self.lake.delete(rows_folder(self.folder, db, table))
        self.lake.forget_logs()

    def leave_out(self, others: Iterable[Progress]) -> None:
        """Removes what was read of tables that are none of these: the manifest does not tell of it, and so no erasure
        would see it."""
        self.prove_own()
        kept = {rows_folder(self.folder, one.shape.db, one.shape.table) for one in others}
        for db in self.lake.list(self.folder):
            for table in self.lake.list(f"{self.folder}/{db}") if "." not in db else ():
                if (folder := f"{self.folder}/{db}/{table}") not in kept:
                    # First: a run that goes on would look there for the rows that it tells of.
                    self.lake.delete(f"{self.folder}/progress.{db}.{table}.json")
                    self.lake.delete(folder)

    def _file(self, db: str, table: str) -> str:
        # Beside the databases' folders, whose names have no dot.
        return f"{self.folder}/progress.{names.escape(db)}.{names.escape(table)}.json"

    def silent(self) -> bool:
        """Whether nobody writes it."""
        return silent(self.lake, self.folder)


def silent(lake: Lake, folder: str) -> bool:
    """Whether nobody writes the folder. Looks on for as long as it takes to tell: the time of a beat is another
    machine's, or is of before a clock was set."""
    first = lake.read(f"{folder}/{BEAT}") or {"at": 0.0}
    until = time.monotonic() + SILENT
    while first["at"] and time.monotonic() < until:  # 0 where its writer said that it ends
        time.sleep(1)
        if (lake.read(f"{folder}/{BEAT}") or first) != first:
            return False
    return True


def unfinished(lake: Lake) -> list[Unfinished]:
    """Those in the staging, the newest first."""
    found = (Unfinished(lake, name) for name in lake.list(lake.at(names.STAGING)))
    return [one for one in found if not lake.exists(f"{one.folder}/{MANIFEST}")][::-1]


class Beating:
    """Shows that somebody writes a staging, while the block runs. A failure shows as silence. One that was silent for
    long (its machine stood still) and finds another's beat, or none, beats no more."""

    def __init__(self, lake: Lake, folder: str) -> None:
        self.lake, self.file, self.by = lake, f"{folder}/{BEAT}", secrets.token_hex(4)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beats, daemon=True)

    def show(self) -> None:
        self._beat(time.time())

    def __enter__(self) -> Beating:
        self.show()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        with suppress(Exception):
            if self._own():
                self._beat(0.0)

    def prove(self) -> None:
        """Raises LakeError where another job has taken the folder over, or away."""
        if not self._own():
            raise LakeError(
                "this job stood still for so long that another one took it for dead, and has taken over its folder "
                f"{self.file.rpartition('/')[0]}, or removed it. What this one reads would be there twice: it ends, "
                "and the other goes on. Run this again only where none does"
            )

    def _own(self) -> bool:
        """Where a rename does not replace, its own beat is nowhere for a moment while it is written."""
        for _ in range(LOOKS - 1):
            with suppress(Exception):
                if found := self.lake.read(self.file):
                    return bool(found["by"] == self.by)
            time.sleep(AGAIN)
        return (self.lake.read(self.file) or {}).get("by") == self.by

    def _beats(self) -> None:
        while not self._ended.wait(BEATS):
            with suppress(Exception):
                if not self._own():
                    return
                self._beat(time.time())

    def _beat(self, at: float) -> None:
        self.lake.write(self.file, {"at": at, "by": self.by}, vouches=False)
