"""Several sinks as one: each gets every record, and a record is durable when all of them say so.

Each one's own state is in its `Lane`; the ledger hears of a batch when its last acknowledgement of the last lane came.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from typing import Any

from streamer.sinks.port import Callback, Headers, Lingering, Message, Partitioned, Sink

POLL_SECONDS = 0.01


class Batch:
    """Records on their way to all sinks. `left`: acknowledgements that are to come; `records`: what the ledger counts.
    The first error is told at once."""

    __slots__ = ("_callback", "_left", "_records")

    def __init__(self, callback: Callback, records: int, acknowledgements: int) -> None:
        self._callback = callback
        self._records = records
        self._left = acknowledgements

    def acknowledge(self, error: Any, message: Any) -> None:
        if error is not None:
            self._callback(error, message)
            return
        self._left -= 1
        if not self._left:
            for _ in range(self._records):
                self._callback(None, message)


class Part:
    """A batch on its way to one sink."""

    __slots__ = ("_done", "_lane", "entered", "left")

    def __init__(self, lane: Lane, left: int, entered: float, done: Callback) -> None:
        self._lane = lane
        self.left = left
        self.entered = entered
        self._done = done

    def acknowledge(self, error: Any, message: Any) -> None:
        if error is None:
            self.left -= 1
            self._lane.waiting -= 1
        self._done(error, message)


class Lane:
    """One of several sinks. `waiting`: records that it has not acknowledged yet."""

    def __init__(self, sink: Sink) -> None:
        self.sink = sink
        self.waiting = 0
        self._parts: deque[Part] = deque()

    def part(self, records: int, batch: Batch) -> Callback:
        """The callback for records that are sent to it now."""
        parts = self._parts
        while parts and not parts[0].left:
            parts.popleft()
        self.waiting += records
        part = Part(self, records, time.monotonic(), batch.acknowledge)
        parts.append(part)
        return part.acknowledge

    @property
    def lag_seconds(self) -> float:
        """For how long the oldest of them has waited; asked from any thread."""
        oldest = next((part.entered for part in self._parts.copy() if part.left), None)
        return round(time.monotonic() - oldest, 3) if oldest is not None else 0.0


class SeveralSinks:
    """The port `Partitioned`, whatever the sinks are: a topic has the parts that the one with partitions gives it."""

    def __init__(self, sinks: Sequence[Sink]) -> None:
        self.lanes = [Lane(sink) for sink in sinks]
        self._sinks = list(sinks)
        self._partitioned = next((sink for sink in sinks if isinstance(sink, Partitioned)), None)

    @property
    def title(self) -> str:
        return " and ".join(sink.title for sink in self._sinks)

    @property
    def last_error(self) -> str:
        return next((sink.last_error for sink in self._sinks if sink.last_error), "")

    def send(self, topic: str, keys: Sequence[bytes | None], values: Sequence[bytes], callback: Callback) -> None:
        count = len(values)
        batch = Batch(callback, count, count * len(self.lanes))
        for lane in self.lanes:
            lane.sink.send(topic, keys, values, lane.part(count, batch))

    def send_one(
        self, topic: str, key: bytes | None, value: bytes | None, callback: Callback, headers: Headers = (),
        partition: int | None = None,
    ) -> None:  # fmt: skip
        """A tombstone goes to the one with partitions alone."""
        lanes = [lane for lane in self.lanes if value is not None or lane.sink is self._partitioned]
        batch = Batch(callback, 1, len(lanes))
        for lane in lanes:
            if lane.sink is self._partitioned:
                self._partitioned.send_one(topic, key, value, lane.part(1, batch), headers, partition)
            elif value is not None:
                lane.sink.send(topic, [key], [value], lane.part(1, batch))
        if not lanes:
            callback(None, Message(topic))

    def partitions(self, topic: str) -> int:
        return self._partitioned.partitions(topic) if self._partitioned is not None else 1

    def send_everywhere(self, topic: str, key: bytes | None, value: bytes, partitions: int, callback: Callback) -> None:
        """Elsewhere it is one record."""
        batch = Batch(callback, partitions, partitions + len(self.lanes) - 1)
        for lane in self.lanes:
            if lane.sink is self._partitioned:
                self._partitioned.send_everywhere(topic, key, value, partitions, lane.part(partitions, batch))
            else:
                lane.sink.send(topic, [key], [value], lane.part(1, batch))

    def poll(self, seconds: float) -> None:
        """Until the first acknowledgement of any sink, looked for in each by turns."""
        for sink in self._sinks:
            sink.poll(0)
        if not seconds:
            return
        until = time.monotonic() + seconds
        before = self._acknowledged()
        while self._acknowledged() == before and (left := until - time.monotonic()) > 0:
            for sink in self._sinks:
                sink.poll(min(POLL_SECONDS, left))

    def flush(self, seconds: float) -> int:
        until = time.monotonic() + seconds
        for sink in self._sinks:
            sink.flush(0)
        return max(sink.flush(max(0.0, until - time.monotonic())) for sink in self._sinks)

    def hasten(self) -> None:
        for sink in self._sinks:
            if isinstance(sink, Lingering):
                sink.hasten()

    def probe(self, seconds: float) -> bool:
        answers = [sink.probe(seconds) for sink in self._sinks]  # of each, also behind one that does not
        return all(answers)

    def close(self) -> None:
        for sink in self._sinks:
            sink.close()

    def _acknowledged(self) -> int:
        return sum(lane.waiting for lane in self.lanes)
