"""Kafka's ids of the event topics, kept beside the offsets that were read of them.

A topic that was deleted and made again has the old name and another id. Where its end has passed the old offsets
already, nothing else tells: its first records would be passed by. The file lies in the query's checkpoint, so an
operator who moves that away, to begin anew, begins with the new ids; what is lost by that is noted (lost.py).
"""

from __future__ import annotations

from spark.failpoints import reached
from spark.kafka.offsets import Ends
from spark.kafka.topic_places import Ids
from spark.lake.lake import Lake

FILE = "topic-ids.json"


class TopicIds:
    """Those of the topics that the query behind `checkpoint` reads."""

    def __init__(self, lake: Lake, checkpoint: str) -> None:
        self.lake, self.path = lake, f"{checkpoint}/{FILE}"

    def known(self) -> dict[str, str]:
        return self.lake.read(self.path) or {}

    def made_again(self, ids: Ids, done: Ends) -> str | None:
        """In words, a topic of which records were read (`done`: the offsets) and that is another now."""
        known = self.known()
        read = {topic: at for (topic, _), at in sorted(done.items()) if at}
        for topic in sorted(read):
            if topic in known and topic in ids and ids[topic] != known[topic]:
                return (
                    f"the topic {topic} was deleted and made again (its id was {known[topic]} and is {ids[topic]}) "
                    "after records of it were read, and the old offsets would pass by the first of its new ones"
                )
        return None

    def made_again_unread(self, ids: Ids, done: Ends) -> set[str]:
        """The topics that are others now, and of whose records none was read: there may have been some."""
        read = {topic for (topic, _), at in done.items() if at}
        others = {topic for topic, id in self.known().items() if topic in ids and ids[topic] != id}
        return others - read if done else set()

    def keep(self, ids: Ids) -> None:
        """Before anything is read: a topic that is made again while the query runs is then seen by the next run. One
        that is not there keeps its id: it may be made again."""
        known = self.known()
        if ids and known != (now := {**known, **ids}):
            self.lake.write(self.path, now)
            reached("topic ids kept")
