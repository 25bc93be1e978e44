"""The lake's status: up to where it is complete, and how each table stands. Written by every compaction run,
readable without Spark.

`read(pipeline)` is the reader. The file is replaced as a whole, so a reader sees one run's status or the next's.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict

from contract import gtids, names
from contract.checkpoint import Checkpoint
from contract.pipeline import Pipeline

FORMAT = 1
FILE = "_status.json"
WAY_BACK = "Remove it: the next compaction writes it anew, and counts the rows anew"  # of a broken one
PARTS, PARTS_MS = 50, 7 * 24 * 3600 * 1000


class StatusFormatError(ValueError):
    """A status written by a newer version of Headrace, or a lake whose status cannot be read from here."""


class StatusElsewhereError(StatusFormatError):
    """The status of a lake that is neither in a folder nor on S3."""


class Record(BaseModel):
    model_config = ConfigDict(frozen=True)


class AppliedSnapshot(Record):
    """`p0`, `p1`: the GTID sets before the first and after the last chunk. `applied_at`: Unix ms UTC."""

    id: str
    p0: str
    p1: str
    rows: int
    applied_at: int


class Stale(Record):
    """Values of the table's rows may have changed in the source without a row event, by the statement at `since`, the
    first of maybe more: epoch, number of the binlog file, position. `ts_ms`: its time, Unix ms UTC; 0 where that is not
    known. `gtid`: where there are GTIDs. `kind`: as the DDL topic has it. `reason`: what happened and what mends it."""

    kind: str
    since: tuple[int, int, int]
    ts_ms: int
    gtid: str | None = None
    reason: str


class Foreign(Record):
    """Somebody else than Headrace's jobs wrote the table, which a run found at `at`, Unix ms UTC. `reason`: what was
    done, and what mends it. `run`: the first whose lake has it, 0 from a version that did not say; `check`: the number
    of the newest check then; `snapshot`: the id of the table's, None where it had none."""

    reason: str
    at: int
    run: int = 0
    check: int = 0
    snapshot: str | None = None


class TableStatus(Record):
    """`rows`: live rows. `changes`: landed and merged since the first run; `changes_last_run` in the last one.
    `freshness_ms`: source time up to which the table is complete, Unix ms UTC. `version`: the Delta version of
    the table that goes with the status's `changes_version`. `stopped`: why the table is no longer merged;
    `next_try_ms`: when that is tried next, Unix ms UTC, where the last run left it out, since a try takes long.
    `unequal`: why it cannot be what the source has, until it gets another snapshot. `stale`: why it may not be, until
    then. `outdated`: why a part of its rows is shown by rules that hold no more, until then, too. `unread`: why rows
    that it had in the source before it was followed are missing, until then. `ahead`: why some of its rows are of
    later than the checkpoint, until that has come to where the snapshot ended. `foreign`: why nobody knows its rows,
    until a snapshot, or a check of all of it that finds them equal. `nulled`: for how many values, since the
    first run, the lake has a null because its types cannot hold them; those of a run that was killed, of a repair and
    of a backfill are not counted. `changes_only`: the lake keeps the table's changes and has no rows of it, so that
    nothing is said of those; `stopped` is then why its changes cannot be shown, `unequal` why they are not all."""

    db: str
    table: str
    rows: int
    changes: int
    changes_last_run: int = 0
    freshness_ms: int | None = None
    version: int | None = None
    snapshot: AppliedSnapshot | None = None
    stopped: str | None = None
    next_try_ms: int | None = None
    unequal: str | None = None
    stale: Stale | None = None
    outdated: str | None = None
    unread: str | None = None
    ahead: str | None = None
    foreign: Foreign | None = None
    nulled: int = 0
    changes_only: bool = False

    def doubts(self) -> list[str]:
        """Why the rows may not be what the source has at the checkpoint; empty where nothing speaks against it."""
        stale, foreign = (mark.reason if mark else None for mark in (self.stale, self.foreign))
        own = self.stopped, self.unequal, stale, self.outdated, self.unread, self.ahead, foreign
        return [told for told in own if told]

    def no_past(self) -> str | None:
        """Why the table as of a time cannot be told from its rows and its changes; begins with a verb."""
        if self.stopped:
            return f"is stopped, so that it is not what its changes say: {self.stopped}"
        return f"has no past for now: {self.ahead}" if self.ahead else None


class PartStatus(Record):
    """What became of a part of a table that a repair or a backfill (`job`) staged: `rows` that were not as they are to
    be, by the kind of difference, or why it was `refused`. `at`: Unix ms UTC."""

    db: str
    table: str
    job: str
    at: int
    rows: dict[str, int] = {}
    refused: str | None = None


class Formatted(Record):
    """What a status of any format has."""

    format: int = FORMAT
    pipeline: str


class LakeStatus(Formatted):
    """`checkpoint`: the lake holds everything up to it (None: nothing was released yet). `changes_version`:
    the Delta version of `_changes` that the tables' versions are merged from. `unreadable`: records that are no change
    and were put aside since the first run. `parts`: what became of them, by their ids; of the last PARTS, and of all
    that were staged or taken in the last PARTS_MS. `refused`: why nothing is merged any more, and no table has a past
    that is known, until that is mended. `written_at`: Unix ms UTC."""

    run: int
    written_at: int
    seconds: float
    checkpoint: Checkpoint | None
    changes_version: int | None
    unreadable: int = 0
    refused: str | None = None
    tables: dict[str, TableStatus]
    parts: dict[str, PartStatus] = {}

    def covers(self, gtid_set: str) -> bool:
        """Whether every transaction of the GTID set is in the lake."""
        return covered(self.checkpoint, gtid_set)


def covered(checkpoint: Checkpoint | None, gtid_set: str) -> bool:
    """Whether every transaction of the GTID set is in a lake that is complete up to the checkpoint."""
    return checkpoint.covers(gtid_set) if checkpoint else not gtids.parse(gtid_set)


def parse(text: str) -> LakeStatus:
    """Raises StatusFormatError for a newer format and for what is no status."""
    try:
        found = Formatted.model_validate_json(text)
        if found.format <= FORMAT:
            return LakeStatus.model_validate_json(text)
    except ValueError:
        raise StatusFormatError(
            f"the file {FILE} of the lake is {'broken' if text.strip() else 'empty'}, as a power cut may leave it. "
            + WAY_BACK
        ) from None
    raise StatusFormatError(
        f"the lake's status of {found.pipeline} has format {found.format}, this version reads up to {FORMAT}: upgrade "
        "Headrace"
    )


def read(pipeline: Pipeline) -> LakeStatus | None:
    """The status of the pipeline's lake; None where no compaction has run yet.

    Raises StatusFormatError for a newer format, StatusElsewhereError for a lake that is no folder of this machine,
    OSError where the file cannot be read.
    """
    root = names.lake_root(pipeline)
    if "://" in root:
        raise StatusElsewhereError(
            f"the lake {root} is neither in a folder nor on S3, so that its status is read by the Spark jobs alone: "
            "the commands run all of them (`headrace snapshot --compact`, `repair --compact`); Airflow's waits and "
            "page, and `headrace sql`, cannot tell how it stands"
        )
    try:
        return parse((Path(root) / FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
