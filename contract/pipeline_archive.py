"""The pipeline file's section `archive`: where `headrace archive` keeps the server's binlog files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import Field, model_validator

from contract.mistake import MistakeError
from contract.pipeline_kafka import Section
from contract.pipeline_source import Source

LARGEST_ID = 4294967295


class Archive(Section):
    """`target`: a folder, or an fsspec URL of an object store, which needs a local `spool` for the open file."""

    target: str = Field(min_length=1, description="a folder, or a URL such as s3://bucket/folder")
    spool: Path | None = Field(None, description="a local folder, where target is a URL")
    server_id: int | None = Field(None, ge=1, le=LARGEST_ID, description="unique among the server's replicas")
    upload_seconds: float = Field(300.0, ge=1, le=86_400, description="how often the open file is uploaded")
    options: dict[str, Any] = Field(default_factory=dict, repr=False, description="of the URL's fsspec file system")

    @model_validator(mode="after")
    def _a_spool_for_a_url(self) -> Archive:
        if self.remote and self.spool is None:
            what = "target is a URL, so spool is needed: a local folder for the files on their way to it"
            raise MistakeError(what, "add spool: and a folder of this machine")
        if not self.remote and (self.spool is not None or self.options):
            raise MistakeError("target is a folder, so spool and options have no use", "remove spool and options")
        return self

    @property
    def remote(self) -> bool:
        return "://" in self.target

    @property
    def folder(self) -> Path:
        """What is on this machine: the archive itself, or the spool."""
        return self.spool if self.spool is not None else Path(self.target)

    def reader(self, source: Source) -> Source:
        """The source as the archive reads it: under a server id of its own, one above the streamer's where the file
        gives none."""
        number = self.server_id or (source.server_id % LARGEST_ID) + 1
        return source.model_copy(update={"server_id": number, "failover": ()})
