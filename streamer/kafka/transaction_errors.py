"""What the errors of a transactional producer are about: the producer, its transaction, or one record."""

from __future__ import annotations

from typing import Any

from confluent_kafka import KafkaError

# The words to a producer that another has followed, or whose transaction the broker gave up after its timeout.
FENCED = frozenset(
    {
        KafkaError._FATAL,  # the client's, once it has told the reason
        KafkaError._FENCED,
        KafkaError.PRODUCER_FENCED,
        KafkaError.INVALID_PRODUCER_EPOCH,
        KafkaError.FENCED_INSTANCE_ID,
    }
)
# What a record's acknowledgement says that only shares its transaction's fate.
SHARED = FENCED | {
    KafkaError._PURGE_QUEUE,
    KafkaError._PURGE_INFLIGHT,
    KafkaError._STATE,
    KafkaError._TIMED_OUT,
    KafkaError._MSG_TIMED_OUT,
    KafkaError.UNKNOWN_PRODUCER_ID,
    KafkaError.INVALID_PRODUCER_ID_MAPPING,
    KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER,
    KafkaError.INVALID_TXN_STATE,
    KafkaError.CONCURRENT_TRANSACTIONS,
    KafkaError.TRANSACTION_ABORTABLE,
}


# What ends a transaction without being its records' fault.
LOST = SHARED | {KafkaError._INCONSISTENT, KafkaError.TRANSACTION_COORDINATOR_FENCED}


def shared(error: Any) -> bool:
    """Whether an acknowledgement's error is of the transaction as a whole, not of the record."""
    return isinstance(error, KafkaError) and error.code() in SHARED
