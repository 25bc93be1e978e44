"""The Kafka sink: an idempotent producer that never gives a record up while the broker is away."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer

from contract.pipeline import Pipeline
from streamer.delivery_errors import BrokerRefusedError, RecordTooLargeError
from streamer.kafka import broker
from streamer.sinks.port import Callback, Headers

KAFKA = "Kafka"
QUEUE_FULL_WAIT_SECONDS = 0.1
METADATA_SECONDS = 3.0
HASTE_SECONDS = 0.001  # as long the client may look for what waits; the broker's answers are not waited for
UNASSIGNED = -1  # the partitioner decides, by the key


class KafkaSink:
    """Records without a key all go to partition 0: so they stay in order, and come there again on a replay."""

    def __init__(self, pipeline: Pipeline, **more: Any) -> None:
        kafka, bounds = pipeline.kafka, pipeline.streamer.ledger
        self._pipeline = pipeline
        self.title = KAFKA
        self.last_error = ""
        self._producer = broker.made(
            Producer,
            broker.settings(
                kafka,
                **{
                    "enable.idempotence": True,
                    # A leader that is not ready refuses a batch and may take the next: the client then holds both for
                    # delivered (KAFKA-15591). So the next one waits for its answer.
                    "max.in.flight": 1,
                    # Nothing may pass a record that the broker gives up: sent again later it would come behind what
                    # follows it, where the lake takes it for a duplicate.
                    "enable.gapless.guarantee": True,
                    "acks": "all",
                    "partitioner": "murmur2_random",  # the Java clients' default
                    "message.timeout.ms": 0,  # for ever: a broker that is away is waited for
                    "message.max.bytes": kafka.max_message_bytes,
                    "compression.type": kafka.compression,
                    "linger.ms": kafka.linger_ms,
                    "batch.size": 1_000_000,
                    # The ledger is the bound; the client's own queue only has to be larger.
                    "queue.buffering.max.messages": 2 * bounds.max_events + 100_000,
                    "queue.buffering.max.kbytes": 2 * bounds.max_bytes // 1024 + 65_536,
                    "error_cb": self._on_error,
                    **more,
                },
            ),
        )
        self._produce = self._producer.produce

    def send(self, topic: str, keys: Sequence[bytes | None], values: Sequence[bytes], callback: Callback) -> None:
        produce = self._produce
        # Most transactions are of one row, of which a zip would take a tenth of what producing it takes.
        for key, value in zip(keys, values, strict=True) if len(values) != 1 else ((keys[0], values[0]),):
            try:
                produce(topic, value, key, UNASSIGNED if key is not None else 0, callback)
            except BufferError:
                self._produce_late(topic, value, key, callback)
            except KafkaException as error:
                raise self._refused(error, topic, len(value) + len(key or b"")) from None

    def send_one(
        self, topic: str, key: bytes | None, value: bytes | None, callback: Callback, headers: Headers = (),
        partition: int | None = None,
    ) -> None:  # fmt: skip
        self._produce_late(topic, value, key, callback, partition, list(headers) or None)

    def partitions(self, topic: str) -> int:
        try:
            found = self._producer.list_topics(topic, timeout=METADATA_SECONDS).topics[topic]
        except KafkaException as error:
            self.last_error = error.args[0].str()
            return 0
        return len(found.partitions)

    def send_everywhere(self, topic: str, key: bytes | None, value: bytes, partitions: int, callback: Callback) -> None:
        for number in range(partitions):
            self._produce_late(topic, value, key, callback, number)

    def poll(self, seconds: float) -> None:
        """Serves the delivery callbacks. Raises BrokerRefusedError once a record was given up for good."""
        try:
            self._producer.poll(seconds)
        except KafkaException as error:  # how the client tells that it stopped rather than leave a gap
            raise self._stopped(error) from None

    def flush(self, seconds: float) -> int:
        try:
            return int(self._producer.flush(seconds))
        except KafkaException as error:
            raise self._stopped(error) from None

    def hasten(self) -> None:
        self.flush(HASTE_SECONDS)

    def probe(self, seconds: float) -> bool:
        try:
            self._producer.list_topics(timeout=seconds)
        except KafkaException as error:
            self.last_error = error.args[0].str()
            return False
        self.last_error = ""
        return True

    def close(self) -> None:
        self._producer.purge()
        with suppress(KafkaException):  # a client that stopped has said so before
            self._producer.poll(0)

    def _produce_late(
        self, topic: str, value: bytes | None, key: bytes | None, callback: Callback, partition: int | None = None,
        headers: Any = None,
    ) -> None:  # fmt: skip
        """`partition` None: the key's, or 0 without one."""
        if partition is None:
            partition = UNASSIGNED if key is not None else 0
        more = {"headers": headers} if headers else {}
        while True:
            try:
                return self._produce(topic, value, key, partition, callback, **more)
            except BufferError:
                self.poll(QUEUE_FULL_WAIT_SECONDS)
            except KafkaException as error:
                raise self._refused(error, topic, len(value or b"") + len(key or b"")) from None

    def _refused(self, error: KafkaException, topic: str, size: int) -> Exception:
        limit = self._pipeline.kafka.max_message_bytes
        if error.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE:
            return RecordTooLargeError(
                "sending a record to",
                f"topic {topic}",
                f"it has {size:,} bytes, kafka.max_message_bytes allows {limit:,}",
                "Raise kafka.max_message_bytes in the pipeline file and max.message.bytes of the topic, then start "
                "again: the stream goes on with this record. Nothing after it was passed on.",
            )
        if error.args[0].fatal():
            return self._stopped(error)
        return BrokerRefusedError("sending a record to", f"topic {topic}", error.args[0].str(), "See the broker's log.")

    def _stopped(self, error: KafkaException) -> Exception:
        return BrokerRefusedError(
            "delivering to",
            "Kafka",
            f"a record was given up for good: {error.args[0].str()}",
            "Nothing after it was passed on. Mend the topic (does it exist, is it large enough, may the client write?) "
            "and start again: the stream goes on from the last checkpoint and sends the record again.",
        )

    def _on_error(self, error: Any) -> None:
        """Called from `poll`: the broker's connections as a whole, never a record's fate."""
        self.last_error = error.str()
