"""The commit log: a compacted Kafka topic of released positions, one key a pipeline."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from contract import names
from contract.checkpoint import Checkpoint, CheckpointFormatError
from contract.pipeline import Pipeline
from contract.schema import TableSchema
from contract.superseded import UnreadableError, understood
from streamer import schemas
from streamer.delivery_errors import BrokerUnreachableError, CheckpointError
from streamer.kafka import broker, compacted
from streamer.kafka.transaction_errors import shared
from streamer.sinks.port import Sink

RETRY_SECONDS = 0.5
TAIL = 20  # offsets from the end among which the last checkpoint normally is; transaction markers take some


class KafkaCheckpoints:
    """Appends through the events' own sink, one record at a time: while the broker is away a stream of filtered
    transactions goes on, and must not fill the client's queue with positions."""

    def __init__(self, pipeline: Pipeline, sink: Sink) -> None:
        self._pipeline = pipeline
        self._sink = sink
        self._topic = names.commit_log_topic(pipeline)
        self._under_way: Checkpoint | None = None
        self._waiting: Checkpoint | None = None
        self.durable: Checkpoint | None = None
        self.failure: Any = None
        self.title = sink.title
        self.last_error = ""

    def load(self, stopping: Callable[[], bool] | None = None) -> Checkpoint | None:
        self.durable = last(self._pipeline, stopping)
        return self.durable

    def offer(self, checkpoint: Checkpoint) -> None:
        if self._under_way is not None:
            self._waiting = checkpoint
            return
        self._under_way = checkpoint
        self._send(checkpoint)

    def settled(self) -> bool:
        return self._under_way is None

    def schemas(self, stopping: Callable[[], bool] | None = None) -> list[TableSchema]:
        return schemas.read(self._pipeline, stopping)

    def keep(self, schema: TableSchema) -> None:
        """The sink put it into the topic that `schemas` reads."""

    def close(self) -> None:
        """It is the sink's."""

    def _send(self, checkpoint: Checkpoint) -> None:
        key = self._pipeline.name.encode()
        self._sink.send(self._topic, [key], [checkpoint.model_dump_json().encode()], self._acknowledge)

    def _acknowledge(self, error: Any, message: Any) -> None:
        if error is not None:
            self.failure = self.failure or error
            return
        self.durable, self._under_way, self._waiting = self._under_way, self._waiting, None
        if self._under_way is not None:
            self._send(self._under_way)


class TransactionalCheckpoints(KafkaCheckpoints):
    """The last one offered goes with the Kafka transaction that is committed next."""

    def offer(self, checkpoint: Checkpoint) -> None:
        self._waiting = checkpoint

    def settled(self) -> bool:
        return self._waiting is None and self._under_way is None

    def send(self) -> Checkpoint:
        """Puts it into the open transaction; the sink tells its fate with the transaction's."""
        assert self._waiting is not None
        self._under_way, self._waiting = self._waiting, None
        self._send(self._under_way)
        return self._under_way

    def committed(self) -> None:
        self.durable, self._under_way = self._under_way, None

    def _acknowledge(self, error: Any, message: Any) -> None:
        """Durable is what was committed; a record that is refused by itself never is."""
        if error is not None and self.failure is None and not shared(error):
            self.failure = error


def last(pipeline: Pipeline, stopping: Callable[[], bool] | None = None) -> Checkpoint | None:
    """The greatest checkpoint among the commit log's last records, None where it is empty.

    Raises CheckpointError for what is no checkpoint of this pipeline, BrokerUnreachableError, BrokerRefusedError.
    """
    topic = names.commit_log_topic(pipeline)
    key = pipeline.name.encode()
    for tail in (TAIL, None):
        records = compacted.read(pipeline.kafka, topic, tail, stopping)
        try:
            own = understood([one for one in records if one[0] == key], partial(_parse, topic=topic))
            if found := Checkpoint.greatest(own):
                return found
        except UnreadableError as error:
            cause = f"it is no checkpoint: {error}"
            raise CheckpointError("reading", f"the last record of {topic}", cause, schemas.TAKEN_BACK) from None
    return None


def _parse(value: bytes, topic: str) -> Checkpoint:
    try:
        return Checkpoint.read(value)
    except CheckpointFormatError as error:
        raise CheckpointError("reading", f"the last checkpoint in {topic}", str(error), "Nothing was sent.") from None


def read_checkpoint(pipeline: Pipeline, timeout_seconds: float = 10.0) -> Checkpoint | None:
    """One look at the commit log, for who is not the streamer; None where there is none yet, nor a topic.

    Raises as `last`; BrokerUnreachableError when no broker has answered within `timeout_seconds`. A topic that was
    made a moment ago has no leader yet: that is waited for too.
    """
    until = time.monotonic() + timeout_seconds
    while True:
        try:
            exists = broker.has_topic(pipeline.kafka, names.commit_log_topic(pipeline), timeout_seconds)
            return last(pipeline) if exists else None
        except BrokerUnreachableError:
            if time.monotonic() + RETRY_SECONDS >= until:
                raise
            time.sleep(RETRY_SECONDS)
