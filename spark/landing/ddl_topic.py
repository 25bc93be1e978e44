"""Whether the lake reads all of the DDL topic: a statement that is passed by may leave any table stale, with no mark.

Where the topic was deleted and made again, or lost records that were not read yet, what it has is read from its first
record, which is harmless: a statement is known when it comes again. What it has no more is noted as a loss of all
tables (lost.py), which a snapshot behind it mends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from contract import names
from spark.evolution.evolution import Evolution
from spark.kafka.broker import Broker
from spark.kafka.topic_places import TopicPlace, TopicPlaces
from spark.lake.lake import Lake
from spark.lake.lost import NOWHERE, Loss, Losses, told


def prove(lake: Lake, broker: Broker, evolution: Evolution, snapshots: Callable[[], TopicPlaces]) -> None:
    """`snapshots`: what the oldest that is known saw; of a lake that has read nothing, that counts."""
    topic = names.ddl_topic(lake.pipeline)
    bounds = broker.bounds(topic)
    id = broker.topic_ids([topic] if bounds else []).get(topic)
    known = TopicPlace(id=evolution.topic, at=dict(evolution.read))
    place = snapshots().get(topic, known) if evolution.new else known
    lost = list(_lost(topic, place, id, bounds))
    if lost:
        checkpoint = broker.checkpoint()  # behind all statements that were there before
        until = [*checkpoint.place, -1, -1] if checkpoint else NOWHERE
        print(f"{told(lost[0])}, statements that change rows unseen: each table may be stale", flush=True)
        Losses(lake).note(one.model_copy(update={"until": until}) for one in lost)
    evolution.begin(id, anew=bool(lost))


def _lost(topic: str, place: TopicPlace, id: str | None, bounds: Mapping[int, tuple[int, int]]) -> Iterator[Loss]:
    for number, (begin, end) in sorted(bounds.items()):
        if not place.reaches(id, number, begin, end):
            yield Loss(topic=topic, partition=number, id=id, begin=begin, until=NOWHERE, everywhere=True)
    for number in sorted(place.at.keys() - bounds.keys()):
        yield Loss(topic=topic, partition=number, until=NOWHERE, everywhere=True)
