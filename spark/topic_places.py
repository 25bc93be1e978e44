"""Places in Kafka's topics: offsets, with the id of the topic that they are of. A topic that was deleted and made again
has the old name and another id, and its offsets say nothing beside the old ones.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping

from pydantic import BaseModel

from contract import names
from contract.pipeline import Pipeline
from spark.kafka import Broker, Ends

Ids = Mapping[str, str]  # topic -> its id; without the topics of a broker that gives none


class TopicPlace(BaseModel):
    """`at`: an offset of each of the partitions; of none of a topic that was not there."""

    id: str | None = None
    at: dict[int, int] = {}

    def reaches(self, id: str | None, number: int, begin: int, end: int) -> bool:
        """Whether what comes behind this place is all there in a partition of the topic `id` that has the offsets from
        `begin` up to `end`. A partition that this place does not know has all where it begins at 0."""
        if self.id and id and self.id != id:
            return False
        at = self.at.get(number, 0)
        return begin <= at <= end


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


def seen(pipeline: Pipeline, broker: Broker) -> dict[str, TopicPlace]:
    """What the topics that feed the lake still have, before a snapshot begins: that reads whatever is gone by then."""
    return beginnings(broker, broker.topics([names.ddl_topic(pipeline)]))


def seen_for(pipeline: Pipeline, found: TopicPlaces, db: str, table: str) -> dict[str, TopicPlace]:
    """The part of it that is about a table; nothing of a snapshot that did not look."""
    topics = (names.events_topic(pipeline, db, table), names.ddl_topic(pipeline))
    return {topic: found.get(topic, TopicPlace()) for topic in topics} if found else {}


def first_known(known: Iterable[TopicPlaces]) -> dict[str, TopicPlace]:
    """Each topic's place by the first that has one."""
    found: dict[str, TopicPlace] = {}
    for one in known:
        found = {**one, **found}
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
