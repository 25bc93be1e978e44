"""The pipeline file's section `topics`: settings of event topics by table, in place of those of `kafka`."""

from __future__ import annotations

from typing import Any, NamedTuple

from pydantic import Field, model_validator

from contract import patterns
from contract.mistake import MistakeError
from contract.patterns import TablePattern
from contract.pipeline_kafka import Cleanup, Kafka, Section


class TopicSettings(NamedTuple):
    partitions: int
    replication: int
    retention_hours: int
    cleanup: Cleanup

    @property
    def compacts(self) -> bool:
        """Whether the broker keeps the last record of each key alone, so that each record needs one."""
        return self.cleanup != "delete"


class TopicRule(Section):
    """A setting that is left out is that of `kafka`, or of a later rule that chooses the table."""

    tables: tuple[TablePattern, ...] = Field(min_length=1)
    partitions: int | None = Field(None, ge=1, le=10_000)
    replication: int | None = Field(None, ge=1, le=10)
    retention_hours: int | None = Field(None, ge=1, description="above the longest pause of compaction")
    cleanup: Cleanup | None = Field(None, description="of topics from which a lake is fed: delete")

    @model_validator(mode="after")
    def _sets_something(self) -> TopicRule:
        if all(getattr(self, name) is None for name in TopicSettings._fields):
            raise MistakeError("sets nothing", f"give {', '.join(TopicSettings._fields)}, or some of them")
        return self


def settings(rules: tuple[TopicRule, ...], kafka: Kafka, db: str, table: str) -> TopicSettings:
    """What the table's topic is made with: each setting by the first rule that has it."""
    chosen = [rule for rule in rules if patterns.any_matches(rule.tables, db, table)]

    def of(name: str) -> Any:
        found = (getattr(rule, name) for rule in chosen)
        return next((value for value in found if value is not None), getattr(kafka, name))

    return TopicSettings(*map(of, TopicSettings._fields))
