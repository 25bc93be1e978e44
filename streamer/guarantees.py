"""What `streamer.delivery` promises, put together: sink, checkpoints and delivery of each of the two guarantees."""

from __future__ import annotations

import uuid
from functools import partial

from contract.checkpoint import Checkpoint
from contract.pipeline import Pipeline
from streamer import outputs
from streamer.checkpoints.kafka import TransactionalCheckpoints
from streamer.control.status import Status
from streamer.delivery import Delivery
from streamer.exactly_once import PERIOD_SECONDS, ExactlyOnce, TransactionalWatcher
from streamer.ledger import Ledger
from streamer.patience import Patience
from streamer.sinks.kafka import KAFKA
from streamer.sinks.kafka_transactions import TransactionalKafkaSink
from streamer.watcher import Watcher

BEGIN_SECONDS = 5.0


class AtLeastOnce:
    """What was not acknowledged before a crash is sent again."""

    def __init__(self, pipeline: Pipeline, status: Status, patience: Patience) -> None:
        self._pipeline = pipeline
        self._status = status
        self._patience = patience
        self.sink, self.checkpoints = outputs.open_outputs(pipeline)

    def begin(self) -> None:
        """Before the commit log is read. Raises Stopping, HeadraceError."""

    def delivery(self, ledger: Ledger, start: Checkpoint, first: bool) -> Delivery:
        """From that checkpoint on, which is offered where it is the first of its kind."""
        stuck_after = self._pipeline.streamer.stuck_after_seconds
        watcher = Watcher(ledger, self.checkpoints, self.sink, self._status, start, stuck_after)
        if first:
            self.checkpoints.offer(start)
        return Delivery(ledger, self.sink, self.checkpoints, watcher, self._patience)


class ExactlyOnceKafka:
    """Readers of committed records see each change once. The first checkpoint of a run says whose the pipeline is.

    `careful`: each MySQL transaction has a Kafka transaction of its own.
    """

    def __init__(self, pipeline: Pipeline, status: Status, patience: Patience, careful: bool) -> None:
        self._period = 0.0 if careful else PERIOD_SECONDS
        self._pipeline = pipeline
        self._status = status
        self._patience = patience
        self.sink = TransactionalKafkaSink(pipeline)
        self.checkpoints = TransactionalCheckpoints(pipeline, self.sink)

    def begin(self) -> None:
        """Nothing of a streamer before this one comes to the topics any more."""
        self._patience.until_answered(partial(self.sink.begin, BEGIN_SECONDS), KAFKA)

    def delivery(self, ledger: Ledger, start: Checkpoint, first: bool) -> Delivery:
        """From that checkpoint on, which is offered in any case: it tells of this run."""
        stuck_after = self._pipeline.streamer.stuck_after_seconds
        start = start.model_copy(update={"run": RUN})
        watcher = TransactionalWatcher(ledger, self.checkpoints, self.sink, self._status, start, stuck_after)
        self.checkpoints.offer(start)
        half = self._pipeline.kafka.transaction_timeout_seconds / 2
        return ExactlyOnce(
            ledger, self.sink, self.checkpoints, watcher, self._patience, stuck_after, self._period, half
        )


RUN = uuid.uuid4().hex
Guarantee = AtLeastOnce | ExactlyOnceKafka


def chosen(pipeline: Pipeline, status: Status, patience: Patience, careful: bool) -> Guarantee:
    """`careful` is of exactly-once delivery alone: where each acknowledgement counts there is nothing to take back."""
    if pipeline.delivery == "at_least_once":
        return AtLeastOnce(pipeline, status, patience)
    return ExactlyOnceKafka(pipeline, status, patience, careful)
