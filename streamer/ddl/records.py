"""DDL -> the records that tell of it: one in the DDL topic for each table, and for a TRUNCATE one in every partition of
the table's topic, in their place among its rows.

The table's rows are gone with the truncation: its record has no image and no key, and its seq is greater than theirs.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from contract import names
from contract.ddl_record import UNSEEN
from contract.gtid_places import gtid_of
from contract.pipeline import Pipeline
from contract.pipeline_events import Kind
from contract.sequence import Sequence, file_number
from streamer import VERSION
from streamer.ddl import statement as ddl
from streamer.ddl.renamed import renamed
from streamer.ddl.secrets import without_secrets, without_texts
from streamer.protocol.model import Ddl
from streamer.routes import Router

Drop = Callable[[str, str, Kind], bool]
Computes = Callable[[str, str], bool]
ENVELOPE_BYTES = 1_024  # of a DDL record, names and all, beside the statement
WIDEST = 12  # bytes of one character in JSON


class Outgoing(NamedTuple):
    """`everywhere`: to each partition of the topic."""

    topic: str
    key: bytes | None
    value: bytes
    everywhere: bool = False


def records(
    pipeline: Pipeline,
    kind: ddl.Kind,
    tables: list[ddl.Table],
    item: Ddl,
    epoch: int,
    router: Router,
    drop: Drop,
    computes: Computes,
) -> Iterator[Outgoing]:
    """`tables`: the pipeline's own; none where the statement does not tell. Of a truncated table the topic is made.
    `drop(db, table, kind)`: whether the pipeline leaves it out. `computes`: as of DdlRecord's `computed`."""
    seq = Sequence(epoch, file_number(item.file), item.pos)
    for db, table in tables or [(item.db, ddl.ANY)]:
        needed = pipeline.feeds_lake and kind in UNSEEN  # by nothing else does the lake learn that values changed
        if not needed and drop(db, table, "ddl"):
            continue
        one = None if table == ddl.ANY else table
        value = _ddl(pipeline, kind, db, one, item, seq, kind == "alter" and computes(db, table))
        yield Outgoing(names.ddl_topic(pipeline), _json({"db": db, "table": one}), value)
    if kind == "truncate":
        for db, table in tables:
            if drop(db, table, "truncate"):
                continue
            schema = router.schemas.in_force(db, table, seq)
            value = _truncation(pipeline, db, table, item, seq, schema.version if schema else None)
            yield Outgoing(router.topic(db, table), router.truncation_key(db, table), value, everywhere=True)


def _ddl(
    pipeline: Pipeline, kind: ddl.Kind, db: str, table: str | None, item: Ddl, seq: Sequence, computed: bool
) -> bytes:
    """A statement that is too long for a record is cut: it is advice, and may not stop the stream."""
    limit = pipeline.kafka.max_message_bytes - ENVELOPE_BYTES
    told: dict[str, Any] = {
        "db": db,
        "table": table,
        "kind": kind,
        "statement": without_secrets(item.statement, item.escapes),
        "database": item.db,
        "gtid": gtid_of(item.gtid),
        "file": item.file,
        "pos": item.pos,
        "seq": [seq.epoch, seq.file, seq.pos],
        "ts_ms": item.ts_ms,
    }
    if kind in ("alter", "cascade"):
        found = renamed(item.statement, item.db, item.escapes)
        if found.columns:
            told |= {"renamed": found.columns, "only_renamed": found.alone}
        told |= {"dropped": found.dropped, "computed": computed}
    if kind == "unknown":  # it may be of users as well, with their passwords
        told["statement"] = without_texts(item.statement, item.escapes)
    value = _json(told)
    if len(value) > limit:
        for columns in ("renamed", "only_renamed", "dropped"):
            told.pop(columns, None)
        value = _json(told | {"statement": told["statement"][: max(0, limit - ENVELOPE_BYTES) // WIDEST], "cut": True})
    return value


def _truncation(pipeline: Pipeline, db: str, table: str, item: Ddl, seq: Sequence, schema: int | None) -> bytes:
    source = {
        "version": VERSION,
        "connector": pipeline.source.flavor,
        "name": pipeline.name,
        "ts_ms": item.ts_ms,
        "ts_us": item.ts_us,
        "snapshot": "false",
        "db": db,
        "table": table,
        "server_id": item.server_id,
        "gtid": gtid_of(item.gtid),
        "file": item.file,
        "pos": item.pos,
        "row": 0,
        "thread": item.thread,
        "query": None,
        "seq": list(seq),
        "schema": schema,
    }
    now = time.time_ns() // 1_000_000
    envelope = {"before": None, "after": None, "source": source, "op": "t", "ts_ms": now, "transaction": None}
    return _json(envelope)


def _json(value: dict[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode(errors="replace")
