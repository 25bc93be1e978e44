"""One record on its way from the envelope to the sink, where a pipeline file asks for more than the plain ones."""

from __future__ import annotations

from streamer.sinks.port import Headers


class Outgoing:
    """`key`, `value`: bytes as they are sent. `event`: whether it tells a change of a row, and not of the pipeline
    itself. `partition`: None for the key's."""

    __slots__ = ("event", "headers", "key", "partition", "topic", "value")

    def __init__(self, topic: str, key: bytes | None, value: bytes | None, event: bool = True) -> None:
        self.topic = topic
        self.key = key
        self.value = value
        self.event = event
        self.headers: Headers = ()
        self.partition: int | None = None

    @property
    def size(self) -> int:
        return len(self.value or b"")

    @property
    def op(self) -> str:
        """Of an event: in its envelope it stands behind the images and the source."""
        assert self.value is not None
        at = self.value.rindex(b',"op":"') + len(b',"op":"')
        return self.value[at : at + 1].decode()

    @property
    def seq(self) -> bytes:
        """Of an event: the order tuple, as JSON."""
        assert self.value is not None
        at = self.value.rindex(b'"seq":[') + len(b'"seq":')
        return self.value[at : self.value.index(b"]", at) + 1]


def with_tombstones(records: list[Outgoing]) -> list[Outgoing]:
    """Behind each delete under a key a record without a value, by which compaction of a consumer's topic forgets it."""
    found = []
    for record in records:
        found.append(record)
        if record.event and record.key is not None and record.op == "d":
            tombstone = Outgoing(record.topic, record.key, None, event=False)
            tombstone.partition = record.partition
            found.append(tombstone)
    return found
