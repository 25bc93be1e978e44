"""What the machine and its broker give at best: records of a bare producer, seen by a bare consumer, at the same pace
and in the same minute as the streamer's. What a figure of the streamer is above this one is its own share.
"""

from __future__ import annotations

import time
from multiprocessing import Process
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from stack.kafka import Kafka

BESIDE = "{}.positions"  # the second topic of a Kafka transaction, as the streamer's commit log is


def reader(kafka: Kafka, topic: str) -> Consumer:
    """Of a topic's one partition from its beginning; waits for committed records, and takes each as it comes."""
    settings = {"bootstrap.servers": kafka.address, "group.id": topic, "isolation.level": "read_committed"}
    consumer = Consumer({**settings, "enable.auto.commit": False, "socket.nagle.disable": True})
    consumer.assign([TopicPartition(topic, 0, 0)])
    return consumer


def ping(kafka: Kafka, topic: str, count: int, rate: float, transactions: bool) -> list[float]:
    """Milliseconds from before the produce call until the record is read, of `count` records, `rate` a second.
    `transactions`: each in a Kafka transaction of its own, with one for a second topic. Raises SystemExit."""
    admin = AdminClient({"bootstrap.servers": kafka.address})
    for made in admin.create_topics([NewTopic(topic, 1, 1), NewTopic(BESIDE.format(topic), 1, 1)]).values():
        made.result()
    sender = Process(target=_commit if transactions else _produce, args=(kafka.address, topic, count, rate))
    sender.start()
    consumer = reader(kafka, topic)
    found: list[float] = []
    until = time.monotonic() + count / rate * 2 + 30
    while len(found) < count and time.monotonic() < until:
        message = consumer.poll(1)
        if message is not None and not message.error():
            found.append((time.time_ns() - int(message.value() or b"0")) / 1e6)
    consumer.close()
    sender.join()
    if len(found) < count:
        raise SystemExit(f"{len(found)} of {count} records arrived in {topic}")
    return found


def _produce(address: str, topic: str, count: int, rate: float) -> None:
    producer = Producer(_settings(address))
    began = time.monotonic()
    for n in range(count):
        time.sleep(max(0.0, began + n / rate - time.monotonic()))
        producer.produce(topic, str(time.time_ns()))
        producer.poll(0)
    producer.flush(30)


def _commit(address: str, topic: str, count: int, rate: float) -> None:
    producer = Producer({**_settings(address), "transactional.id": topic})
    producer.init_transactions(30)
    began = time.monotonic()
    for n in range(count):
        time.sleep(max(0.0, began + n / rate - time.monotonic()))
        producer.begin_transaction()
        producer.produce(topic, str(time.time_ns()))
        producer.produce(BESIDE.format(topic), b"{}")
        producer.commit_transaction(30)


def _settings(address: str) -> dict[str, Any]:
    nothing_waits = {"linger.ms": 0, "socket.nagle.disable": True}
    return {"bootstrap.servers": address, "enable.idempotence": True, "acks": "all", **nothing_waits}
