"""From the sections `sinks` and `checkpoints` to the parts: which class each of them names."""

from __future__ import annotations

from contextlib import closing

from contract import names
from contract.checkpoint import Checkpoint
from contract.pipeline import Pipeline
from contract.pipeline_sinks import (
    FileCheckpoint,
    FilesOutput,
    KafkaCheckpoint,
    KafkaOutput,
    ObjectsOutput,
    Output,
    OwnClass,
    StdoutOutput,
)
from contract.schema import TableSchema
from streamer import own_classes, schemas
from streamer.checkpoints.documents import DocumentCheckpoints
from streamer.checkpoints.files import FileDocuments
from streamer.checkpoints.kafka import KafkaCheckpoints, read_checkpoint
from streamer.checkpoints.port import Checkpoints
from streamer.kafka import broker
from streamer.sinks import files, objects, own
from streamer.sinks.background import BackgroundSink
from streamer.sinks.files import FilesWriter
from streamer.sinks.kafka import KafkaSink
from streamer.sinks.objects import ObjectsWriter
from streamer.sinks.port import Sink
from streamer.sinks.several import SeveralSinks
from streamer.sinks.stdout import StdoutWriter
from streamer.start import own_topics, resume

BROKER_SECONDS = 5.0
SINK = ("send", "poll", "flush", "probe", "close")
TOLD = ("title", "last_error")  # of a sink, once it is made
DOCUMENTS = ("read", "write", "close")
CHECKPOINTS_AT = ("checkpoints", "type")


def open_outputs(pipeline: Pipeline) -> tuple[Sink, Checkpoints]:
    """Raises PipelineFileError for a class that is none, HeadraceError of a place that cannot be used."""
    sinks: list[Sink] = []
    try:
        for number, output in enumerate(pipeline.sinks):
            sinks.append(_sink(pipeline, output, number))
        sink = sinks[0] if len(sinks) == 1 else SeveralSinks(sinks)
        return sink, _checkpoints(pipeline, sinks)
    except Exception:
        for opened in sinks:
            opened.close()
        raise


def check_classes(pipeline: Pipeline) -> None:
    """Raises PipelineFileError where a class of the user's is none."""
    for number, output in enumerate(pipeline.sinks):
        if isinstance(output, OwnClass):
            own_classes.find(pipeline, output, ("sinks", number, "type"), SINK)
    if isinstance(pipeline.checkpoints, OwnClass):
        own_classes.find(pipeline, pipeline.checkpoints, CHECKPOINTS_AT, DOCUMENTS)


def used(pipeline: Pipeline) -> list[str]:
    """Where records of the pipeline are already, by name; of standard output and of classes of the user's that is not
    known. Raises HeadraceError, a retryable one where it is to be asked again."""
    found = own_topics.used(pipeline) if pipeline.has_kafka else []
    for output in pipeline.sinks:
        if isinstance(output, FilesOutput):
            found += files.used(output)
        elif isinstance(output, ObjectsOutput):
            found += objects.used(output)
    return found


def _sink(pipeline: Pipeline, output: Output, number: int) -> Sink:
    match output:
        case KafkaOutput():
            return KafkaSink(pipeline)
        case FilesOutput():
            return BackgroundSink(output.title, FilesWriter(output))
        case ObjectsOutput():
            return BackgroundSink(output.title, ObjectsWriter(output))
        case StdoutOutput():
            return BackgroundSink(output.title, StdoutWriter())
        case OwnClass():
            made: Sink = own.guarded(
                own_classes.make(pipeline, output, ("sinks", number, "type"), SINK, TOLD), output.title
            )
            return made


def _checkpoints(pipeline: Pipeline, sinks: list[Sink]) -> Checkpoints:
    place = pipeline.checkpoints
    if isinstance(place, KafkaCheckpoint):
        return KafkaCheckpoints(pipeline, next(sink for sink in sinks if isinstance(sink, KafkaSink)))
    return _stored(pipeline)


def position(pipeline: Pipeline) -> Checkpoint | None:
    """The last checkpoint, for who is not the streamer, or not yet. Raises PipelineFileError, HeadraceError;
    WrongServerError where it is of a server of another flavor."""
    found = _position(pipeline)
    if found is not None:
        resume.refuse_other_flavor(pipeline, found)
    return found


def _position(pipeline: Pipeline) -> Checkpoint | None:
    if pipeline.commits_in_kafka:
        return read_checkpoint(pipeline)
    with closing(_stored(pipeline, shared=True)) as stored:
        return stored.load()


def known_schemas(pipeline: Pipeline) -> list[TableSchema]:
    """As `position`; of those in Kafka none where there is no topic yet."""
    if pipeline.commits_in_kafka:
        topic = names.schemas_topic(pipeline)
        return schemas.read(pipeline) if broker.has_topic(pipeline.kafka, topic, BROKER_SECONDS) else []
    with closing(_stored(pipeline, shared=True)) as stored:
        return stored.schemas()


def _stored(pipeline: Pipeline, shared: bool = False) -> DocumentCheckpoints:
    """Those that are not in Kafka."""
    place = pipeline.checkpoints
    if isinstance(place, FileCheckpoint):
        return DocumentCheckpoints(pipeline.name, place.title, FileDocuments(place, shared))
    assert isinstance(place, OwnClass)
    made = own_classes.make(pipeline, place, CHECKPOINTS_AT, DOCUMENTS)
    return DocumentCheckpoints(pipeline.name, place.title, made)
