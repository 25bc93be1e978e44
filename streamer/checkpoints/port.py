"""The port of the durable position."""

from __future__ import annotations

from typing import Any, Protocol

from contract.checkpoint import Checkpoint


class Checkpoints(Protocol):
    """`durable`: the last checkpoint known to be durable; it only ever moves on. `failure`: why one could not
    be made so, final; None when all is well."""

    @property
    def durable(self) -> Checkpoint | None: ...

    @property
    def failure(self) -> Any: ...

    def load(self) -> Checkpoint | None:
        """The last durable checkpoint, None before the first. Raises CheckpointError and the broker's errors."""

    def offer(self, checkpoint: Checkpoint) -> None:
        """Makes it durable when the one before it is; of several that wait, the last one counts."""

    def settled(self) -> bool:
        """Whether the last one offered is durable."""
