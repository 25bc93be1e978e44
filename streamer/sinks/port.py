"""The port behind the ledger: where records go.

A sink takes records in order and tells each one's fate once, by the callback given with it, from inside `poll`
or `flush`: `callback(error, message)`, error None when the record is durable. Records of one key keep their
order; an error is final (the sink retries by itself whatever a retry can mend): a HeadraceError, or the client's own.
`message.topic()` names the record's topic. All is called from one thread.

`streamer.contract_suites` has the tests that every sink passes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

Callback = Callable[[Any, Any], None]
Headers = Sequence[tuple[str, bytes]]


class Message(NamedTuple):
    """What a callback gets of a record."""

    name: str

    def topic(self) -> str:
        return self.name


class Sink(Protocol):
    """`title`: what it is called in logs and the status. `last_error`: the last words on why it is away, for the
    status; empty when all is well."""

    @property
    def title(self) -> str: ...

    @property
    def last_error(self) -> str: ...

    def send(self, topic: str, keys: Sequence[bytes | None], values: Sequence[bytes], callback: Callback) -> None:
        """Queues records, JSON in bytes; waits while the sink's own queue is full. Raises RecordTooLargeError,
        BrokerRefusedError, or another HeadraceError that ends the stream."""

    def poll(self, seconds: float) -> None:
        """Serves acknowledgements; waits for the first one up to `seconds`."""

    def flush(self, seconds: float) -> int:
        """Makes durable what was sent, without waiting for more to come; waits for that up to `seconds`. Returns how
        many records are not acknowledged."""

    def probe(self, seconds: float) -> bool:
        """Whether the other side answers now. One that does not is waited for."""

    def close(self) -> None:
        """Gives up what is not acknowledged, without waiting for it. May be called again."""


@runtime_checkable
class Partitioned(Sink, Protocol):
    """A sink of which some records want to be in every part of a topic."""

    def send_one(
        self, topic: str, key: bytes | None, value: bytes | None, callback: Callback, headers: Headers = (),
        partition: int | None = None,
    ) -> None:  # fmt: skip
        """As `send`, a record with headers, or into a partition that the key does not choose; value None is a
        tombstone. A sink that has no such things passes them by."""

    def partitions(self, topic: str) -> int:
        """How many the topic has; 0 where the other side does not answer."""

    def send_everywhere(self, topic: str, key: bytes | None, value: bytes, partitions: int, callback: Callback) -> None:
        """Queues a record for each partition. Raises as `send`."""


@runtime_checkable
class Lingering(Sink, Protocol):
    """A sink that keeps what was sent for a moment, so that more may go with it."""

    def hasten(self) -> None:
        """The source has nothing more for now: what was sent goes out."""
