"""What a check found of a table, by the source's answer and the lake's totals; and its line of the report."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from contract import pipeline_transforms
from contract.checkpoint import Checkpoint
from contract.pipeline import Pipeline
from contract.pipeline_events import CHANGES_ROWS, dropped
from contract.status import TableStatus
from contract.steps import CHECK_SHOWS, SNAPSHOT_TABLE
from spark.errors import TableAlteredError, TableError, TableGoneError
from spark.proof.answer import Answer, moment
from spark.proof.boundary import Match, match, relevant
from spark.proof.checksum import Total
from spark.proof.rewind import Step
from spark.proof.unplaced import UNPLACED

LACKS = f"the lake does not have the table: {SNAPSHOT_TABLE}"
SETTLED = "This check found all of its rows equal: the next compaction takes this mark away"
ALTERED_EACH_TIME = "it could not be compared: it was altered while it was read, again and again: verify again"
GONE = "not compared: dropped meanwhile, or renamed: the source does not have it any more"


@dataclass(frozen=True)
class Finding:
    """The lake's side of an answer. `lake`: None where it could not be read. `boundary`: the GTID of the transaction
    behind which the last of its reads is equal (empty: L itself); None where one is not. `now`: what the source would
    have for the table as the lake has it now; None of a sample. `wrong`: the chunks that differ. `doubts`: what speaks
    against the table though it is equal. `unplaced`: whether rows that somebody else wrote are of no place that a
    change can have (unplaced.py). `nulled`: for how many values that were merged the lake has a null, which counts as
    equal."""

    lake: Total | None
    boundary: str | None
    now: int | None
    seconds: float
    reason: str | None = None
    wrong: frozenset[int] = frozenset()
    doubts: tuple[str, ...] = ()
    unplaced: bool = False
    nulled: int = 0


def found_of(
    answer: Answer, last: dict[Any, Total], steps: Sequence[Step], why: str | None, began: float = 0.0
) -> Finding:
    """`last`: the lake's totals by chunk; `steps`: the changes since L."""
    alone = _by_group(steps)
    matches = [
        match(read, last, alone.get(next(iter(read.totals)), []) if len(read.totals) == 1 else relevant(read, steps))
        for read in answer.reads
    ]
    lake, now = Total(), 0
    for read, found in zip(answer.reads, matches, strict=True):
        for number, state in found.states.items():
            lake = lake.plus(state)
            now += read.totals[number].rows + last.get(number, Total()).rows - state.rows
    wrong = frozenset(number for found in matches for number in found.wrong)
    boundary = None if wrong else _last(answer, matches)
    rows = now if answer.chosen is None else None
    return Finding(lake, boundary, rows, time.time() - began, why if wrong else None, wrong)


def doubted(table: TableStatus, answer: Answer, found: Finding, unplaced: Callable[[], bool]) -> Finding:
    """The finding with what speaks against the table, which may be equal. That ends a mark that somebody else wrote it
    (foreign.py), where nothing is `unplaced`, and no other one."""
    found = replace(found, nulled=table.nulled)
    if not (table.foreign and found.boundary is not None and answer.chosen is None):
        return replace(found, doubts=(*table.doubts(),))
    strange, foreign = unplaced(), table.foreign.reason
    did = foreign.partition(f". {CHECK_SHOWS}")[0]  # as this one does
    told = f"{did}. {UNPLACED if strange else SETTLED}"
    return replace(found, doubts=tuple(told if one == foreign else one for one in table.doubts()), unplaced=strange)


def _by_group(steps: Sequence[Step]) -> dict[Any, list[Step]]:
    """Each group's own steps: of thousands of chunks, each read by itself, none is to look at all."""
    found: dict[Any, list[Step]] = {}
    for step in steps:
        for group, delta in step.deltas.items():
            found.setdefault(group, []).append(Step(step.at, step.gtid, {group: delta}))
    return found


def _last(answer: Answer, matches: Sequence[Match]) -> str:
    at = max(range(len(matches)), key=lambda n: (matches[n].gtid != "", answer.reads[n].high), default=None)
    return "" if at is None else matches[at].gtid


def why(table: TableStatus) -> str | None:
    """What is known to keep the table from being equal. One without a snapshot may have got all of its rows by the
    stream, as one that was made since that began; of one that has not, `unread` says so."""
    if table.stopped:
        return f"the table is stopped: {table.stopped}"
    if table.stale:
        return table.stale.reason
    return table.outdated or table.unread


def apart(table: TableStatus) -> str | None:
    """What is known to make a check find it to differ: also that its snapshot is ahead of the lake, which keeps no part
    of it from being made anew."""
    return why(table) or table.ahead


def incomparable(pipeline: Pipeline, db: str, table: str) -> dict[str, Any] | None:
    """The line of the report of a table whose lake is not meant to equal the source; None for others."""
    kinds = sorted(dropped(pipeline.events, db, table) & CHANGES_ROWS)
    if kinds:
        told = f"events in {pipeline.path} leaves out its {', '.join(kinds)} changes, so the lake is another"
    elif pipeline_transforms.chosen(pipeline.transforms, db, table):
        told = f"transforms in {pipeline.path} change or drop its rows, so the lake is another"
    else:
        return None
    return _uncompared(None, f"not compared: {told}")


def unread(error: TableError, named: bool) -> dict[str, Any]:
    """The same of a table that the source gave no answer for. One that is gone is at fault where a person `named` it:
    of the others nothing is wrong, and nothing proven."""
    if isinstance(error, TableGoneError):
        return {**_uncompared(False if named else None, GONE), "clears": False}
    told = ALTERED_EACH_TIME if isinstance(error, TableAlteredError) else f"it could not be compared: {error}"
    return _uncompared(False, told)


def _uncompared(equal: bool | None, reason: str) -> dict[str, Any]:
    facts = ("source_count", "lake_count", "source_checksum", "lake_checksum")
    return {"equal": equal, **dict.fromkeys(facts), "reason": reason}


def result(answer: Answer, finding: Finding, low: Checkpoint) -> dict[str, Any]:
    """A table's line of the report. Checksums are texts: they exceed what JSON readers keep exactly."""
    total, seconds = answer.total, answer.seconds + finding.seconds
    oldest = min((read.at for read in answer.reads), default=0.0)
    facts = {
        "equal": finding.boundary is not None,
        "source_count": total.rows,
        "lake_count": None if finding.lake is None else finding.lake.rows,
        "source_checksum": str(total.sum),
        "lake_checksum": None if finding.lake is None else str(finding.lake.sum),
        "frame_rows": finding.now,
        "boundary": finding.boundary or (low.gtid_set if finding.boundary is not None else None),
        "chunks": answer.split.count,
        "chunks_compared": answer.split.count if answer.chosen is None else len(answer.chosen),
        "source_seconds": round(answer.seconds, 1),
        "lake_seconds": round(finding.seconds, 1),
        "rows_per_second": round(total.rows / seconds) if seconds > 0 else None,
        "oldest_read": moment(oldest) if oldest else None,
        "reason": finding.reason,
    }
    facts |= {"taken_up": answer.resumed} if answer.resumed else {}
    facts |= {"unplaced": True} if finding.unplaced else {}
    facts |= {"nulled": finding.nulled} if finding.nulled else {}
    return facts | ({"doubts": [*finding.doubts]} if finding.doubts else {})
