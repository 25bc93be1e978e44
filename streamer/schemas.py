"""Which version of a table's schema a row has, and the topic that keeps them.

A version holds from the order tuple of the first row that used it (`since`) until the next one's. A replay asks
for the same positions and gets the same versions; a shape that is not the one in force gets the next number,
also when it is an old shape that comes back.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Callable, Iterable

from contract import names
from contract.pipeline import Pipeline
from contract.schema import TableSchema
from contract.sequence import Sequence
from contract.superseded import UnreadableError, understood
from streamer.delivery_errors import CheckpointError
from streamer.kafka import compacted
from streamer.kafka.compacted import Record

Table = tuple[str, str]
TAKEN_BACK = (
    "Find out what else writes into this topic, and keep it out. Then take the record back (docs/operations.md, "
    '"Records of the own topics that cannot be read"), or give the pipeline a new name.'
)


class Schemas:
    """Every version of every table. `known` in any order."""

    def __init__(self, known: Iterable[TableSchema] = ()) -> None:
        self._versions: dict[Table, list[TableSchema]] = {}
        for schema in known:
            self._add(schema)

    def in_force(self, db: str, table: str, seq: Sequence) -> TableSchema | None:
        """The version that rows at `seq` have, None before the first."""
        versions = self._versions.get((db, table), [])
        at = bisect_right(versions, seq, key=_since)
        return versions[at - 1] if at else None

    def resolve(self, shape: TableSchema, seq: Sequence) -> tuple[TableSchema, bool]:
        """The schema of rows of this shape at `seq`, and whether it is a new version, to be made durable first."""
        current = self.in_force(shape.db, shape.table, seq)
        if current is not None and current.shape() == shape.shape():
            return current, False
        versions = self._versions.get((shape.db, shape.table), [])
        number = max((schema.version for schema in versions), default=0) + 1
        schema = shape.model_copy(update={"version": number, "since": seq})
        self._add(schema)
        return schema, True

    def latest(self) -> dict[str, int]:
        """`db.table` -> its last version."""
        # A copy: the API asks from another thread.
        return {f"{db}.{table}": versions[-1].version for (db, table), versions in list(self._versions.items())}

    def _add(self, schema: TableSchema) -> None:
        versions = self._versions.setdefault((schema.db, schema.table), [])
        versions.insert(bisect_right(versions, _since(schema), key=_since), schema)


def _since(schema: TableSchema) -> Sequence:
    return schema.since or Sequence(0, 0, 0)


def key(schema: TableSchema) -> bytes:
    name = {"db": schema.db, "table": schema.table, "version": schema.version}
    return json.dumps(name, separators=(",", ":"), ensure_ascii=False).encode()


def value(schema: TableSchema) -> bytes:
    return schema.model_dump_json().encode()


def place(pipeline: Pipeline) -> str:
    """Where a start looks for them, in words."""
    return f"the topic {names.schemas_topic(pipeline)}" if pipeline.commits_in_kafka else pipeline.checkpoints.title


def read(pipeline: Pipeline, stopping: Callable[[], bool] | None = None) -> list[TableSchema]:
    """Every version in the pipeline's schema topic. Raises CheckpointError and as `compacted.read`."""
    topic = names.schemas_topic(pipeline)
    return parse(compacted.read(pipeline.kafka, topic, None, stopping), topic)


def parse(records: Iterable[Record], topic: str) -> list[TableSchema]:
    """The schemas in the topic's records, the last one a key. Raises CheckpointError for what is none."""
    try:
        found = list(understood(records, TableSchema.model_validate_json))
    except UnreadableError as error:
        cause = f"the record with the key {error.record[0]!r} is no table schema: {error}"
        raise CheckpointError("reading", f"topic {topic}", cause, TAKEN_BACK) from None
    return list({key(schema): schema for schema in found}.values())
