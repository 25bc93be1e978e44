"""Where a table's rows go, and in which envelope: found once a table shape, then reused.

Before a shape's first record its topic exists and its schema is acknowledged in the schema topic.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import structlog

from contract import names
from contract.pipeline import Pipeline, Tables
from contract.schema import TableSchema
from contract.sequence import Sequence
from contract.transforms import Chain
from streamer import VERSION
from streamer.delivery_errors import TopicError
from streamer.envelope import Envelope
from streamer.kafka import topics
from streamer.protocol.model import RowsBatch, TableMap
from streamer.schemas import Schemas

log = structlog.get_logger("streamer")
KEYLESS = (
    "Exclude it in the pipeline file (tables.exclude), or give it a primary key, or columns of keys in the file: by a "
    "key the lake knows a row, and takes no table without; or write changes_only: true for it (keys), and the lake "
    "keeps its changes alone."
)
NO_KEY = "it has no key, and its topic is compacted: the broker keeps the last record of each key there"
KEYED = "Give it a primary key, or columns of keys in the pipeline file; or write cleanup: delete for it (topics)."


class Route:
    """`counts`: records sent by operation. `version`: the schema's. `chain`: the table's transforms, None without."""

    __slots__ = ("chain", "counts", "envelope", "shape", "topic", "version")

    def __init__(
        self, topic: str, envelope: Envelope, shape: TableMap, counts: dict[str, int], version: int,
        chain: Chain | None,
    ) -> None:  # fmt: skip
        self.topic = topic
        self.envelope = envelope
        self.shape = shape
        self.counts = counts
        self.version = version
        self.chain = chain


class Router:
    """`ensure` makes topics, `publish` returns when a schema is durable; both may wait for the broker. `chain`: a
    table's transforms."""

    def __init__(
        self,
        pipeline: Pipeline,
        schemas: Schemas,
        ensure: Callable[[list[topics.Wanted]], list[topics.Report]],
        publish: Callable[[TableSchema], None],
        chain: Callable[[TableSchema], Chain | None] = lambda schema: None,
    ) -> None:
        self._pipeline = pipeline
        self.schemas = schemas
        self._ensure = ensure
        self._publish = publish
        self._chain = chain
        self._by_shape: dict[TableMap, Route] = {}  # the shape in force of each table
        self._routes: dict[tuple[str, str], Route] = {}
        self._topics: dict[tuple[str, str], str] = {}  # those that are there
        self.others: set[str] = set()  # topics that transforms chose

    def route(self, batch: RowsBatch, epoch: int) -> Route:
        """The table's route; a new one when its shape is not that of the batch before."""
        return self._by_shape.get(batch.table) or self._find(batch, epoch)

    def follow(self, tables: Tables) -> None:
        """Forgets the others: when one comes again, its topic may have gone."""
        self._routes = {table: route for table, route in self._routes.items() if tables.match(*table)}
        self._topics = {table: topic for table, topic in self._topics.items() if tables.match(*table)}
        self._by_shape.clear()

    def begin_anew(self) -> None:
        """From now on the order tuples are of another epoch."""
        self._by_shape.clear()

    def keyless(self) -> list[str]:
        """Tables without a key, which the lake needs of them, of which rows came since this start."""
        return [f"{db}.{table}" for (db, table), route in list(self._routes.items()) if self._lacks_key(route.shape)]

    def counts(self) -> dict[str, dict[str, int]]:
        """`db.table` -> operation -> records sent since this start."""
        return {f"{db}.{table}": dict(route.counts) for (db, table), route in list(self._routes.items())}

    def _find(self, batch: RowsBatch, epoch: int) -> Route:
        shape = batch.table
        if not shape.schema.key and topics.compacts(self._pipeline, shape.db, shape.table):
            raise TopicError("sending rows of", f"{shape.db}.{shape.table}", NO_KEY, KEYED)
        known = self._routes.get((shape.db, shape.table))
        topic = self.topic(shape.db, shape.table)
        seq = Sequence(epoch, batch.file_number, batch.tx_pos, batch.ordinal)
        schema, new = self.schemas.resolve(shape.schema, seq)
        if new:
            self._publish(schema)
            log.info("schema", table=f"{shape.db}.{shape.table}", version=schema.version, since=list(seq))
        quoted = (_quoted(shape.db), _quoted(shape.table))
        envelope = Envelope(VERSION, self._pipeline.name, *quoted, schema.version, epoch, self._pipeline.source.flavor)
        if self._lacks_key(shape) and (known is None or known.shape.schema.key):
            log.warning("joined without a key", table=f"{shape.db}.{shape.table}", next_step=KEYLESS)
        counts = known.counts if known else {"c": 0, "u": 0, "d": 0}
        route = Route(topic, envelope, shape, counts, schema.version, self._chain(shape.schema))
        if known:  # an old shape that comes back is a new version
            self._by_shape.pop(known.shape, None)
        self._routes[shape.db, shape.table] = self._by_shape[shape] = route
        return route

    def _lacks_key(self, shape: TableMap) -> bool:
        return not shape.schema.key and not self._pipeline.changes_only(shape.db, shape.table)

    def topic(self, db: str, table: str) -> str:
        """The table's topic, which is there then; asked of the broker once a table."""
        if (db, table) not in self._topics:
            self._topics[db, table] = self._made(db, table)
        return self._topics[db, table]

    def truncation_key(self, db: str, table: str) -> bytes | None:
        """Of the record of a truncation, which has no row's: a compacted topic takes none without."""
        return b"{}" if topics.compacts(self._pipeline, db, table) else None

    def other(self, topic: str, db: str, table: str) -> None:
        """Makes a topic that a transform chose, set as the table's own; asked of the broker once."""
        if topic not in self.others:
            self._make(topics.event_topic(self._pipeline, topic, db, table))
            self.others.add(topic)

    def _made(self, db: str, table: str) -> str:
        [wanted] = topics.event_topics(self._pipeline, [(db, table)])
        self._make(wanted)
        return names.events_topic(self._pipeline, db, table)

    def _make(self, wanted: topics.Wanted) -> None:
        for report in self._ensure([wanted]):
            if report.state == "created":
                log.info("topic created", topic=report.topic)
            elif report.differences:
                log.warning("topic differs", topic=report.topic, difference=report.advice())


def _quoted(name: str) -> Any:
    return json.dumps(name, ensure_ascii=False).encode()
