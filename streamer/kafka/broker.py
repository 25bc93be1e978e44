"""How every Kafka client of the streamer reaches the broker, and what its errors mean to the operator."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from contract.pipeline import Kafka, Pipeline
from contract.pipeline_file import problem_at
from streamer.delivery_errors import BrokerRefusedError, BrokerUnreachableError
from streamer.errors import HeadraceError

Client = TypeVar("Client")
MEND = "Mend the section kafka of the pipeline file (kafka.properties), then start again."
FIX = "see librdkafka's list of settings (CONFIGURATION.md) for the name and what it takes"
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


def made(kind: Callable[[dict[str, Any]], Client], wanted: dict[str, Any]) -> Client:
    """A client with these settings. Raises BrokerRefusedError where the client library does not take them: a start has
    told of it by `check`, with the line."""
    try:
        return kind(wanted)
    except KafkaException as error:
        where = f"Kafka at {wanted['bootstrap.servers']}"
        raise BrokerRefusedError("making a client for", where, error.args[0].str().strip(), MEND) from None


def check(pipeline: Pipeline) -> None:
    """Raises PipelineFileError where the client library does not take what `kafka.properties` says: a name that it does
    not know, a value that it cannot use, a file that is not there."""
    try:
        Producer(settings(pipeline.kafka))
    except KafkaException as error:
        text = error.args[0].str().strip()
        named = next((key for key in pipeline.kafka.properties if key in text), None)
        at = ("kafka", "properties", *([named] if named else []))
        raise problem_at(pipeline.path, at, f"is refused by Kafka's client: {text}", "", FIX) from None


def admin(kafka: Kafka) -> AdminClient:
    return made(AdminClient, settings(kafka, **{"socket.timeout.ms": 10_000}))


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
    client = made(AdminClient, settings(kafka, **{"socket.timeout.ms": 10_000, "error_cb": faults.append}))
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
    return topic in topics_of(kafka, seconds)


def topics_of(kafka: Kafka, seconds: float) -> set[str]:
    """The names of all that are there. Raises as `answers`."""
    try:
        return set(admin(kafka).list_topics(timeout=seconds).topics)
    except KafkaException as error:
        raise typed(error, "looking for topics of", kafka) from None
