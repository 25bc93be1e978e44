"""What the errors of a transactional producer mean: begin again, another streamer, or a person."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, KafkaException

from streamer.delivery_errors import BrokerRefusedError, FencedError, RecordTooLargeError, TransactionLostError
from streamer.errors import HeadraceError
from streamer.kafka.transaction_errors import shared
from streamer.sinks.kafka_transactions import TransactionalKafkaSink
from tests.streamer.fakes import pipeline


@pytest.fixture(scope="module")
def sink() -> TransactionalKafkaSink:
    return TransactionalKafkaSink(pipeline())


def error(code: int, fatal: bool = False, retriable: bool = False, abort: bool = False) -> KafkaException:
    return KafkaException(KafkaError(code, "a reason", fatal, retriable, abort))


@pytest.mark.parametrize(
    ("found", "means"),
    [
        (error(KafkaError._FENCED, fatal=True), FencedError),
        (error(KafkaError.INVALID_PRODUCER_EPOCH, abort=True), FencedError),
        (error(KafkaError._FATAL, fatal=True), FencedError),
        (error(KafkaError._INCONSISTENT, abort=True), TransactionLostError),
        (error(KafkaError.TRANSACTION_ABORTABLE, abort=True), TransactionLostError),
        (error(KafkaError.INVALID_PRODUCER_ID_MAPPING, abort=True), TransactionLostError),
        (error(KafkaError.NOT_ENOUGH_REPLICAS, retriable=True, abort=True), TransactionLostError),
        (error(KafkaError.TOPIC_AUTHORIZATION_FAILED, abort=True), BrokerRefusedError),
        (error(KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, fatal=True), BrokerRefusedError),
        (error(KafkaError.UNSUPPORTED_VERSION, fatal=True), BrokerRefusedError),
    ],
)
def test_an_error_of_a_commit(sink: TransactionalKafkaSink, found: KafkaException, means: type[HeadraceError]) -> None:
    assert type(sink._lost(found)) is means


def test_a_record_that_is_too_large_is_its_own_fault(sink: TransactionalKafkaSink) -> None:
    assert type(sink._refused(error(KafkaError.MSG_SIZE_TOO_LARGE), "t", 9)) is RecordTooLargeError
    assert not shared(KafkaError(KafkaError.MSG_SIZE_TOO_LARGE))


def test_a_record_that_comes_after_the_fault_asks_for_its_reason(
    sink: TransactionalKafkaSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Producer:
        def begin_transaction(self) -> None:
            raise error(KafkaError._STATE)

        def commit_transaction(self, seconds: float) -> None:
            raise error(KafkaError.TOPIC_AUTHORIZATION_FAILED, abort=True)

    monkeypatch.setattr(sink, "_producer", Producer())
    assert type(sink._refused(error(KafkaError._STATE), "t", 9)) is BrokerRefusedError


def test_what_ended_the_producer_counts_and_not_what_a_call_says_then(
    sink: TransactionalKafkaSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit that was under way while another took the id: the broker's answer may be one that nobody knows."""

    class Producer:
        def begin_transaction(self) -> None:
            raise error(KafkaError._FENCED, fatal=True)

    monkeypatch.setattr(sink, "_producer", Producer())
    assert type(sink._lost(error(KafkaError.UNKNOWN))) is FencedError
