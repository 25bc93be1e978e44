"""Which of a pipeline's streamers is the active one: Kafka's consumer groups elect it.

All are members of one group on the commit log, whose one partition is assigned to one of them. A member that is gone,
frozen or cut off loses it when its session ends; who held it keeps it when another joins. The election says who may
begin: that nobody else writes, the transactional id sees to.
"""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException

from contract import names
from contract.pipeline import Pipeline
from streamer.delivery_errors import DeposedError
from streamer.errors import HeadraceError
from streamer.kafka import broker

SESSION_SECONDS = 6  # the least that brokers allow
# A member hears by the answer to its next one that the other is gone: that is a part of the time to take over.
HEARTBEAT_MS = 500
POLL_SECONDS = 0.2
REFUSED = frozenset(
    {
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError._AUTHENTICATION,
    }
)


class Election:
    """A membership, for as long as the block lasts; leaving it is told at once."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._leads = threading.Event()
        self._over = threading.Event()
        self._fault: Any = None
        self._thread = threading.Thread(target=self._poll, name="election", daemon=True)
        self._consumer = broker.made(
            Consumer,
            broker.settings(
                pipeline.kafka,
                **{
                    "group.id": names.election_group(pipeline),
                    "group.protocol": "classic",
                    "partition.assignment.strategy": "cooperative-sticky",
                    "session.timeout.ms": SESSION_SECONDS * 1000,
                    "heartbeat.interval.ms": HEARTBEAT_MS,
                    "enable.auto.commit": False,
                    "auto.offset.reset": "latest",
                    "error_cb": lambda error: None,  # the streamer tells by itself what the broker does
                },
            ),
        )

    def __enter__(self) -> Election:
        self._consumer.subscribe(
            [names.commit_log_topic(self._pipeline)],
            on_assign=self._assigned,
            on_revoke=self._revoked,
            on_lost=self._revoked,
        )
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()
        self._consumer.close()

    def elected(self, seconds: float) -> bool:
        """Whether this one is the active streamer; waits for it up to `seconds`."""
        return self._leads.wait(seconds)

    def check(self) -> None:
        """Raises DeposedError where it is not any more."""
        if not self._leads.is_set():
            raise DeposedError(
                "delivering",
                f"pipeline {self._pipeline.name}",
                "it is not the elected streamer any more",
                "This one stands by; nothing need be done.",
            )

    def _poll(self) -> None:
        while not self._over.is_set():
            try:
                message = self._consumer.poll(POLL_SECONDS)
                fault = message.error() if message is not None else None
            except KafkaException as error:
                fault = error.args[0]
            if fault is not None and fault.code() != KafkaError._PARTITION_EOF:
                self._fault = fault

    def error(self) -> HeadraceError | None:
        """That Kafka lets this user take no part, if it said so since the last time."""
        fault, self._fault = self._fault, None
        if fault is None or fault.code() not in REFUSED:  # the client mends everything else by joining again
            return None
        return broker.typed(KafkaException(fault), "electing the active streamer at", self._pipeline.kafka)

    def _assigned(self, consumer: Consumer, partitions: list[Any]) -> None:
        consumer.incremental_assign(partitions)
        consumer.pause(partitions)  # its records are read elsewhere
        if _first(partitions):
            self._leads.set()

    def _revoked(self, consumer: Consumer, partitions: list[Any]) -> None:
        if _first(partitions):
            self._leads.clear()


def _first(partitions: list[Any]) -> bool:
    """Whether the one that counts is among them: a commit log that was made by hand may have more."""
    return any(one.partition == 0 for one in partitions)
