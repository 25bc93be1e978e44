"""Pitfall: a partition whose leader is not ready refuses a producer's first batch, and takes the next one if that is
under way already. A broker that knows nothing of the producer takes any number of a first batch (KAFKA-15591, until
4.5), and the client then holds the first one for delivered, too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from stack.kafka import Kafka
from streamer.kafka import topics
from streamer.sinks.kafka import KafkaSink
from streamer.sinks.kafka_transactions import TransactionalKafkaSink
from tests.integration.proxied_kafka import proxied
from tests.integration.refusing_proxy import RefusingProxy
from tests.integration.test_sinks_kafka import pipeline
from tests.integration.topic_records import records

TOPIC = "refusing.shop.orders"


@pytest.fixture(scope="module")
def refusing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Kafka, RefusingProxy]]:
    with proxied(tmp_path_factory.mktemp("refusing"), RefusingProxy) as found:
        yield found


@pytest.fixture(params=[KafkaSink, TransactionalKafkaSink])
def kind(request: pytest.FixtureRequest) -> type[KafkaSink]:
    found: type[KafkaSink] = request.param
    return found


def test_a_first_batch_that_is_refused_is_sent_again_before_the_next(
    refusing: tuple[Kafka, RefusingProxy], kind: type[KafkaSink]
) -> None:
    kafka, proxy = refusing
    topic = f"{TOPIC}.{kind.__name__}"
    there = pipeline(kafka, "refusing")
    topics.ensure(there, [topics.Wanted(topic, 1, 1, {"cleanup.policy": "delete"})])
    through = there.kafka.model_copy(update={"bootstrap": f"127.0.0.1:{proxy.port}"})
    sink = kind(there.model_copy(update={"kafka": through}))
    if isinstance(sink, TransactionalKafkaSink):
        sink.begin(30)
    proxy.refuse(topic)
    told: list[Any] = []
    sink.send(topic, [b'{"id":1}'], [b'{"n":1}'], lambda error, _: told.append(error))
    while not proxy.refused.is_set():
        sink.flush(0.01)
    sink.send(topic, [b'{"id":1}'], [b'{"n":2}'], lambda error, _: told.append(error))
    assert sink.flush(30) == 0
    if isinstance(sink, TransactionalKafkaSink):
        assert sink.commit(30)
    sink.close()
    assert told == [None, None]
    assert [record.value["n"] for record in records(kafka, topic)] == [1, 2]
    assert proxy.meanwhile == 0, "the next one waits for the first one's answer"
