"""What the producer gathers goes out when the source rests, however long it may gather."""

from __future__ import annotations

import time
from statistics import median

from confluent_kafka import Consumer, TopicPartition

from stack.kafka import Kafka
from stack.mysql import MySQL
from tests.integration.streaming import Make, execute

LINGER_SECONDS = 1.0


def test_a_change_does_not_wait_for_company_while_the_source_rests(make: Make, mysql: MySQL, kafka: Kafka) -> None:
    streamer = make("lingers", delivery="at_least_once", kafka_more=f", linger_ms: {LINGER_SECONDS * 1000:.0f}")
    streamer.started()
    execute(mysql, "CREATE TABLE lingers.rests (id INT PRIMARY KEY)", "INSERT INTO lingers.rests VALUES (0)")
    streamer.wait_until_released()
    consumer = Consumer({"bootstrap.servers": kafka.address, "group.id": "lingers", "enable.auto.commit": False})
    try:
        consumer.assign([TopicPartition("lingers.lingers.rests", partition, 0) for partition in range(2)])
        assert consumer.poll(20) is not None
        took = []
        for number in range(1, 6):
            execute(mysql, f"INSERT INTO lingers.rests VALUES ({number})")
            began = time.monotonic()
            assert consumer.poll(20) is not None
            took.append(time.monotonic() - began)
        assert median(took) < LINGER_SECONDS / 2, took
    finally:
        consumer.close()
    assert streamer.stop() == 0
