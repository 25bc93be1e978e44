"""The records of the pipeline's own topics (commit log, schemas, DDL), and what is told of one that cannot be read.

It may be something else's, or of a newer version. Whichever it is, what it says is not known, so no job goes on: a
checkpoint, a shape or a statement may be missing. `headrace mend` is the way on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any, NamedTuple, TypeVar

from contract import names, steps
from contract.checkpoint import Checkpoint, CheckpointFormatError
from contract.ddl_record import DdlRecord
from contract.pipeline import Pipeline
from contract.schema import TableSchema
from contract.superseded import UnreadableError, understood, why
from spark.errors import LakeError
from spark.kafka.reading import Record

T = TypeVar("T")
LONGEST = 200  # characters of a key that are shown


class Kind(NamedTuple):
    """`what` a record is, `parse` raises ValueError for what is none; `compacted`: of a key the last one counts."""

    what: str
    parse: Callable[[bytes], Any]
    compacted: bool = True


def _checkpoint(value: bytes) -> Checkpoint:
    try:
        return Checkpoint.read(value)
    except CheckpointFormatError as error:
        raise LakeError(str(error)) from None  # of a newer version, whatever stands behind it


@cache
def _shape(value: bytes) -> TableSchema:
    """Kept from round to round of a looping compaction: they are frozen, and each round reads all, which of 200 tables
    with five shapes of 50 columns took a fifth of a second."""
    return TableSchema.model_validate_json(value)


COMMIT_LOG = Kind("checkpoint", _checkpoint)
SCHEMAS = Kind("table's shape", _shape)
DDL = Kind("statement", DdlRecord.model_validate_json, compacted=False)


def kinds(pipeline: Pipeline) -> dict[str, Kind]:
    """Of the topics that the lake's jobs read themselves."""
    return {
        names.commit_log_topic(pipeline): COMMIT_LOG,
        names.schemas_topic(pipeline): SCHEMAS,
        names.ddl_topic(pipeline): DDL,
    }


def said(pipeline: Pipeline, records: Iterable[Record], kind: Kind) -> Iterator[Any]:
    """What the records say, in order. Raises LakeError for the first that cannot be read."""
    if kind.compacted:
        try:
            yield from understood(records, kind.parse)
        except UnreadableError as error:
            record = error.record
            assert isinstance(record, Record)
            raise LakeError(_told(pipeline, record, kind, str(error))) from None
        return
    for record in records:
        try:
            if record.value is not None:
                yield kind.parse(record.value)
        except ValueError as error:
            raise LakeError(_told(pipeline, record, kind, why(error))) from None


def _told(pipeline: Pipeline, record: Record, kind: Kind, cause: str) -> str:
    key = ascii(record.key.decode(errors="backslashreplace"))[:LONGEST]
    command = f"`headrace mend {pipeline.path} {record.topic} {record.partition} {record.offset}`"
    if kind.compacted:
        way = (
            f"run {command}: it writes behind the record what its key had before, or that it has nothing, by which "
            "the record is passed by"
        )
    else:
        way = (
            f"run {command}: it removes the record, and those before it. What they say of any table is not known "
            f"then, so each counts as not snapshotted until you {steps.snapshot(pipeline)}"
        )
    return (
        f"the record in topic {record.topic}, partition {record.partition}, offset {record.offset}, with the key "
        f"{key}, is no {kind.what}: {cause}. Nothing was lost, and no job of the lake goes on before it. Something "
        "else than the streamer wrote it, or a newer version did: upgrade Headrace. Or find out what wrote it, keep "
        f"that out of the topic, and {way}"
    )
