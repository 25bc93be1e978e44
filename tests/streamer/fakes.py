"""A source and a sink without servers: a list of transactions that can break off, and a list of records."""

from __future__ import annotations

import json
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from contract.checkpoint import Checkpoint
from contract.gtid import GtidSet
from contract.pipeline import Pipeline
from contract.schema import Column, TableSchema
from streamer.checkpoints.kafka import KafkaCheckpoints
from streamer.control.status import Status
from streamer.ddl.notes import DdlNotes
from streamer.delivery import Delivery
from streamer.errors import HeadraceError
from streamer.follow.file import FileWatch
from streamer.follow.swap import Swap
from streamer.ledger import Ledger
from streamer.outgoing.stream import OutgoingStream
from streamer.outgoing.transforming import Transforms
from streamer.patience import Patience
from streamer.protocol.held import PreparedXa
from streamer.protocol.model import Commit, Item, RowsBatch, TableMap
from streamer.routes import Router
from streamer.schemas import Schemas
from streamer.seen import Seen
from streamer.stream import Stream
from streamer.watcher import Watcher
from tests.checkpoints import SOURCE, checkpoint

FILE = "binlog.000001"


def pipeline(**streamer: Any) -> Pipeline:
    return Pipeline.model_validate(
        {
            "format": 1,
            "name": "sales",
            "source": {"host": "h", "user": "u", "password": "p", "server_id": 7},
            "tables": {"include": ["shop.*"]},
            "kafka": {"bootstrap": "h:9092"},
            "streamer": streamer,
            "lake": {"path": "lake"},
        }
    )


def shape(*columns: str) -> TableMap:
    schema = TableSchema(db="shop", table="t", columns=tuple(Column(name=c, type="int") for c in columns), key=("id",))

    def never(*_: Any) -> None:
        raise AssertionError

    return TableMap(schema, never, "")


SHAPE = shape("id", "v")


def transaction(number: int, batches: Sequence[int], table: TableMap = SHAPE) -> list[Item]:
    """A transaction of insert batches of the given sizes; every row's `v` is (number, batch, row) in one number."""
    gtid, pos = f"{SOURCE}:{number}", 1000 * number
    items: list[Item] = []
    for ordinal, size in enumerate(batches):
        ids = [1_000_000 * number + 1000 * ordinal + row for row in range(size)]
        rows = [b'{"id":%d,"v":%d}' % (n, n) for n in ids]
        keys = [b'{"id":%d}' % n for n in ids]
        items.append(RowsBatch("c", table, rows, keys, 10**15, gtid, 1, 1, FILE, 1, pos + 100, pos, ordinal))
    return [*items, Commit(gtid, FILE, pos + 900, pos, number, 10**15, 1)]


@dataclass
class Binlog:
    """`breaks`: after how many items each connection is lost; `error` is raised at the end of the binlog."""

    transactions: list[list[Item]]
    breaks: list[int] = field(default_factory=list)
    error: HeadraceError | None = None
    lost: Callable[[], HeadraceError] | None = None
    starts: list[str] = field(default_factory=list)
    file: str = FILE
    pos: int = 4
    read: int = 0
    ignored: Counter[str] = field(default_factory=Counter)
    behind: list[tuple[str, int] | None] = field(default_factory=list)  # what each connection's decoder was told
    between_transactions: bool = True
    wanted: Callable[[str, str], bool] = lambda db, table: True

    def decoder(self, behind: tuple[str, int] | None) -> Binlog:
        self.behind.append(behind)
        return self

    def connect(self, start: GtidSet) -> Binlog:
        self.starts.append(str(start))
        kept = [t for t in self.transactions if not start.contains(t[-1].gtid)]
        self._items = [item for items in kept for item in items]
        return self

    def chunks(self) -> Iterator[bytes]:
        limit = self.breaks.pop(0) if self.breaks else None
        for at in range(len(self._items)):
            if at == limit:
                assert self.lost is not None
                raise self.lost()
            yield at.to_bytes(4, "big")
        if self.error is not None:
            raise self.error
        while True:
            time.sleep(0.001)
            yield b""

    def feed(self, chunk: bytes) -> Iterator[Item]:
        """Gives what is of the tables that are wanted."""
        self.read += 1
        item = self._items[int.from_bytes(chunk, "big")]
        self.between_transactions = type(item) is Commit
        if not isinstance(item, RowsBatch) or self.wanted(item.table.db, item.table.table):
            yield item

    def follow(self, wanted: Callable[[str, str], bool]) -> None:
        assert self.between_transactions
        self.wanted = wanted

    def more(self) -> bool:
        return self.read % 3 == 0

    def close(self) -> None:
        pass


class Message:
    def __init__(self, topic: str) -> None:
        self._topic = topic

    def topic(self) -> str:
        return self._topic


class ListSink:
    """Acknowledges in random order, a few at each poll; nothing while `away`. `counted`: the topics whose partitions
    were asked for; it has none of the `unknown`."""

    def __init__(self, seed: int = 1) -> None:
        self.records: list[tuple[str, bytes | None, bytes]] = []
        self.headers: list[tuple[str, list[tuple[str, bytes]], int | None]] = []
        self.away = False
        self.title = "Kafka"
        self.last_error = ""
        self.counted: list[str] = []
        self.unknown: set[str] = set()
        self._waiting: list[tuple[Callable[[Any, Any], None], str]] = []
        self._random = random.Random(seed)

    def send(self, topic: str, keys: Sequence[bytes | None], values: Sequence[bytes], callback: Any) -> None:
        for key, value in zip(keys, values, strict=True):
            self.records.append((topic, key, value))
            self._waiting.append((callback, topic))

    def send_one(
        self, topic: str, key: bytes | None, value: Any, callback: Any, headers: Any = (), partition: Any = None
    ) -> None:
        self.headers.append((topic, list(headers), partition))
        self.send(topic, [key], [value], callback)

    def partitions(self, topic: str) -> int:
        self.counted.append(topic)
        return 0 if self.away or topic in self.unknown else 2

    def send_everywhere(self, topic: str, key: bytes | None, value: bytes, partitions: int, callback: Any) -> None:
        self.send(topic, [key] * partitions, [value] * partitions, callback)

    def poll(self, seconds: float) -> None:
        for _ in range(self._random.randrange(8)):
            if self._waiting and not self.away:
                callback, topic = self._waiting.pop(self._random.randrange(len(self._waiting)))
                callback(None, Message(topic))

    def flush(self, seconds: float) -> int:
        for _ in range(1000):
            self.poll(0)
        return len(self._waiting)

    def probe(self, seconds: float) -> bool:
        return not self.away

    def close(self) -> None:
        pass

    def values(self, topic: str) -> list[Any]:
        return [json.loads(value) for name, _, value in self.records if name == topic]

    def events(self) -> list[Any]:
        return self.values("sales.shop.t")

    def checkpoints(self) -> list[Checkpoint]:
        return [Checkpoint.model_validate(value) for value in self.values("sales.commit-log")]


@dataclass
class Rig:
    stream: Stream
    ledger: Ledger
    sink: ListSink
    status: Status
    stop: threading.Event
    watcher: Watcher
    checkpoints: KafkaCheckpoints
    file: FileWatch
    prepared: PreparedXa


def rig(
    binlog: Binlog,
    sink: ListSink | None = None,
    schemas: Schemas | None = None,
    begin: Checkpoint | None = None,
    asked: Pipeline | None = None,
    **streamer: Any,
) -> Rig:
    """A stream over the fakes, from the binlog's start or the checkpoint `begin` on. `asked`: a pipeline that asks for
    more than plain records."""
    settings = asked or pipeline(**streamer)
    sink = sink or ListSink()
    status, stop = Status("sales"), threading.Event()
    bounds = settings.streamer.ledger
    start = begin or checkpoint()
    ledger = Ledger(bounds.max_events, bounds.max_bytes, GtidSet.parse(start.gtid_set), start.events)
    checkpoints = KafkaCheckpoints(settings, sink)
    watcher = Watcher(ledger, checkpoints, sink, status, start, settings.streamer.stuck_after_seconds)
    notes = DdlNotes(settings)
    delivery = Delivery(ledger, sink, checkpoints, watcher, Patience(status, stop))
    made = Transforms(settings)
    kind = Stream if asked is None else partial(OutgoingStream, settings, made)
    stream = kind(
        connect=binlog.connect, decoder=binlog.decoder, delivery=delivery, watcher=watcher, status=status, ddl=notes,
        epoch=start.epoch, source="MySQL",
    )  # fmt: skip
    if start.seen_set:
        stream.seen = Seen(GtidSet.parse(start.seen_set), None if start.seen_elsewhere else start.place[1:])
    publish = partial(delivery.publish, topic="sales.schemas")
    stream.router = Router(settings, schemas or Schemas(), lambda wanted: [], publish, made.chain)
    file, prepared = FileWatch(settings, lambda found: None), PreparedXa()
    stream.swap = Swap(file, delivery, watcher, prepared, lambda old, new: (), stream.router.follow)
    return Rig(stream, ledger, sink, status, stop, watcher, checkpoints, file, prepared)
