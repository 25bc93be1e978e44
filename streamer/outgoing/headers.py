"""Headers of records, for consumers that choose by them without reading the value."""

from __future__ import annotations

from collections.abc import Sequence

from contract.gtid_places import gtid_of
from contract.pipeline import Pipeline
from streamer.outgoing.record import Outgoing
from streamer.protocol.model import RowsBatch
from streamer.sinks.port import Headers


class BatchHeaders:
    """Named as in the pipeline file, with `__` in front, as Debezium's are; values are texts."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._names: Sequence[str] = pipeline.records.headers

    def put(self, batch: RowsBatch, schema: int, records: list[Outgoing]) -> None:
        common = {
            "db": batch.table.db,
            "table": batch.table.table,
            "gtid": gtid_of(batch.gtid) or "",
            "file": batch.file,
            "pos": str(batch.pos),
            "ts_ms": str(batch.ts_ms),
            "schema": str(schema),
        }
        of_all = {name: common[name].encode() for name in self._names if name in common}
        for record in records:
            record.headers = self._of(record, of_all)

    def _of(self, record: Outgoing, common: dict[str, bytes]) -> Headers:
        own = {"op": record.op.encode(), "seq": record.seq} if {"op", "seq"} & set(self._names) else {}
        return [(f"__{name}", common[name] if name in common else own[name]) for name in self._names]
