"""The pipeline file's section `kafka`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from contract import topic_template

Cleanup = Literal["delete", "compact", "compact,delete"]
Misfit = tuple[tuple[str | int, ...], str, str, str]  # of a section: key, value, message, fix

# librdkafka settings that `properties` may not hold, with the reason.
NO_COMMAND = re.compile(r"[\w/][\w./@:-]*", re.ASCII)
LOSES = "set otherwise, changes could be lost or change places"
READS = "the positions of a pipeline are its own, kept in its commit log"
RUNS = "it has librdkafka load a library or run a command, and a pipeline file names no such code"
NO_TEXT = "it takes no text, and a file can give no other"
REFUSED = {
    **dict.fromkeys(
        (
            "acks",
            "request.required.acks",
            "enable.idempotence",
            "enable.gapless.guarantee",
            "max.in.flight",
            "max.in.flight.requests.per.connection",
            "message.send.max.retries",
            "retries",
            "message.timeout.ms",
            "delivery.timeout.ms",
            "transactional.id",
            "queuing.strategy",
            "partitioner",
            "isolation.level",
        ),
        LOSES,
    ),
    **dict.fromkeys(
        (
            "group.id",
            "group.instance.id",
            "auto.offset.reset",
            "enable.auto.commit",
            "enable.auto.offset.store",
            "enable.partition.eof",
        ),
        READS,
    ),
    **dict.fromkeys(
        (
            "plugin.library.paths",
            "ssl.engine.location",
            "ssl.engine.id",
            "ssl.providers",
            "sasl.kerberos.kinit.cmd",
        ),
        RUNS,
    ),
    "allow.auto.create.topics": "a topic that the broker makes by itself has not the pipeline's settings",
    "bootstrap.servers": "kafka.bootstrap says it",
    "metadata.broker.list": "kafka.bootstrap says it",
    "compression.type": "kafka.compression says it",
    "compression.codec": "kafka.compression says it",
    "linger.ms": "kafka.linger_ms says it",
    "queue.buffering.max.ms": "kafka.linger_ms says it",
    "transaction.timeout.ms": "kafka.transaction_timeout_seconds says it",
    "message.max.bytes": "kafka.max_message_bytes says it",
    "queue.buffering.max.messages": "streamer.ledger says it",
    "queue.buffering.max.kbytes": "streamer.ledger says it",
    "batch.size": "the streamer sets it",
    "fetch.wait.max.ms": "the streamer sets it",
    "logger": "the streamer sets it",
    "delivery.report.only.error": "the streamer waits for every record's acknowledgement",
    **dict.fromkeys(
        ("on_delivery", "on_commit", "default.topic.config", "opaque", "interceptors", "ssl_engine_callback_data"),
        NO_TEXT,
    ),
}


def refusal(key: str, value: str) -> str | None:
    """Why `properties` may not hold the key with that value; None where it may."""
    if key not in REFUSED and key.startswith("sasl.kerberos.") and not NO_COMMAND.fullmatch(value):
        return "librdkafka puts the value into a shell's command, so it may hold letters, digits and ._/@:- alone"
    return NO_TEXT if key.endswith("_cb") else REFUSED.get(key)


class Section(BaseModel):
    """A part of the file: a key that it does not know is a mistake."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    @field_validator("*", mode="before")
    @classmethod
    def _no_switch_for_a_number(cls, given: Any, info: ValidationInfo) -> Any:
        """YAML makes one of `yes` and `on`, and Python's is a number, too."""
        if isinstance(given, bool) and _counts(cls.model_fields[str(info.field_name)].annotation):
            raise PydanticCustomError("number", "is true or false (or yes, no, on, off), and no number")
        return given


def _counts(annotation: Any) -> bool:
    """Whether the field takes a number."""
    return annotation in (int, float) or any(one == 1 or _counts(one) for one in get_args(annotation))


class Kafka(Section):
    """The broker, and the configuration with which topics are made and checked."""

    bootstrap: str = Field("", pattern=r"^[^\s:,]+:\d+(,[^\s:,]+:\d+)*$", description="host:port[,host:port]")
    topic: str = Field("{pipeline}.{db}.{table}", description="template; fields: pipeline, db, table")
    earlier_topics: tuple[str, ...] = Field((), description="what topic was before: the lake reads those topics, too")
    partitions: int = Field(2, ge=1, le=10_000)
    replication: int = Field(1, ge=1, le=10)
    retention_hours: int = Field(168, ge=1, description="above the longest pause of compaction")
    cleanup: Cleanup = Field("delete", description="of event topics; those of which a lake is fed need delete")
    compression: Literal["none", "lz4", "zstd", "snappy", "gzip"] = "lz4"
    linger_ms: float = Field(5.0, ge=0, le=1000)
    transaction_timeout_seconds: int = Field(
        600, ge=1, le=86_400, description="exactly_once: when the broker gives up a transaction that does not end"
    )
    max_message_bytes: int = Field(10_485_760, ge=1024, le=1_000_000_000)
    properties: dict[str, str] = Field(default_factory=dict, repr=False, description="further librdkafka settings")

    @field_validator("topic")
    @classmethod
    def _fields(cls, template: str) -> str:
        topic_template.check(template)
        return template

    @field_validator("earlier_topics")
    @classmethod
    def _earlier_fields(cls, templates: tuple[str, ...]) -> tuple[str, ...]:
        for template in templates:
            topic_template.check(template)
        return templates

    @property
    def templates(self) -> tuple[str, ...]:
        """By which tables' topics are named, and were before; today's is the first."""
        return tuple(dict.fromkeys((self.topic, *self.earlier_topics)))

    def unnamed(self, templates: Iterable[str]) -> list[str]:
        """Those by which topics were named and of which the file says nothing: nobody would read these topics."""
        return [template for template in templates if template not in self.templates]

    @field_validator("properties")
    @classmethod
    def _allowed(cls, properties: dict[str, str]) -> dict[str, str]:
        mistakes: list[InitErrorDetails] = [
            InitErrorDetails(
                type=PydanticCustomError("refused", "is refused: {reason}", {"reason": why, "fix": "remove it"}),
                loc=(key,),
                input=None,
            )
            for key, value in properties.items()
            if (why := refusal(key, value))
        ]
        if mistakes:
            raise ValidationError.from_exception_data("Kafka", mistakes, hide_input=True)
        return properties
