"""The checkpoint: the end of a transaction, everything before which every sink has made durable.

The value of a commit-log record is its JSON. Read by the streamer (resume), by compaction (what a run is
complete up to) and by the snapshot (P0).
"""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import BaseModel, ConfigDict

from contract import gtids
from contract.pipeline import Tables
from contract.sequence import file_number

FORMAT = 1
KEPT = 30  # different lists of tables; the lake takes note of each at its next run


class CheckpointFormatError(ValueError):
    """A checkpoint written by a newer version of Headrace."""


class Earlier(BaseModel):
    """The tables that were followed up to a place (epoch, number of the binlog file, position)."""

    model_config = ConfigDict(frozen=True)

    tables: Tables
    until: tuple[int, int, int]


class Checkpoint(BaseModel):
    """`file`, `pos`: behind the transaction's last event. `gtid_set`: from which a start goes on. `seen_set`: the same
    with the XA transactions that are prepared and have not ended, of which a start reads again and nothing is to be
    delivered yet; empty without any. `seen_elsewhere`: whether a part of it came from another server than this one, and
    may stand behind the place here. `read_from`: file and position of this server that all is behind which such a start
    reads, where they are known. `ts_ms`: its commit time at the source, Unix milliseconds UTC. `events`: row
    changes released since the pipeline's first start. `written_at`: ms. `tables`: those that are followed from here on;
    None from a version that did not say. `rules`: by which rows are shown from here on (contract/fingerprint.py); empty
    from a version that did not say. `unequal`: tables, as `db.table`, of which a change was put aside and did not reach
    Kafka, each with the place of the last one's transaction. `run`: the streamer's process that wrote it. `earlier`:
    the lists before it, the oldest first, no more than KEPT."""

    model_config = ConfigDict(frozen=True)

    format: int = FORMAT
    pipeline: str
    connector_id: str
    server_id: int
    server_uuid: str
    epoch: int
    file: str
    pos: int
    gtid_set: str
    seen_set: str = ""
    seen_elsewhere: bool = False
    read_from: tuple[str, int] | None = None
    xid: int | None = None
    ts_ms: int
    events: int
    written_at: int
    tables: Tables | None = None
    earlier: tuple[Earlier, ...] = ()
    run: str = ""
    rules: str = ""
    unequal: dict[str, tuple[int, int, int]] = {}

    def follows(self, db: str, table: str) -> bool:
        """Whether the table's changes behind this place are delivered."""
        return self.tables is None or self.tables.match(db, table)

    def following(self, tables: Tables) -> Checkpoint:
        """The same place, from which on these tables are followed."""
        if self.tables is None or tables == self.tables:
            return self.model_copy(update={"tables": tables})
        # Of one list only its last time can be a gap, and none of the list that is followed from here on.
        others = (one for one in self.earlier if one.tables not in (self.tables, tables))
        earlier = (*others, Earlier(tables=self.tables, until=self.place))
        return self.model_copy(update={"tables": tables, "earlier": earlier[-KEPT:]})

    def since(self, db: str, table: str) -> tuple[int, int, int] | None:
        """From where on the table is followed without a gap; None where that is from the beginning, as far as is
        known."""
        if not self.follows(db, table):
            return self.place
        gaps = (one.until for one in self.earlier if not one.tables.match(db, table))
        return max(gaps, default=None)  # behind a move back (`headrace seek`) the last one may end before another

    def covers(self, gtid_set: str) -> bool:
        """Whether all that the transactions of the set committed was delivered."""
        wanted = gtids.parse(gtid_set)
        return not wanted or gtids.parse(self.seen_set or self.gtid_set).issuperset(wanted)

    @property
    def place(self) -> tuple[int, int, int]:
        """What checkpoints of a pipeline are ordered by: epoch, number of the binlog file, position."""
        return self.epoch, file_number(self.file), self.pos

    @staticmethod
    def greatest(checkpoints: Iterable[Checkpoint]) -> Checkpoint | None:
        """The one of the greatest place, of several the last; None of none. It need not be the commit log's last: a
        streamer that lost its place to another may still append one."""
        return max(reversed(list(checkpoints)), key=lambda checkpoint: checkpoint.place, default=None)

    @classmethod
    def read(cls, data: str | bytes) -> Checkpoint:
        """Raises CheckpointFormatError for a newer format, ValueError for what is no checkpoint."""
        checkpoint = cls.model_validate_json(data)
        if checkpoint.format > FORMAT:
            raise CheckpointFormatError(
                f"the commit log of {checkpoint.pipeline} has format {checkpoint.format}, this version reads up "
                f"to {FORMAT}: upgrade Headrace"
            )
        return checkpoint
