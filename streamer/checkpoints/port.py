"""The port of the durable position, and of the schemas that records behind it have.

`streamer.contract_suites` has the tests that every one passes. Who keeps them somewhere of their own writes a class
with the port `Documents`, which is less to do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from contract.checkpoint import Checkpoint
from contract.schema import TableSchema


class Checkpoints(Protocol):
    """`title`: where they are, for logs. `durable`: the last checkpoint known to be durable; it only ever moves on.
    `failure`: why one could not be made so, final; None when all is well. `last_error`: why that waits now, empty
    when it does not; what waits with the records' own sink is told by that."""

    @property
    def title(self) -> str: ...

    @property
    def durable(self) -> Checkpoint | None: ...

    @property
    def failure(self) -> Any: ...

    @property
    def last_error(self) -> str: ...

    def load(self, stopping: Callable[[], bool] | None = None) -> Checkpoint | None:
        """The last durable checkpoint, None before the first and when `stopping` says so. Raises CheckpointError and
        the errors of a connection."""

    def offer(self, checkpoint: Checkpoint) -> None:
        """Makes it durable when the one before it is; of several that wait, the last one counts."""

    def settled(self) -> bool:
        """Whether the last one offered is durable."""

    def schemas(self, stopping: Callable[[], bool] | None = None) -> list[TableSchema]:
        """All that were kept, in any order. Raises as `load`."""

    def keep(self, schema: TableSchema) -> None:
        """Returns when the schema, which every sink has by now, is durable here too. Raises HeadraceError, a
        retryable one where it is to be asked again."""

    def close(self) -> None:
        """May be called again."""


class Documents(Protocol):
    """Small texts by their keys, in a place of the user's: a table, a key-value store. Made with the settings of the
    pipeline file and the pipeline; called from one thread. What a retry mends is an AwayError; give your connections
    timeouts, since the stream waits meanwhile."""

    def read(self) -> Mapping[str, str]:
        """All of them."""

    def write(self, key: str, text: str) -> None:
        """Puts it in the place of the one before. Returns when it is durable."""

    def close(self) -> None:
        """May be called again."""
