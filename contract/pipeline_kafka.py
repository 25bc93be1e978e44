"""The pipeline file's section `kafka`."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from contract import topic_template


class Section(BaseModel):
    """A part of the file: a key that it does not know is a mistake."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class Kafka(Section):
    """The broker, and the configuration with which topics are made and checked."""

    bootstrap: str = Field(pattern=r"^[^\s:,]+:\d+(,[^\s:,]+:\d+)*$", description="host:port[,host:port]")
    topic: str = Field("{pipeline}.{db}.{table}", description="template; fields: pipeline, db, table")
    partitions: int = Field(2, ge=1, le=10_000)
    replication: int = Field(1, ge=1, le=10)
    retention_hours: int = Field(168, ge=1, description="above the longest pause of compaction")
    compression: Literal["none", "lz4", "zstd", "snappy", "gzip"] = "lz4"
    linger_ms: float = Field(5.0, ge=0, le=1000)
    max_message_bytes: int = Field(10_485_760, ge=1024)
    properties: dict[str, str] = Field(default_factory=dict, description="further librdkafka settings")

    @field_validator("topic")
    @classmethod
    def _fields(cls, template: str) -> str:
        topic_template.check(template)
        return template
