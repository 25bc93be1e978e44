"""The pipeline file's section `quality`: when the lake is checked, how much of it, and who is told."""

from __future__ import annotations

from contextlib import suppress
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from contract.cron import Schedule
from contract.mistake import MistakeError
from contract.pipeline_kafka import Section
from contract.pipeline_sinks import DOTTED, OwnClass


class Notifier(OwnClass):
    """A notifier of Airflow's, as its providers have them. It is imported where Airflow runs, and nowhere else."""

    type: str = Field(pattern=DOTTED, description="a notifier by its dotted path, such as my_package.MyNotifier")


class Quality(Section):
    schedule: Schedule | None = Field(None, description="cron; none: only when triggered")
    wait_seconds: int = Field(600, ge=1, description="for the lake to reach the position that was read")
    webhook: str | None = Field(None, repr=False, description="POSTed a JSON alert when a task fails")
    notifier: Notifier | None = Field(None, description="called with the alert instead")
    sample_percent: int = Field(100, ge=1, le=100, description="of each table's chunks, others by chance each time")

    @field_validator("webhook")
    @classmethod
    def _url(cls, given: str | None) -> str | None:
        """An empty one is none, as `${NAME:-}` gives it. The message does not show what may be a secret."""
        if given and not _of_the_web(given):
            fix = "write https://HOST/PATH, or, where that is a secret, ${NAME} as a whole"
            raise MistakeError("is no URL of http or https that names a host", fix)
        return given

    @model_validator(mode="after")
    def _one_way(self) -> Quality:
        """Whether an alert was taken, and is not to be sent again, is known of one."""
        if self.webhook and self.notifier:
            fix = "remove one of the two; a notifier such as Airflow's HttpNotifier posts, too"
            raise MistakeError("webhook and notifier are two ways for one alert", fix)
        return self


def _of_the_web(url: str) -> bool:
    with suppress(ValueError):  # a port that is no number, a bracket too few
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    return False
