"""The pipeline file: one YAML file a pipeline, the one contract that every part reads.

`load(path)` gives a frozen `Pipeline`, or raises `PipelineFileError` that lists every mistake of the
file at once, each with line, key, what is allowed and the fix. Secrets come from `${ENV}` or from a
file (`password_file`) and never appear in an error or a repr.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import date
from itertools import chain
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError, field_validator, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from contract import (
    pipeline_keys,
    pipeline_lake,
    pipeline_records,
    pipeline_sinks,
    pipeline_transforms,
    start_at,
    topic_template,
)
from contract.cron import Schedule
from contract.gtid import GtidSet
from contract.patterns import TablePattern, any_matches
from contract.pipeline_archive import Archive
from contract.pipeline_columns import Columns, Shown
from contract.pipeline_events import EventRule
from contract.pipeline_file import PipelineFileError, Problem, Read, dotted, place_in, read_text, read_yaml
from contract.pipeline_http import Http
from contract.pipeline_kafka import Kafka, Section
from contract.pipeline_keys import KeyRule
from contract.pipeline_lake import Lake
from contract.pipeline_maintenance import Maintenance
from contract.pipeline_mistakes import problems_of
from contract.pipeline_quality import Quality
from contract.pipeline_records import Records
from contract.pipeline_secrets import SECRET, Keys
from contract.pipeline_sinks import AnOutput, APosition, KafkaCheckpoint, KafkaOutput
from contract.pipeline_snapshot import Snapshot
from contract.pipeline_source import Source
from contract.pipeline_topics import TopicRule
from contract.pipeline_transforms import TransformRule
from contract.schema import TableSchema

__all__ = ["Archive", "Http", "Kafka", "Lake", "Pipeline", "PipelineFileError", "Problem", "Source", "load"]

FORMAT = 1
NAME = r"^[a-z][a-z0-9-]{0,39}$"
SYSTEM_SCHEMAS = frozenset({"mysql", "sys", "information_schema", "performance_schema"})  # the server's own


class Tables(Section):
    """Which tables take part, by patterns of `db.table`; a table is in when it is included and not excluded. The
    server's own tables never are."""

    include: tuple[TablePattern, ...] = Field(min_length=1)
    exclude: tuple[TablePattern, ...] = ()
    cascades: tuple[TablePattern, ...] = Field(
        (), description="whose rows foreign keys may change though the binlog does not tell: they are read again",
        exclude_if=lambda patterns: not patterns,
    )  # fmt: skip

    @property
    def noted(self) -> Tables:
        """What a checkpoint says of it, which versions of before read, too: `cascades` is nothing that they know, and
        another list of those follows no other tables."""
        return self.model_copy(update={"cascades": ()})

    def match(self, db: str, table: str) -> bool:
        chosen = db not in SYSTEM_SCHEMAS and any_matches(self.include, db, table)
        return chosen and not any_matches(self.exclude, db, table)


class Ledger(Section):
    """The waiting queue's bounds; when it is full the socket waits."""

    max_events: int = Field(200_000, ge=100, le=1_000_000_000)
    max_bytes: int = Field(268_435_456, ge=1_048_576, le=1_000_000_000_000)


Delivery = Literal["exactly_once", "at_least_once"]


class Streamer(Section):
    delivery: Delivery | None = Field(None, description="left out: exactly_once where Kafka is the only sink")
    mode: Literal["continuous", "oneshot"] = Field(
        "continuous", description="oneshot: up to the server's position at the start, then the end"
    )
    high_availability: bool = Field(False, description="several streamers of the pipeline elect the active one")
    start: str = Field("latest", description=f"without a checkpoint: {start_at.EXPECTED}")
    http: Http = Http()
    ledger: Ledger = Ledger()
    stuck_after_seconds: float = Field(
        300.0, ge=1, description="the queue's head does not move while the broker answers: an error"
    )
    shutdown_seconds: float = Field(20.0, ge=1, description="how long a graceful stop may flush")

    @field_validator("start", mode="before")
    @classmethod
    def _start(cls, given: object) -> object:
        # YAML makes a date or a time of what looks like one.
        text = given.isoformat() if isinstance(given, date) else given
        if isinstance(text, str):
            start_at.parse(text)
        return text

    @model_validator(mode="after")
    def _fenced(self) -> Streamer:
        if self.high_availability and self.delivery == "at_least_once":
            message = "needs delivery: exactly_once, which alone keeps a streamer that was replaced from writing"
            fix = "set streamer.delivery to exactly_once, or remove streamer.high_availability"
            raise _at(("high_availability",), "true", message, fix)
        return self

    @model_validator(mode="after")
    def _alone(self) -> Streamer:
        if self.high_availability and self.mode == "oneshot":
            message = "does not go with mode: oneshot, which would stand by for as long as another streamer runs"
            fix = "remove streamer.high_availability, or set streamer.mode to continuous"
            raise _at(("high_availability",), "true", message, fix)
        return self

    def begin(self) -> start_at.Start:
        return start_at.parse(self.start)


class Compaction(Section):
    schedule: Schedule | None = Field(None, description="cron; none: only when triggered")
    max_offsets_per_batch: int = Field(1_000_000, ge=1_000)
    every_seconds: float = Field(5, gt=0, le=3600, description="looping: from the beginning of a round to the next")
    unreadable: Literal["stop", "dead_letter"] = Field("stop", description="what becomes of a record that is no change")


class Pipeline(Section):
    """A whole pipeline file. `path` says where it was read from."""

    format: Literal[1]
    name: str = Field(
        pattern=NAME, description="a lower case letter, then lower case letters, digits and -, at most 40 in all"
    )
    source: Source
    tables: Tables
    columns: Columns = Columns()
    keys: tuple[KeyRule, ...] = ()
    events: tuple[EventRule, ...] = ()
    transforms: tuple[TransformRule, ...] = ()
    kafka: Kafka = Kafka()
    topics: tuple[TopicRule, ...] = ()
    records: Records = Records()
    streamer: Streamer = Streamer()
    sinks: tuple[AnOutput, ...] = (KafkaOutput(),)
    checkpoints: APosition = KafkaCheckpoint()
    lake: Lake = Lake()
    snapshot: Snapshot = Snapshot()
    compaction: Compaction = Compaction()
    quality: Quality = Quality()
    maintenance: Maintenance = Maintenance()
    archive: Archive | None = None
    path: Path = Field(default=Path(), exclude=True, repr=False)

    def show(self, source: TableSchema) -> Shown:
        """A table of the source as streamer, snapshot and lake show it: its columns, masks, and key. Raises
        ColumnRuleError."""
        key = pipeline_keys.key_of(self.keys, source)
        if key is None:
            return self.columns.show(source)
        return replace(self.columns.show(source.model_copy(update={"key": key})), source=source)

    def changes_only(self, db: str, table: str) -> bool:
        """Whether the lake has the table's changes and no current table."""
        return pipeline_keys.changes_only(self.keys, db, table)

    @property
    def dead_letters(self) -> bool:
        """Whether records may go to the dead letter topic."""
        buried = any(rule.on_error == "dead_letter" for rule in self.transforms)
        return buried or self.records.oversized is not None

    @model_validator(mode="after")
    def _start_of_the_flavor(self) -> Pipeline:
        if isinstance(self.streamer.begin(), GtidSet):
            try:
                self.source.gtids(self.streamer.start)
            except ValueError as problem:
                fix = f"write it as {self.source.flavor} does, or correct source.flavor"
                raise _at(("streamer", "start"), self.streamer.start, str(problem), fix) from None
        return self

    @model_validator(mode="after")
    def _statements_hide_nothing(self) -> Pipeline:
        if self.source.statements and self.columns.hides:
            message = "records would carry statements, with the very values that columns hides"
            raise _at(("source", "statements"), "true", message, "write statements: false, or remove columns")
        return self

    @model_validator(mode="after")
    def _outputs_fit(self) -> Pipeline:
        sections = (pipeline_sinks, pipeline_records, pipeline_lake)
        for place, value, message, fix in chain.from_iterable(section.misfits(self) for section in sections):
            raise _at(place, value, message, fix)
        return self

    @model_validator(mode="after")
    def _archive_apart(self) -> Pipeline:
        if self.archive and self.archive.server_id == self.source.server_id:
            message, fix = "is the streamer's own, source.server_id", "give another number, or leave it out"
            raise _at(("archive", "server_id"), str(self.archive.server_id), message, fix)
        return self

    @model_validator(mode="after")
    def _topics_of_their_own(self) -> Pipeline:
        if self.topics and not topic_template.has_table(self.kafka.topic):
            message = "tables share topics by kafka.topic, so that settings by table would contradict each other"
            fix = "remove topics, or write {pipeline}.{db}.{table} as kafka.topic"
            raise _at(("topics",), self.kafka.topic, message, fix)
        return self

    @model_validator(mode="after")
    def _topics_apart(self) -> Pipeline:
        template = self.kafka.topic
        for message, fix in topic_template.meetings(template, self.name, self.tables.include):
            raise _at(("kafka", "topic"), template, message, fix)
        return self

    @property
    def has_kafka(self) -> bool:
        """Whether a broker takes part."""
        return any(isinstance(sink, KafkaOutput) for sink in self.sinks)

    @property
    def commits_in_kafka(self) -> bool:
        """Events and commit log are on one broker, which can commit both together."""
        return self.has_kafka and isinstance(self.checkpoints, KafkaCheckpoint)

    @property
    def feeds_lake(self) -> bool:
        """The lake reads the events and the commit log from Kafka."""
        return self.commits_in_kafka and self.records.format == "headrace"

    @property
    def delivery(self) -> Delivery:
        """What the file asks for; left out, the best that the sinks can do."""
        alone = self.commits_in_kafka and len(self.sinks) == 1
        return self.streamer.delivery or ("exactly_once" if alone else "at_least_once")


def _at(place: tuple[str | int, ...], value: str, message: str, fix: str) -> ValidationError:
    """An error that stands at the key, not at the whole file."""
    error = PydanticCustomError("key", "{message}", {"message": message, "fix": fix})
    details = InitErrorDetails(type=error, loc=place, input=value)
    return ValidationError.from_exception_data("Pipeline", [details], hide_input=True)


def load(path: str | Path, secrets: bool | str = True) -> Pipeline:
    """Reads and checks one pipeline file. Without `secrets` a password's variable need not be set, for who asks no
    server; where it names a section, that one's alone must. That a password stands in the file is a mistake for all.
    Raises PipelineFileError (a ValueError) with every mistake."""
    path = Path(path)
    return _checked(path, read_yaml(path), secrets)


def parse(
    text: str,
    path: Path,
    known: Mapping[Keys, str] | None = None,
    refused: Callable[[Pipeline], Problem | None] = lambda _: None,
) -> Pipeline:
    """The same of a text that is to be the file's. `known`: as for `read_text`; `refused`: what else is wrong with it,
    asked before any file that it names is looked at. Raises PipelineFileError."""
    return _checked(path, read_text(text, known), True, refused)


def _checked(
    path: Path, read: Read, secrets: bool | str, refused: Callable[[Pipeline], Problem | None] = lambda _: None
) -> Pipeline:
    problems = [one for one in read.problems if _needed(one, secrets)]
    if read.tree is not None:
        read.tree["path"] = path
    pipeline, found = problems_of(Pipeline, read)
    if pipeline is None or problems:
        raise PipelineFileError(path, [*problems, *found])
    if problem := refused(pipeline):
        raise PipelineFileError(path, [read.hiding(problem)])
    if wrong := list(_scripts(pipeline, read)):
        raise PipelineFileError(path, wrong)
    return pipeline


def _needed(problem: Problem, secrets: bool | str) -> bool:
    if secrets is True or not problem.outside or not SECRET.search(problem.key):
        return True
    return bool(secrets) and problem.key.startswith(f"{secrets}.")


def _scripts(pipeline: Pipeline, read: Read) -> Iterator[Problem]:
    for at, why, fix in pipeline_transforms.mistakes(pipeline.transforms, pipeline.path.parent):
        keys = ("transforms", at, "script")
        yield read.hiding(Problem(place_in(read.lines, keys), dotted(keys), why, "", fix))
