"""The limit of Kafka's records, and dead letters that would be beyond it."""

from __future__ import annotations

from contract import dead_letter
from contract.pipeline import Pipeline
from streamer.outgoing.record import Outgoing

ENVELOPE_BYTES = 1_024  # of a Kafka record and its batch, beside key, value and headers


def limit(pipeline: Pipeline) -> int:
    """Bytes of a record's key, value and headers."""
    return pipeline.kafka.max_message_bytes - ENVELOPE_BYTES


def too_large(record: Outgoing, limit: int, headers: int = 0) -> bool:
    """`headers`: about how many bytes of them the record will have."""
    return record.size + len(record.key or b"") + headers > limit


def without_value(letter: Outgoing, **instead: object) -> Outgoing:
    """As `dead_letter.without_value`."""
    assert letter.value is not None
    return Outgoing(letter.topic, letter.key, dead_letter.without_value(letter.value, **instead), event=False)
