"""Records that Kafka had no more when the lake came to read them, and the tables that lack them.

A query that has read nothing yet begins at the first record that there is, and Spark tells nothing of those before it.
So before its first read the topics are looked at: what is gone since the lake last read (`_topics.json`, beside the
checkpoint, which may be moved away), or since a snapshot looked, is noted as a loss (`_lost.json`), for good, before
anything is landed. A later run does the same for a topic that was made again before any record of it was read. A table
counts as not snapshotted while it may lack what was lost: until a snapshot that began behind it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from contract import names
from contract.checkpoint import Checkpoint
from contract.lost_changes import FILE, LostChanges
from spark.failpoints import reached
from spark.kafka.broker import Broker
from spark.kafka.offsets import Ends
from spark.kafka.topic_places import Ids, TopicPlace, TopicPlaces, missing, places
from spark.lake.lake import Lake

READ = "_topics.json"
NOWHERE = [0, 0, 0, 0, 0]  # before all that a snapshot may begin at


class Loss(LostChanges):
    """Records of a partition. `id`, `begin`: of the topic, and the first offset that it had then; `begin` is None where
    it was gone."""

    partition: int
    id: str | None = None
    begin: int | None = None

    def spares(self, floor: Sequence[int] | None, seen: TopicPlace | None) -> bool:
        """Whether a table has what was lost: rows that were read at `floor`, behind a look at the topic that found
        `seen`."""
        if floor is not None and list(floor) >= self.until:
            return True
        if seen is None:
            return False
        if self.begin is None:
            return not seen.at
        # Without ids a topic that was made again looks as the old one does.
        return self.id is not None and seen.id == self.id and seen.had(self.partition, self.begin, floor)


class Losses:
    """Those that are known; of a partition the last one, which is behind those before."""

    def __init__(self, lake: Lake) -> None:
        self.lake, self.path = lake, lake.at(FILE)
        found = (Loss.model_validate(one) for one in lake.read(self.path) or [])
        self.known = {(one.topic, one.partition): one for one in found}

    def note(self, losses: Iterable[Loss]) -> None:
        fresh = {**self.known}
        for loss in losses:
            before = fresh.get(at := (loss.topic, loss.partition), loss)
            everywhere = loss.everywhere or before.everywhere
            fresh[at] = loss.model_copy(update={"until": max(loss.until, before.until), "everywhere": everywhere})
        if fresh != self.known:
            self.known = fresh
            self.lake.write(self.path, [one.model_dump(mode="json") for _, one in sorted(fresh.items())])
            reached("loss noted")

    def of(self, topics: Collection[str], floor: Sequence[int] | None, seen: TopicPlaces) -> Loss | None:
        """The first that the table of these topics lacks; `floor`, `seen`: of its snapshot."""
        about = (one for _, one in sorted(self.known.items()) if one.everywhere or one.topic in topics)
        return next((one for one in about if not one.spares(floor, seen.get(one.topic))), None)


class ReadTopics:
    """How far the lake has read each event topic. It outlives the query's checkpoint."""

    def __init__(self, lake: Lake) -> None:
        self.lake, self.path = lake, lake.at(READ)

    def known(self) -> dict[str, TopicPlace]:
        return {topic: TopicPlace.model_validate(facts) for topic, facts in (self.lake.read(self.path) or {}).items()}

    def keep(self, now: TopicPlaces) -> None:
        if dict(now) != self.known():
            self.lake.write(self.path, {topic: place.model_dump(mode="json") for topic, place in now.items()})
            reached("read topics kept")


class FirstLook:
    """At the topics, of a query that has read nothing. `ends`: of all partitions that it is to read."""

    def __init__(self, lake: Lake, broker: Broker, checkpoint: Checkpoint | None, ids: Ids, ends: Ends) -> None:
        self.lake, self.broker, self.checkpoint, self.ids, self.ends = lake, broker, checkpoint, ids, ends

    def begin(self, snapshots: TopicPlaces) -> Ends:
        """Where the query begins. Notes what is lost before that; `snapshots`: what the oldest that is known saw."""
        read = ReadTopics(self.lake)
        known = {**snapshots, **read.known()}
        begins = self.broker.begins(self.ends) if self.ends else {}
        self._note([*self._losses({topic: place for topic, place in known.items() if self._fed(topic)}, begins)])
        read.keep(places(self.ids, begins))  # behind the losses: what comes after this is told by it
        return begins

    def note_unread(self, topics: Collection[str]) -> None:
        """Of topics that were made again before any record of them was read: nobody knows whether there were any."""
        partitions = {at: end for at, end in self.ends.items() if at[0] in topics}
        begins = self.broker.begins(partitions) if partitions else {}
        self._note([self._loss(*at, self.ids.get(at[0]), begin) for at, begin in sorted(begins.items())])

    def _note(self, losses: list[Loss]) -> None:
        for loss in losses:
            print(f"{told(loss)}: tables that may lack them count as not snapshotted", flush=True)
        Losses(self.lake).note(losses)

    def _fed(self, topic: str) -> bool:
        """Of one that no template gives, a snapshot saw it by one that the file had then."""
        pipeline = self.lake.pipeline
        return names.is_event_topic(pipeline, topic) or names.is_unknown_topic(pipeline, topic)

    def _losses(self, known: TopicPlaces, begins: Ends) -> Iterator[Loss]:
        for (topic, number), begin in sorted(begins.items()):
            place, id = known.get(topic, TopicPlace()), self.ids.get(topic)
            if not place.reaches(id, number, begin, self.ends[topic, number]):
                yield self._loss(topic, number, id, begin)
        for topic, number in missing(known, begins):
            yield self._loss(topic, number, None, None)

    def _loss(self, topic: str, number: int, id: str | None, begin: int | None) -> Loss:
        """In a partition `_seq` only grows: what is gone is before the first that is there."""
        first = None if begin is None else self.broker.first(topic, number, begin)
        now = [*self.checkpoint.place, -1, -1] if self.checkpoint else NOWHERE
        sent = self.checkpoint is not None and topic in self.checkpoint.topics  # a transform sends there
        everywhere = sent or names.is_unknown_topic(self.lake.pipeline, topic)
        return Loss(topic=topic, partition=number, id=id, begin=begin, until=first or now, everywhere=everywhere)


def told(loss: Loss) -> str:
    return f"records of partition {loss.partition} of {loss.topic} were removed from Kafka before they reached the lake"
