"""The pipeline file's sections `sinks` and `checkpoints`: where records go, and where the durable position is kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from contract.chosen_section import Choice
from contract.pipeline_kafka import Misfit, Section

if TYPE_CHECKING:
    from contract.pipeline import Pipeline

LOCAL = ("file://", "local://")  # fsspec's names of a disk
DOTTED = r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)+$"
Compression = Literal["none", "gzip", "zstd"]


class KafkaOutput(Section):
    """The section `kafka` says the rest."""

    type: Literal["kafka"] = "kafka"

    @property
    def title(self) -> str:
        return "Kafka"


class FilesOutput(Section):
    """JSON lines in a folder a topic."""

    type: Literal["files"]
    path: Path = Field(description="a folder of this pipeline alone")
    max_bytes: int = Field(134_217_728, ge=1024, description="of a file, uncompressed")
    max_seconds: float = Field(300.0, ge=0.1, le=86_400, description="from a file's first record to its end")
    sync_seconds: float = Field(0.2, ge=0, le=60, description="how often what was written is made durable")
    compression: Compression = "none"

    @property
    def title(self) -> str:
        return f"the folder {self.path}"


class ObjectsOutput(Section):
    """JSON lines in an object store."""

    type: Literal["objects"]
    url: str = Field(pattern=r"^[a-z][a-z0-9+.-]*://.+", description="such as s3://bucket/folder")
    max_bytes: int = Field(67_108_864, ge=1024, description="waiting for an upload, uncompressed, of all topics")
    max_seconds: float = Field(10.0, ge=0.1, le=3600, description="how long a record may wait for its upload")
    compression: Compression = "gzip"
    options: dict[str, Any] = Field(default_factory=dict, repr=False, description="of the URL's fsspec file system")

    @property
    def title(self) -> str:
        return self.url


class StdoutOutput(Section):
    type: Literal["stdout"]

    @property
    def title(self) -> str:
        return "standard output"


class OwnClass(Section):
    """A class of the user's."""

    type: str = Field(pattern=DOTTED, description="a class by its dotted path, such as my_package.MySink")
    settings: dict[str, Any] = Field(default_factory=dict, repr=False, description="given to the class")

    @property
    def title(self) -> str:
        return self.type


class KafkaCheckpoint(Section):
    """The commit log, beside the events."""

    type: Literal["kafka"] = "kafka"

    @property
    def title(self) -> str:
        return "Kafka"


class FileCheckpoint(Section):
    type: Literal["file"]
    path: Path = Field(description="a folder of this pipeline alone")

    @property
    def title(self) -> str:
        return f"the folder {self.path}"


Output = KafkaOutput | FilesOutput | ObjectsOutput | StdoutOutput | OwnClass
Position = KafkaCheckpoint | FileCheckpoint | OwnClass
OUTPUTS = Choice(
    {"kafka": KafkaOutput, "files": FilesOutput, "objects": ObjectsOutput, "stdout": StdoutOutput}, OwnClass
)
POSITIONS = Choice({"kafka": KafkaCheckpoint, "file": FileCheckpoint}, OwnClass)
AnOutput = Annotated[Output, BeforeValidator(OUTPUTS.validate), OUTPUTS]
APosition = Annotated[Position, BeforeValidator(POSITIONS.validate), POSITIONS]


def misfits(pipeline: Pipeline) -> Iterator[Misfit]:
    """What of a pipeline's sinks and checkpoints does not go together."""
    yield from _among_sinks(pipeline)
    if isinstance(pipeline.checkpoints, KafkaCheckpoint) and not pipeline.has_kafka:
        at = "checkpoints" if "checkpoints" in pipeline.model_fields_set else "sinks"
        message = "without the sink kafka there is no commit log to keep the position in"
        fix = "write checkpoints: {type: file, path: ...} beside sinks, or add {type: kafka} to sinks"
        yield (at,), "kafka", message, fix
    yield from _promised(pipeline)
    if pipeline.has_kafka and not pipeline.kafka.bootstrap:
        fix = "add kafka: {bootstrap: host:port}, or name other sinks than Kafka (sinks)"
        yield ("kafka", "bootstrap"), "", "is missing", fix
    if not pipeline.has_kafka:
        yield from _of_kafka_alone(pipeline)
    if pipeline.feeds_lake and not pipeline.lake.path:
        yield ("lake", "path"), "", "is missing", "add lake: {path: ...}"
    if pipeline.feeds_lake:
        yield from _compacted(pipeline)


def _compacted(pipeline: Pipeline) -> Iterator[Misfit]:
    message = "loses deletes before the lake, which is fed from these topics, has read them"
    fix = "write delete (or leave it out); without a lake, keep the checkpoints elsewhere: checkpoints: {type: file}"
    if pipeline.kafka.cleanup != "delete":
        yield ("kafka", "cleanup"), pipeline.kafka.cleanup, message, fix
    for at, rule in enumerate(pipeline.topics):
        if rule.cleanup not in (None, "delete"):
            yield ("topics", at, "cleanup"), str(rule.cleanup), message, fix


def _of_kafka_alone(pipeline: Pipeline) -> Iterator[Misfit]:
    """What is asked of records, and no other sink has."""
    asked = pipeline.records
    given = {
        "headers": asked.headers, "partition_by": asked.partition_by != "key", "tombstones": asked.tombstones,
        "oversized": asked.oversized,
    }  # fmt: skip
    for key, value in given.items():
        if value:
            message = "is of Kafka's records, and Kafka is none of the sinks"
            yield ("records", key), key, message, "remove it, or add {type: kafka} to sinks"


def _among_sinks(pipeline: Pipeline) -> Iterator[Misfit]:
    if not pipeline.sinks:
        yield ("sinks",), "[]", "names no sink", "add {type: kafka}, or leave sinks out"
    for at, sink in enumerate(pipeline.sinks):
        if isinstance(sink, ObjectsOutput) and sink.url.startswith(LOCAL):
            path = sink.url.partition("://")[2]
            message = "is a folder, where an object that a crash cuts off would stay as half of one"
            fix = f"write {{type: files, path: {path}}}, whose files are closed when they are whole and synced"
            yield ("sinks", at, "url"), sink.url, message, fix
    titles = Counter(sink.title for sink in pipeline.sinks if not isinstance(sink, OwnClass))
    for title in [title for title, times in titles.items() if times > 1]:
        yield ("sinks",), title, f"{title} is named twice: each record would come there twice", "keep one of the two"


def _promised(pipeline: Pipeline) -> Iterator[Misfit]:
    """What exactly_once rests on: one Kafka transaction holds the events and the checkpoint."""
    if pipeline.commits_in_kafka and len(pipeline.sinks) == 1:
        return
    given = pipeline.streamer
    message = "needs Kafka as the only sink, and checkpoints in Kafka, which commits both together"
    if given.high_availability:
        fix = "remove streamer.high_availability, or the other sinks and checkpoints"
        yield ("streamer", "high_availability"), "true", message, fix
    if given.delivery == "exactly_once":
        fix = "write delivery: at_least_once (or leave it out), or remove the other sinks and checkpoints"
        yield ("streamer", "delivery"), "exactly_once", message, fix
