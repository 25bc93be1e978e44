"""Where a pipeline stands, asked by the waits: each question answers None, or says what is still missing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from contract import status
from contract.pipeline import PipelineFileError
from headrace import pipeline_files
from readers.status import read

Question = Callable[[str, dict[str, Any]], str | None]


class CannotTellError(Exception):
    """The question could not be answered now; it is asked again."""


class NeverTellsError(Exception):
    """The question will have no answer, however often it is asked."""


def streamer_passed(pipeline_file: str, report: dict[str, Any]) -> str | None:
    """Does the streamer's checkpoint cover the end of the snapshot that `report` tells of?"""
    from streamer.checkpoints.kafka import read_checkpoint
    from streamer.errors import HeadraceError

    pipeline = _pipeline(pipeline_file)
    try:
        checkpoint = read_checkpoint(pipeline)
    except HeadraceError as error:
        raise CannotTellError(str(error)) from None
    if checkpoint is None:
        return f"the streamer has no checkpoint yet: start it with `headrace run {pipeline_file}`"
    end = report["p1"]
    if checkpoint.covers(end):
        return None
    return f"the streamer has released {checkpoint.gtid_set}, the snapshot ended at {end}: is it running?"


def snapshot_applied(pipeline_file: str, report: dict[str, Any]) -> str | None:
    """Has the lake applied the snapshot to every table of it, and is it complete up to the snapshot's end?"""
    pipeline = _pipeline(pipeline_file)
    lake = _lake(pipeline)
    compaction = f"does the DAG {pipeline.name}.compaction run?"
    if lake is None:
        return f"no compaction has run yet: {compaction}"
    if missing := _missing(lake, report):
        why = _stopped(lake, missing) or compaction
        return f"run {lake.run} of the lake has not applied the snapshot to {', '.join(missing)}: {why}"
    if not lake.covers(report["p1"]):
        return f"the lake is not yet complete up to {report['p1']}: do the streamer and compaction run?"
    return None


def parts_applied(pipeline_file: str, report: dict[str, Any]) -> str | None:
    """Has the lake taken, or refused, every part that `report` tells of?"""
    pipeline = _pipeline(pipeline_file)
    known = _lake(pipeline)
    missing = _missing(known, report)
    if not missing:
        return None
    stopped = _stopped(known, missing)
    compaction = f"{_behind(known, report['p1'])}: does {pipeline.name}.compaction run?"
    return f"the lake has not taken the rows of {', '.join(missing)}{f': {stopped}' if stopped else compaction}"


def lacking(pipeline_file: str, report: dict[str, Any]) -> list[str]:
    """The tables of which the lake has not taken what `report` tells of; all where nobody can tell which."""
    try:
        missing = _missing(_lake(_pipeline(pipeline_file)), report)
    except (CannotTellError, NeverTellsError):
        missing = []
    return missing or sorted(report.get("tables") or ())


def _missing(known: status.LakeStatus | None, report: dict[str, Any]) -> list[str]:
    if "parts" in report:
        return sorted({table for id, table in report["parts"].items() if known is None or id not in known.parts})
    tables = known.tables if known else {}
    return [name for name in sorted(report["tables"]) if not _has(tables.get(name), report["snapshot"])]


def _stopped(known: status.LakeStatus | None, names: list[str]) -> str:
    """Why those of the tables are stopped that are."""
    tables = known.tables if known else {}
    return "; ".join(told for name in names if name in tables and (told := tables[name].stopped))


def _behind(known: status.LakeStatus | None, end: str) -> str:
    """Said only where the lake lacks changes; rows from history end at no place of the binlog."""
    if not end or (known and known.covers(end)):
        return ""
    at = known.checkpoint.gtid_set if known and known.checkpoint else "nothing yet"
    return f", which is complete up to {at} and needs {end}"


def parts(pipeline_file: str, report: dict[str, Any]) -> list[status.PartStatus]:
    """What became of them."""
    known = _lake(_pipeline(pipeline_file))
    return [part for id, part in known.parts.items() if id in report["parts"]] if known else []


def _lake(pipeline: Any) -> status.LakeStatus | None:
    try:
        return read(pipeline)
    except status.StatusElsewhereError as error:
        raise NeverTellsError(str(error)) from None
    except (status.StatusFormatError, OSError, ValueError) as error:
        raise CannotTellError(f"the lake's status cannot be read: {error}") from None


def _has(table: status.TableStatus | None, snapshot: str) -> bool:
    """The snapshot, or a newer one: ids grow, and behind that an older one is not applied any more."""
    return table is not None and table.snapshot is not None and table.snapshot.id >= snapshot


def _pipeline(pipeline_file: str) -> Any:
    try:
        return pipeline_files.load(pipeline_file)
    except PipelineFileError as error:
        raise CannotTellError(str(error)) from None


QUESTIONS: dict[str, Question] = {
    "streamer passed": streamer_passed,
    "snapshot applied": snapshot_applied,
    "parts applied": parts_applied,
}
