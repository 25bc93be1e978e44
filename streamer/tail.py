"""A pipeline's changes as they come out of Kafka: `headrace tail`.

Reads committed records of all event topics, under no consumer group's name, so that nobody else's place moves. Topics
and partitions that are made meanwhile join with their first record.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any, NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

from contract import names, table_names
from contract.patterns import is_plain
from contract.pipeline import Pipeline
from streamer.kafka import broker, topics
from streamer.kafka.compacted import NO_LEADER_YET, reader

POLL_SECONDS = 0.2
ANSWER_SECONDS = 5.0
LOOK_SECONDS = 2.0  # how often new topics are looked for
PASSING = frozenset({KafkaError._PARTITION_EOF, *broker.AWAY, *NO_LEADER_YET})
FACTS: dict[str, Any] = {"db": str, "table": str, "ts_ms": int, "gtid": str | None, "file": str, "pos": int}


class Change(NamedTuple):
    """A record. `value`: its envelope; `key`: None without one."""

    topic: str
    partition: int
    offset: int
    key: dict[str, Any] | None
    value: dict[str, Any]

    @property
    def table(self) -> str:
        source = self.value["source"]
        return f"{source['db']}.{source['table']}"

    @property
    def seq(self) -> list[int]:
        """The order tuple, which stands in Debezium's form in its own field."""
        source = self.value["source"]
        found: list[int] = source["seq"] if "seq" in source else json.loads(source["sequence"])
        return found


def silent(pipeline: Pipeline, patterns: Iterable[str]) -> Iterator[str]:
    """In words, which of the `db.table` patterns name a table of which nothing was sent yet: its name may be a wrong
    one, or its first change is to come; and whether nothing at all was. Raises TopicError of a pipeline without Kafka,
    and as `broker.answers`."""
    topics.refuse_without(pipeline, "showing the changes of")
    there = broker.topics_of(pipeline.kafka, ANSWER_SECONDS)
    if not (sent := names.event_topics(pipeline, there)):
        yield f"nothing was sent of {pipeline.name} yet; does headrace run run? Waiting for its first change"
        return
    for pattern in filter(is_plain, patterns):
        if why := table_names.refused(pipeline, pattern):
            yield why
            continue
        topic = names.events_topic(pipeline, *pattern.split(".", 1))
        if topic not in there:
            yield (
                f"nothing was sent of {pattern} yet: there is no topic {table_names.told(topic, sent)}. Is the name "
                "right, capitals and all? Waiting for its first change"
            )


def waits_for(pipeline: Pipeline, patterns: Iterable[str], beginning: bool) -> str:
    """What a reader is shown, in words, so that silence is none of which nobody knows what it means."""
    asked = [*patterns]
    of = ", ".join(_with_topic(pipeline, one) for one in asked) if asked else f"all tables of {pipeline.name}"
    since = "from the beginning of their topics" if beginning else "from now on"
    return f"showing the changes of {of} {since}, by Kafka at {pipeline.kafka.bootstrap}; Ctrl-C ends it"


def _with_topic(pipeline: Pipeline, pattern: str) -> str:
    if not is_plain(pattern):
        return pattern
    return f"{pattern} (topic {names.events_topic(pipeline, *pattern.split('.', 1))})"


def changes(
    pipeline: Pipeline,
    wanted: Callable[[str, str], bool],
    beginning: bool,
    stopping: Callable[[], bool],
    tell: Callable[[str], None],
) -> Generator[Change]:
    """From now on, or from the topics' `beginning`, until `stopping` says so. Tombstones, and records that a user's own
    code made of something else, are passed by. `tell` hears of a broker that goes away, and comes back. Raises
    BrokerUnreachableError where none answers at first, BrokerRefusedError, TopicError of a pipeline without Kafka."""
    topics.refuse_without(pipeline, "showing the changes of")
    consumer = reader(pipeline.kafka)
    try:
        assigned = _Assigned(pipeline, consumer, tell)
        assigned.look(beginning)
        while not stopping():
            assigned.look_again()
            message = consumer.poll(POLL_SECONDS)
            if message is None or _passes(message.error()):
                continue
            found = _change(message)
            if found is not None and wanted(found.value["source"]["db"], found.value["source"]["table"]):
                yield found
    except KafkaException as error:
        raise broker.typed(error, "reading the event topics of", pipeline.kafka) from None
    finally:
        consumer.close()


def _passes(error: KafkaError | None) -> bool:
    """Whether it is no record, and time mends it. Raises KafkaException."""
    if error is not None and error.code() not in PASSING:
        raise KafkaException(error)
    return error is not None


class _Assigned:
    """The partitions that are read."""

    def __init__(self, pipeline: Pipeline, consumer: Consumer, tell: Callable[[str], None]) -> None:
        self._pipeline = pipeline
        self._consumer = consumer
        self._known: set[tuple[str, int]] = set()
        self._looked = 0.0
        self._tell = tell
        self._away = False

    def look(self, beginning: bool) -> None:
        """Raises KafkaException."""
        self._looked = time.monotonic()
        new = [one for one in self._there() if one not in self._known]
        self._known.update(new)
        self._consumer.incremental_assign([self._start(one, beginning) for one in new])

    def look_again(self) -> None:
        if time.monotonic() - self._looked >= LOOK_SECONDS:
            try:
                self.look(beginning=True)
            except KafkaException as error:
                self._answers(not _passes(error.args[0]))
            else:
                self._answers(True)

    def _answers(self, it_does: bool) -> None:
        if it_does == self._away:
            self._away = not it_does
            at = f"Kafka at {self._pipeline.kafka.bootstrap}"
            self._tell(f"{at} answers again" if it_does else f"{at} does not answer; waiting for it")

    def _there(self) -> Iterable[tuple[str, int]]:
        found: Any = self._consumer.list_topics(timeout=ANSWER_SECONDS).topics
        for topic in names.event_topics(self._pipeline, found):
            yield from ((topic, number) for number in found[topic].partitions)

    def _start(self, one: tuple[str, int], beginning: bool) -> TopicPartition:
        if beginning:
            return TopicPartition(*one, OFFSET_BEGINNING)
        _, high = self._consumer.get_watermark_offsets(TopicPartition(*one), timeout=ANSWER_SECONDS)
        return TopicPartition(*one, high)


def _change(message: Any) -> Change | None:
    value = _payload(message.value())
    if value is None or not _whole(value):
        return None
    return Change(message.topic(), message.partition(), message.offset(), _payload(message.key()), value)


def _whole(value: dict[str, Any]) -> bool:
    """Whether it has what whoever shows it asks for: something else may write into the topic."""
    source = value.get("source")
    images = all(isinstance(value.get(name, 0), dict | None) for name in ("before", "after"))
    if not images or not isinstance(value.get("op"), str) or not isinstance(source, dict):
        return False
    if not all(isinstance(source.get(name, 0.0), kind) for name, kind in FACTS.items()):
        return False
    try:
        found = source["seq"] if "seq" in source else json.loads(source["sequence"])
    except (KeyError, TypeError, ValueError):
        return False
    return isinstance(found, list)


def _payload(data: bytes | None) -> dict[str, Any] | None:
    """Of JSON that carries its own schema what it is the schema of."""
    try:
        found = json.loads(data) if data else None
    except ValueError:
        return None
    if isinstance(found, dict) and set(found) == {"schema", "payload"}:
        found = found["payload"]
    return found if isinstance(found, dict) else None
