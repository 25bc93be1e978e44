"""The pipeline file's section `quality`: when the lake is checked, how much of it, and who is told."""

from __future__ import annotations

from contextlib import suppress
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from contract.cron import Schedule
from contract.mistake import MistakeError
from contract.pipeline_kafka import Section


class Quality(Section):
    schedule: Schedule | None = Field(None, description="cron; none: only when triggered")
    wait_seconds: int = Field(600, ge=1, description="for the lake to reach the position that was read")
    webhook: str | None = Field(None, repr=False, description="POSTed a JSON alert when a task fails")
    sample_percent: int = Field(100, ge=1, le=100, description="of each table's chunks, others by chance each time")

    @field_validator("webhook")
    @classmethod
    def _url(cls, given: str | None) -> str | None:
        """An empty one is none, as `${NAME:-}` gives it. The message does not show what may be a secret."""
        if given and not _of_the_web(given):
            fix = "write https://HOST/PATH, or, where that is a secret, ${NAME} as a whole"
            raise MistakeError("is no URL of http or https that names a host", fix)
        return given


def _of_the_web(url: str) -> bool:
    with suppress(ValueError):  # a port that is no number, a bracket too few
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    return False
