"""The names of topics, tables and ids: written once, here. Which topic is whose is said here, too."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator

from contract import topic_template
from contract.patterns import may_match
from contract.pipeline import Pipeline
from contract.topic_template import escape

__all__ = ["escape"]

CHANGES = "_changes"
STAGING = "_staging"
SCHEMA_CHANGES = "_schema_changes"
MARKS = "_marks"
CHECKS = "_checks"
DIFFERENCES = "_differences"
DEAD_LETTERS = "_dead_letters"
ERASURES = "_erasures"
PARTS = "_parts"
SHAPES = "_shapes"  # a folder of empty tables: the columns of those of which the lake keeps the changes alone
REPAIRS = "_repairs"
QUALITY = "_quality"  # a folder of files: what checks found, and what they have begun
CHECKPOINTS = "_checkpoints"
# The lake's own, beside the databases.
FOLDERS = frozenset({
    CHANGES, STAGING, SCHEMA_CHANGES, MARKS, CHECKS, DIFFERENCES, DEAD_LETTERS, ERASURES, PARTS, SHAPES, REPAIRS,
    QUALITY, CHECKPOINTS,
})  # fmt: skip


def free(name: str, taken: Container[str]) -> str:
    """The name, with as many underscores in front as make it none of those `taken`, which are in lower case."""
    while name.lower() in taken:
        name = f"_{name}"
    return name


def events_topic(pipeline: Pipeline, db: str, table: str) -> str:
    return topic_template.fill(pipeline.kafka.topic, pipeline.name, db, table)


def events_topics(pipeline: Pipeline, db: str, table: str) -> tuple[str, ...]:
    """All in which changes of the table may be: today's, and those by earlier templates."""
    made = (topic_template.fill(one, pipeline.name, db, table) for one in pipeline.kafka.templates)
    return tuple(dict.fromkeys(made))


def event_topics(pipeline: Pipeline, topics: Iterable[str]) -> list[str]:
    """Those of the broker's topics that a table of this pipeline could give, by today's template or an earlier one,
    sorted."""
    return sorted(topic for topic in topics if is_event_topic(pipeline, topic))


def is_event_topic(pipeline: Pipeline, topic: str) -> bool:
    """No service topic, of whichever pipeline, is one."""
    return not is_service_topic(topic) and any(_chooses(pipeline, found) for found in _parsed(pipeline, topic))


def is_unknown_topic(pipeline: Pipeline, topic: str) -> bool:
    """Whether no template gives it, for whichever table: that of a pipeline of which the file names not all."""
    return not is_service_topic(topic) and not any(True for _ in _parsed(pipeline, topic))


def _parsed(pipeline: Pipeline, topic: str) -> Iterator[dict[str, str]]:
    """What the topic tells of its table, by each template that could give it."""
    found = (topic_template.parse(one, pipeline.name, topic) for one in pipeline.kafka.templates)
    yield from (parts for parts in found if parts is not None)


def _chooses(pipeline: Pipeline, found: dict[str, str]) -> bool:
    if len(found) == 2:
        return pipeline.tables.match(found["db"], found["table"])
    return any(may_match(pattern, found) for pattern in pipeline.tables.include)


def tables_of(pipeline: Pipeline, topic: str) -> set[tuple[str, str]]:
    """Which the topic is named after, by templates that tell both."""
    return {(found["db"], found["table"]) for found in _parsed(pipeline, topic) if len(found) == 2}


def is_service_topic(topic: str) -> bool:
    """Whether it is the commit log, the schemas or the like of a pipeline, this one or another."""
    return topic_template.is_service(topic)


def meeting_tables(pipeline: Pipeline, tables: Iterable[tuple[str, str]]) -> list[str]:
    """In words, which of these `(db, table)` cannot have their topic: it is a service topic, or Kafka, to which a
    dot and an underscore are the same, takes it for another table's."""
    found = []
    known: dict[str, tuple[str, str]] = {}
    for db, table in tables:
        topic = events_topic(pipeline, db, table)
        other = known.setdefault(topic.replace(".", "_"), (topic, f"{db}.{table}"))
        if is_service_topic(topic):
            found.append(f"the topic of table {db}.{table} would be {topic}, the name of a pipeline's own topic")
        elif other[0] != topic:
            found.append(f"the topics of {other[1]} and {db}.{table}, {other[0]} and {topic}, are one name to Kafka")
    return found


def commit_log_topic(pipeline: Pipeline) -> str:
    return f"{pipeline.name}.commit-log"


def schemas_topic(pipeline: Pipeline) -> str:
    return f"{pipeline.name}.schemas"


def ddl_topic(pipeline: Pipeline) -> str:
    return f"{pipeline.name}.ddl"


def transactions_topic(pipeline: Pipeline) -> str:
    return f"{pipeline.name}.transactions"


def heartbeat_topic(pipeline: Pipeline) -> str:
    return f"{pipeline.name}.heartbeat"


def snapshot_topic(pipeline: Pipeline) -> str:
    return f"{pipeline.name}.snapshot-rows"


def dead_letter_topic(pipeline: Pipeline) -> str:
    return f"{pipeline.name}.dead-letter"


def transactional_id(pipeline: Pipeline) -> str:
    """By which the broker knows the pipeline's streamer: it takes records from the latest one that began alone."""
    return f"headrace-{pipeline.name}"


def election_group(pipeline: Pipeline) -> str:
    """The consumer group in which the pipeline's streamers elect the active one."""
    return f"headrace-{pipeline.name}-election"


def lake_root(pipeline: Pipeline) -> str:
    return f"{pipeline.lake.place}/{pipeline.name}"


def lake_table(pipeline: Pipeline, db: str, table: str) -> str:
    return f"{lake_root(pipeline)}/{escape(db)}/{escape(table)}"


def lake_shape(pipeline: Pipeline, db: str, table: str) -> str:
    """The empty table with the columns of one of which the lake keeps the changes alone."""
    return f"{lake_root(pipeline)}/{SHAPES}/{escape(db)}/{escape(table)}"


def quoted(name: str) -> str:
    """As an identifier of MySQL's SQL, or Spark's."""
    return "`" + name.replace("`", "``") + "`"
