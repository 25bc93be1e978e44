"""Places in Kafka's topics: offsets, with the id of the topic that they are of. A topic that was deleted and made again
has the old name and another id, and its offsets say nothing beside the old ones.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from pydantic import BaseModel

from contract import names
from contract.pipeline import Pipeline
from spark.kafka.broker import Broker
from spark.kafka.offsets import Ends

Ids = Mapping[str, str]  # topic -> its id; without the topics of a broker that gives none


class End(NamedTuple):
    """Of a partition: the offset behind its last record, and a `_seq` that no change before that is behind."""

    at: int
    seq: list[int]


class TopicPlace(BaseModel):
    """`at`: an offset of each of the partitions; of none of a topic that was not there. `ends`: of a snapshot's look,
    of the partitions that had changes; empty from a version that did not look for them."""

    id: str | None = None
    at: dict[int, int] = {}
    ends: dict[int, End] = {}

    def reaches(self, id: str | None, number: int, begin: int, end: int) -> bool:
        """Whether what comes behind this place is all there in a partition of the topic `id` that has the offsets from
        `begin` up to `end`. A partition that this place does not know has all where it begins at 0."""
        if self.id and id and self.id != id:
            return False
        at = self.at.get(number, 0)
        return begin <= at <= end

    def had(self, number: int, begin: int, floor: Sequence[int] | None) -> bool:
        """Whether rows that were read at `floor` behind this look have all changes before the offset `begin` in them:
        those that were gone by then, and those that are not behind `floor`. The look alone does not say so of the
        others: a server sends a change before its commit has come to an end."""
        if self.at.get(number, -1) >= begin:
            return True
        end = self.ends.get(number)
        return end is not None and floor is not None and end.at >= begin and list(floor) >= end.seq


TopicPlaces = Mapping[str, TopicPlace]


def places(ids: Ids, offsets: Ends) -> dict[str, TopicPlace]:
    found: dict[str, TopicPlace] = {}
    for (topic, number), at in sorted(offsets.items()):
        found.setdefault(topic, TopicPlace(id=ids.get(topic))).at[number] = at
    return found


def offsets(found: TopicPlaces) -> Ends:
    return {(topic, number): at for topic, place in found.items() for number, at in place.at.items()}


def beginnings(broker: Broker, topics: Mapping[str, Collection[int]]) -> dict[str, TopicPlace]:
    """Of the first records that these topics still have."""
    ids = broker.topic_ids(topics)
    return places(ids, broker.begins([(topic, number) for topic, numbers in topics.items() for number in numbers]))


def seen(pipeline: Pipeline, broker: Broker, tables: Iterable[tuple[str, str]] = ()) -> dict[str, TopicPlace]:
    """What the topics that feed the lake still have, before a snapshot of these tables begins: that reads whatever is
    gone by then, and of the tables' own what is there, too."""
    found = beginnings(broker, broker.topics([names.ddl_topic(pipeline)]))
    own = {topic for name in tables for topic in names.events_topics(pipeline, *name)} & found.keys()
    there = [(topic, number) for topic in own for number in found[topic].at]
    for (topic, number), end in broker.lasts(there).items():
        found[topic].ends[number] = End(*end)
    return found


def seen_for(pipeline: Pipeline, found: TopicPlaces, db: str, table: str) -> dict[str, TopicPlace]:
    """The part of it that is about a table; nothing of a snapshot that did not look."""
    return {topic: found.get(topic, TopicPlace()) for topic in own_topics(pipeline, db, table)} if found else {}


class Look(NamedTuple):
    """A snapshot's. `own`: the topics of which it is to have all records up to its beginning. `seen`: empty of one that
    did not look."""

    own: Collection[str]
    seen: TopicPlaces


def own_topics(pipeline: Pipeline, db: str, table: str) -> tuple[str, ...]:
    return *names.events_topics(pipeline, db, table), names.ddl_topic(pipeline)


def first_known(looks: Sequence[Look]) -> dict[str, TopicPlace]:
    """`looks`: the oldest first. Each topic's place by the oldest that is about it, or of all where none is. Another
    table's does not stand in for one that did not look, or before the topic was there: what was gone by then, that one
    may lack. Such a topic's place is its beginning."""
    found: dict[str, TopicPlace] = {}
    for topic in {topic for look in looks for topic in look.seen}:
        known = next(look.seen[topic] for look in looks if topic in look.seen)
        own = [look for look in looks if topic in look.own]
        if any(not look.seen for look in own or looks):
            found[topic] = TopicPlace(id=known.id, at=dict.fromkeys(known.at, 0))
        else:
            found[topic] = own[0].seen.get(topic, TopicPlace()) if own else known
    return found


def in_json(offsets: Ends) -> str:
    """As Spark takes offsets."""
    topics: dict[str, dict[str, int]] = {}
    for (topic, number), at in offsets.items():
        topics.setdefault(topic, {})[str(number)] = at
    return json.dumps(topics)


def missing(known: TopicPlaces, there: Ends) -> Iterator[tuple[str, int]]:
    """The partitions of these places that are gone."""
    for topic, place in sorted(known.items()):
        yield from ((topic, number) for number in sorted(place.at) if (topic, number) not in there)
