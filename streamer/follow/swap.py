"""Between two transactions the stream goes on with other tables.

All that was sent is released then, and the checkpoint of that very place names the new tables, durable before the first
record that follows: so a snapshot knows whether changes behind its beginning are delivered, and a restart follows the
same tables.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Protocol

import structlog

from contract.pipeline import Tables
from streamer import joined
from streamer.delivery import Delivery
from streamer.follow.file import FileWatch
from streamer.protocol.held import PreparedXa
from streamer.watcher import Watcher

log = structlog.get_logger("streamer")


class Decoder(Protocol):
    def follow(self, wanted: Callable[[str, str], bool]) -> None: ...


class Swap:
    """`prepared`: the open XA transactions, of whose rows those of other tables were not kept. `joining(old, new)`: the
    tables that the server has now, `db.table`, of the new ones alone; it may ask the server, and be repeated.
    `follow(tables)` tells the rest of the streamer."""

    def __init__(
        self,
        file: FileWatch,
        delivery: Delivery,
        watcher: Watcher,
        prepared: PreparedXa,
        joining: Callable[[Tables, Tables], Iterable[str]],
        follow: Callable[[Tables], None],
    ) -> None:
        self._file = file
        self._delivery = delivery
        self._watcher = watcher
        self._prepared = prepared
        self._joining = joining
        self._follow = follow

    @property
    def due(self) -> bool:
        return self._file.offered is not None

    def between(self, decoder: Decoder) -> None:
        """The transaction before is whole, and none has begun. Raises as `Delivery.turn`."""
        tables = self._file.offered
        if tables is None or self._waits():
            return
        self._delivery.empty()
        # What is made, dropped or renamed between this place and now comes in the stream, and is told there.
        asked = partial(self._joining, self._file.pipeline.tables, tables)
        came = list(self._delivery.until_done(asked, "the server's list of tables"))
        checkpoint = self._watcher.checkpoint.following(tables)
        checkpoint = checkpoint.joining(dict.fromkeys(came, True), checkpoint.place)
        written_at = time.time_ns() // 1_000_000
        self._watcher.begin_anew(checkpoint.model_copy(update={"written_at": written_at}))
        self._delivery.settle()
        decoder.follow(tables.match)
        self._follow(tables)
        self._file.taken(tables)
        place = f"{checkpoint.file}:{checkpoint.pos}"
        told = {"not_yet_snapshotted": waiting} if (waiting := joined.told(self._file.pipeline, came)) else {}
        log.info("tables followed", include=tables.include, exclude=tables.exclude, since=place, **told)

    def _waits(self) -> bool:
        if not self._prepared.open:
            return False
        gtids = ", ".join(one.gtid for one in self._prepared.open[:3])
        self._file.waits(
            f"the new tables are followed when the open XA transactions have ended (prepared by {gtids})",
            "End them (XA RECOVER lists them), or restart the streamer, which reads them again.",
        )
        return True
