"""The port behind the ledger: where records go.

A sink takes records in order and tells each one's fate once, by the callback given with it, from inside `poll`
or `flush`: `callback(error, message)`, error None when the record is durable. Records of one key keep their
order; an error is final (the sink retries by itself whatever a retry can mend). `message.topic()` names the
record's topic.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

Callback = Callable[[Any, Any], None]
Headers = Sequence[tuple[str, bytes]]


class Sink(Protocol):
    """`last_error`: the client's last words on the broker, for the status; empty when all is well."""

    @property
    def last_error(self) -> str: ...

    def send(self, topic: str, keys: Sequence[bytes | None], values: Sequence[bytes], callback: Callback) -> None:
        """Queues records; waits while the client's own queue is full. Raises RecordTooLargeError,
        BrokerRefusedError."""

    def send_one(
        self, topic: str, key: bytes | None, value: bytes | None, callback: Callback, headers: Headers = (),
        partition: int | None = None,
    ) -> None:  # fmt: skip
        """As `send`, a record with headers, or into a partition that the key does not choose; value None is a
        tombstone. A sink that has no such things passes them by."""

    def partitions(self, topic: str) -> int:
        """How many the topic has; 0 where the other side does not answer."""

    def send_everywhere(self, topic: str, value: bytes, partitions: int, callback: Callback) -> None:
        """Queues a record without a key for each partition. Raises as `send`."""

    def poll(self, seconds: float) -> None:
        """Serves acknowledgements; waits for the first one up to `seconds`."""

    def flush(self, seconds: float) -> int:
        """Waits until all is acknowledged. Returns how many records are not."""

    def probe(self, seconds: float) -> bool:
        """Whether the other side answers now."""

    def close(self) -> None:
        """Gives up what is not acknowledged, without waiting."""
