"""The pipeline file's section `records`: what the records carry, and which others there are, beside the plain ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal, get_args

from pydantic import Field, field_validator

from contract.mistake import MistakeError
from contract.pipeline_kafka import Misfit, Section

if TYPE_CHECKING:
    from contract.pipeline import Pipeline

Header = Literal["op", "db", "table", "gtid", "file", "pos", "ts_ms", "schema", "seq"]


class Oversized(Section):
    """Where records go that are too large for Kafka."""

    target: str = Field(min_length=1, description="a folder, or a URL such as s3://bucket/folder")
    options: dict[str, Any] = Field(default_factory=dict, repr=False, description="of the URL's fsspec file system")


class DebeziumModes(Section):
    """How Debezium's records show what their types have no one form for: its own settings, and its defaults."""

    decimal: Literal["precise", "double", "string"] = Field("precise", description="decimal.handling.mode")
    time: Literal["adaptive_time_microseconds", "microseconds", "connect", "isostring"] = Field(
        "adaptive_time_microseconds", description="time.precision.mode"
    )
    bigint_unsigned: Literal["long", "precise"] = Field("long", description="bigint.unsigned.handling.mode")
    binary: Literal["bytes", "base64", "base64-url-safe", "hex"] = Field("bytes", description="binary.handling.mode")


class Records(Section):
    format: Literal["headrace", "debezium"] = Field("headrace", description="debezium: its JSON with schemas")
    debezium: DebeziumModes = DebeziumModes()
    headers: tuple[Header, ...] = Field((), description=f"of records of rows: some of {', '.join(get_args(Header))}")
    partition_by: Literal["key", "table", "single"] = Field("key", description="what chooses a record's partition")
    oversized: Oversized | None = Field(None, description="without it a record too large for Kafka stops the stream")
    heartbeat_seconds: float | None = Field(None, ge=0.1, description="a topic with a record so often, idle or not")
    tombstones: bool = Field(False, description="a record without a value behind each delete, under its key")
    transactions: bool = Field(False, description="a topic with the begin and end of each transaction")

    @field_validator("headers")
    @classmethod
    def _once(cls, headers: tuple[Header, ...]) -> tuple[Header, ...]:
        if len(set(headers)) < len(headers):
            raise MistakeError("names a header twice", "name each header once")
        return headers

    @property
    def asks(self) -> bool:
        """Whether records are to be more than the plain ones."""
        return self != Records()


def misfits(pipeline: Pipeline) -> Iterator[Misfit]:
    """What of the section does not go together."""
    asked = pipeline.records
    if asked.format == "debezium" and pipeline.lake.path:
        message = "does not go with a lake, which is fed from records of Headrace's own form"
        fix = "remove lake, or records.format; a second pipeline, of another name, can feed the lake beside this one"
        yield ("records", "format"), asked.format, message, fix
    if asked.format != "debezium" and asked.debezium != DebeziumModes():
        yield ("records", "debezium"), "", "is of format: debezium alone", "add format: debezium, or remove it"
