"""The pipeline file's section `snapshot`: how tables are read, and how much of their server that may take."""

from __future__ import annotations

from pydantic import Field, field_validator

from contract.pipeline_kafka import Section
from contract.pipeline_source import address


class Snapshot(Section):
    parallelism: int = Field(2, ge=1, le=64, description="chunks read at the same time")
    chunk_rows: int = Field(100_000, ge=100)
    max_rows_per_second: int | None = Field(None, ge=100, description="of all readers together")
    max_threads_running: int | None = Field(None, ge=2, description="the server's Threads_running, this reader's among")
    replica: str | None = Field(None, description="a replica of source.host, as host or host:port: rows are read there")
    max_replica_lag_seconds: float | None = Field(None, gt=0, description="of the replica that is read")
    reread_stale: bool = Field(
        False, description="stale tables are read again by a snapshot that the compaction DAG, or quality's, starts"
    )
    to_kafka: bool = Field(False, description="rows go as records of op r to a topic of their own, too")

    @field_validator("replica")
    @classmethod
    def _address(cls, given: str | None) -> str | None:
        if given is not None:
            address(given)
        return given
