"""How every Kafka client of the streamer reaches the broker, and what its errors mean to the operator."""

from __future__ import annotations

import logging
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from contract.pipeline import Kafka
from streamer.delivery_errors import BrokerRefusedError, BrokerUnreachableError
from streamer.errors import HeadraceError

# What time or the broker's return mends.
AWAY = frozenset(
    {
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._TRANSPORT,
        KafkaError._TIMED_OUT,
        KafkaError._RESOLVE,
        KafkaError._WAIT_COORD,
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.BROKER_NOT_AVAILABLE,
        KafkaError.NETWORK_EXCEPTION,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_CONTROLLER,
    }
)


def settings(kafka: Kafka, **more: Any) -> dict[str, Any]:
    """librdkafka settings: where the broker is, the file's own `properties`, then `more`."""
    return {
        "bootstrap.servers": kafka.bootstrap,
        "client.id": "headrace",
        "allow.auto.create.topics": False,
        "reconnect.backoff.ms": 100,
        "reconnect.backoff.max.ms": 2000,
        # A broker that is away is told in our own words; the client would repeat its line every second.
        "log_level": 2,
        # A small request, and the end of a large one, does not wait until what is under way is acknowledged.
        "socket.nagle.disable": True,
        "logger": logging.getLogger("streamer.librdkafka"),
        **kafka.properties,
        **more,
    }


def admin(kafka: Kafka) -> AdminClient:
    return AdminClient(settings(kafka, **{"socket.timeout.ms": 10_000}))


def typed(error: Exception, operation: str, kafka: Kafka) -> HeadraceError:
    """The operator's words for an error of the client."""
    fault = error.args[0] if error.args else error
    if isinstance(fault, KafkaError) and fault.code() in AWAY:
        return BrokerUnreachableError(
            operation,
            f"Kafka at {kafka.bootstrap}",
            f"no broker answers ({fault.str()})",
            "Start the broker, or mend kafka.bootstrap in the pipeline file.",
        )
    text = fault.str() if isinstance(fault, KafkaError) else str(error)
    return BrokerRefusedError(
        operation,
        f"Kafka at {kafka.bootstrap}",
        text,
        "Mend the broker's rights and settings, or the pipeline file's section kafka (TLS and SASL: kafka.properties), "
        "then start again.",
    )


def answers(kafka: Kafka, seconds: float) -> None:
    """Returns when a broker has answered. Raises BrokerUnreachableError, BrokerRefusedError."""
    faults: list[KafkaError] = []
    client = AdminClient(settings(kafka, **{"socket.timeout.ms": 10_000, "error_cb": faults.append}))
    try:
        client.list_topics(timeout=seconds)
    except KafkaException as error:
        client.poll(0)
        refusal = next(filter(_is_refusal, faults), None)
        raise typed(KafkaException(refusal) if refusal else error, "asking", kafka) from None


def _is_refusal(fault: KafkaError) -> bool:
    """The request itself ends by its timeout, as if nobody answered."""
    if fault.code() == KafkaError._SSL:  # else a broker that starts or stops may have broken it off
        return "verif" in fault.str()
    return bool(fault.code() == KafkaError._AUTHENTICATION)


def has_topic(kafka: Kafka, topic: str, seconds: float) -> bool:
    """Raises as `answers`."""
    try:
        return topic in admin(kafka).list_topics(timeout=seconds).topics
    except KafkaException as error:
        raise typed(error, f"looking for topic {topic} of", kafka) from None
