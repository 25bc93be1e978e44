"""The stream of a pipeline whose file asks for more than the plain records; others never come by here."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any
from zlib import crc32

from contract.pipeline import Pipeline
from contract.sequence import Sequence
from streamer.ddl.records import Outgoing as Note
from streamer.outgoing import letters
from streamer.outgoing.aside import Aside
from streamer.outgoing.debezium.encoder import DebeziumRecords
from streamer.outgoing.headers import BatchHeaders
from streamer.outgoing.heart import Heart
from streamer.outgoing.record import Outgoing, with_tombstones
from streamer.outgoing.transactions import Transactions
from streamer.outgoing.transforming import Transforms
from streamer.protocol.model import Commit, RowsBatch, TableMap
from streamer.routes import Route
from streamer.stream import Decoder, Stream

Partition = Callable[[str, TableMap], int]  # of a record's topic and table


class OutgoingStream(Stream):
    """`pipeline`: as it was at the start; what it asks of records takes effect at a start alone. `transforms`: what
    makes the routes' chains."""

    def __init__(self, pipeline: Pipeline, transforms: Transforms, **more: Any) -> None:
        super().__init__(**more)
        asked = pipeline.records
        self.transforms = transforms
        self._told = Transactions(pipeline) if asked.transactions else None
        self._headers = BatchHeaders(pipeline) if asked.headers else None
        self._tombstones = asked.tombstones
        self._heart = Heart(pipeline, asked.heartbeat_seconds) if asked.heartbeat_seconds is not None else None
        self._header_bytes = 256 * len(asked.headers)
        self._limit = letters.limit(pipeline)
        self.aside = Aside(pipeline, asked.oversized) if asked.oversized is not None else None
        by: dict[str, Partition | None] = {"key": None, "table": self._of_table, "single": lambda topic, table: 0}
        self._partition = by[asked.partition_by]
        self._form = DebeziumRecords(pipeline) if asked.format == "debezium" else None

    def _rows(self, batch: RowsBatch) -> None:
        half = self.halfway
        if half.skips and half.again(batch):
            return
        if self.seen is not None and self.seen.has(batch.file_number, batch.tx_pos, batch.gtid):
            return
        route = self.router.route(batch, self._epoch)
        keys, values = route.envelope.records(batch)
        records = [Outgoing(route.topic, key, value) for key, value in zip(keys, values, strict=True)]
        self._send(batch, route, records)
        half.batch = batch

    def _send(self, batch: RowsBatch, route: Route, records: list[Outgoing]) -> None:
        events = len(records)
        if route.chain is not None:
            records = [self._fitting(record) for record in self.transforms.applied(route.chain, records)]
            for topic in {record.topic for record in records if record.event} - {route.topic}:
                self._other(topic, batch.table)
        if self.aside is not None:
            records = [self._small(self.aside, batch, record) for record in records]
        told = [record for record in records if record.event]
        for record in told:
            route.counts[record.op] += 1
        if self._headers is not None:
            self._headers.put(batch, route.version, told)
        if self._told is not None:
            self._number(self._told, batch, told)
        if self._partition is not None:
            for record in told:
                record.partition = self._partition(record.topic, batch.table)
        if self._tombstones:
            records = with_tombstones(records)
        if self._form is not None:
            records = [self._formed(self._form, batch, record) for record in records]
        self.delivery.made(events, records)

    def _formed(self, form: DebeziumRecords, batch: RowsBatch, record: Outgoing) -> Outgoing:
        """A dead letter stays as it is."""
        return form.row(record, batch.table.schema) if record.event or record.value is None else record

    def _own(self, record: Outgoing) -> Outgoing:
        """Of the pipeline's own topics."""
        return record if self._form is None else self._form.own(record)

    def _noted(self, note: Note) -> Note:
        if self._form is None or not note.everywhere:
            return note
        source = json.loads(note.value)["source"]
        schema = self.router.schemas.in_force(source["db"], source["table"], Sequence(*source["seq"]))
        key, value = self._form.truncation(note.topic, note.key, note.value, schema)
        return note._replace(key=key, value=value)

    def _other(self, topic: str, table: TableMap) -> None:
        """A later start looks there, too, for what was sent: so a checkpoint names the topic before its first record
        is visible."""
        if topic in self.router.others:
            return
        self.router.other(topic, table.db, table.table)
        if self._watcher.sends_into(topic):
            self.delivery.keep()

    def _fitting(self, record: Outgoing) -> Outgoing:
        """A dead letter that is too large for Kafka comes without the change, which is put aside where that is asked
        for."""
        if record.event or not letters.too_large(record, self._limit):
            return record
        if self.aside is None:
            return letters.without_value(record)
        return self.delivery.until_done(partial(self.aside.put_letter, record), self.aside.title)

    def _small(self, aside: Aside, batch: RowsBatch, record: Outgoing) -> Outgoing:
        if not record.event or not self._too_large(batch, record):
            return record
        # First: one that cannot be put aside may be sent after all, by a larger limit.
        letter = self.delivery.until_done(partial(aside.put, record), aside.title)
        place = self._epoch, batch.file_number, batch.tx_pos
        self._watcher.mark(f"{batch.table.db}.{batch.table.table}", place)
        return letter

    def _too_large(self, batch: RowsBatch, record: Outgoing) -> bool:
        """As it will be sent."""
        if self._form is not None:
            record = self._form.row(record, batch.table.schema, sent=False)
        return letters.too_large(record, self._limit, self._header_bytes)

    def _of_table(self, topic: str, table: TableMap) -> int:
        return crc32(f"{table.db}.{table.table}".encode()) % self.delivery.partitions(topic)

    def _number(self, told: Transactions, batch: RowsBatch, records: list[Outgoing]) -> None:
        if self.halfway.batch is None:
            told.forget()
        if not records:
            return
        if (begin := told.begin(batch)) is not None:
            self.delivery.made(0, [self._own(begin)])
        for record in records:
            told.number(f"{batch.table.db}.{batch.table.table}", record)

    @property
    def put_aside(self) -> dict[str, int]:
        return self.aside.as_dict() if self.aside is not None else {}

    @property
    def bent(self) -> dict[str, int]:
        return dict(sorted(self._form.bent.copy().items())) if self._form is not None else {}

    def _end(self, commit: Commit) -> None:
        if self._told is not None and (end := self._told.end(commit)) is not None:
            self.delivery.made(0, [self._own(end)])
        super()._end(commit)
        if self._heart is not None:
            self._beat(self._heart, commit.file, commit.pos)

    def _idle(self, decoder: Decoder) -> None:
        super()._idle(decoder)
        if self._heart is not None and decoder.between_transactions:
            self._beat(self._heart, decoder.file, decoder.pos)

    def _beat(self, heart: Heart, file: str, pos: int) -> None:
        if heart.due(self.delivery.now) and self.halfway.batch is None:
            self.delivery.beat(self._own(heart.record(file, pos)))
