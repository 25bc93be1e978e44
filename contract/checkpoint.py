"""The checkpoint: the end of a transaction, everything before which every sink has made durable.

The value of a commit-log record is its JSON. Read by the streamer (resume), by compaction (what a run is
complete up to) and by the snapshot (P0).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict

from contract import gtids
from contract.gtid import UUID
from contract.gtid_places import name
from contract.pipeline import Tables
from contract.sequence import file_number
from contract.shown_by import Rule, changed, chooses

FORMAT = 1
KEPT = 30  # different lists of tables; the lake takes note of each at its next run
JOINED = 1_000  # tables: a checkpoint is one record

Place = tuple[int, int, int]  # epoch, number of the binlog file, position


class CheckpointFormatError(ValueError):
    """A checkpoint written by a newer version of Headrace."""


class Earlier(BaseModel):
    """The tables that were followed up to a place."""

    model_config = ConfigDict(frozen=True)

    tables: Tables
    until: Place


NONE = Tables(include=("*.*",), exclude=("*.*",))


class OtherRules(BaseModel):
    """By which some tables (patterns) were shown up to a place, of which `ts_ms` is the commit time. `rules`: their
    fingerprint."""

    model_config = ConfigDict(frozen=True)

    tables: tuple[str, ...]
    until: Place
    ts_ms: int
    rules: str


class Checkpoint(BaseModel):
    """`file`, `pos`: behind the transaction's last event. `gtid_set`: from which a start goes on. `seen_set`: the same
    with the XA transactions that are prepared and have not ended, of which a start reads again and nothing is to be
    delivered yet; empty without any. `seen_elsewhere`: whether a part of it came from another server than this one, and
    may stand behind the place here. `read_from`: file and position of this server that all is behind which such a start
    reads, where they are known. `temporary`: the sessions' temporary tables there, as far as statements made them:
    thread, database, table. `ts_ms`: its commit time at the source, Unix milliseconds UTC. `events`: row changes
    released since the pipeline's first start. `written_at`: ms. `tables`: those that are followed from here on; None
    from a version that did not say. `rules`: by which rows are shown from here on (contract/fingerprint.py); empty from
    a version that did not say. `shown_by`: the same, rule by rule; None from a version that did not say. `other_rules`:
    which tables were shown otherwise before, the oldest first, no more than KEPT. `unequal`: tables, as `db.table`, of
    which a change was put aside and did not reach Kafka, each with the place of the last one's transaction. `joined`:
    tables, as `db.table`, that came into the pipeline with rows of before that place, which nobody streamed: a snapshot
    that begins there or behind it has them; the last JOINED. `run`: the streamer's process that wrote it, of
    exactly-once delivery alone. `by_place`: whether the stream goes on behind file and position on this server alone,
    which has no GTIDs, and `gtid_set` is empty; `file_made`: when the server made that file (Unix seconds, 0 where that
    is not known), which tells it from another one of its name. `sends`: by what changes become records from here on, as
    `rules` says of rows. `form`: of the records (records.format). `topics`: those into which transforms sent changes,
    beside the tables' own. `templates`: by which topics of tables are named and were before
    (kafka.topic), the first use first; empty from a version that did not say.
    `earlier`: the lists before it, the oldest first, no more than KEPT; `forgotten`: up to where those hold that are
    not kept any more."""

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
    temporary: tuple[tuple[int, str, str], ...] = ()
    xid: int | None = None
    ts_ms: int
    events: int
    written_at: int
    tables: Tables | None = None
    earlier: tuple[Earlier, ...] = ()
    forgotten: Place | None = None
    run: str = ""
    rules: str = ""
    shown_by: tuple[Rule, ...] | None = None
    other_rules: tuple[OtherRules, ...] = ()
    sends: str = ""
    form: str = "headrace"
    unequal: dict[str, Place] = {}
    joined: dict[str, Place] = {}
    topics: tuple[str, ...] = ()
    templates: tuple[str, ...] = ()
    by_place: bool = False
    file_made: int = 0

    @property
    def flavor(self) -> str | None:
        """Of the server whose transactions these are; None where nothing tells it."""
        if self.gtid_set:
            return "mysql" if ":" in self.gtid_set else "mariadb"
        return "mysql" if UUID.fullmatch(self.server_uuid.lower()) else None

    @property
    def behind(self) -> str:
        """The transactions behind which a start goes on: `gtid_set`, or the same said by the place."""
        return name(*(self.read_from or (self.file, self.pos))) if self.by_place else self.gtid_set

    @property
    def named_by(self) -> tuple[str, ...]:
        """The templates of the topics that have changes of up to here. What was sent behind it is sent again."""
        return self.templates if self.events else ()

    def follows(self, db: str, table: str) -> bool:
        """Whether the table's changes behind this place are delivered."""
        return self.tables is None or self.tables.match(db, table)

    def following(self, tables: Tables) -> Checkpoint:
        """The same place, from which on these tables are followed."""
        tables = tables.noted
        if self.tables is None or tables == self.tables:
            return self.model_copy(update={"tables": tables})
        # Of one list only its last time can be a gap, and none of the list that is followed from here on.
        others = (one for one in self.earlier if one.tables not in (self.tables, tables))
        earlier = (*others, Earlier(tables=self.tables, until=self.place))
        return self.model_copy(update={"tables": tables, **self._kept(earlier)})

    def without_snapshots(self, until: Place) -> Checkpoint:
        """The same place; each table counts as not followed up to `until`, so that it needs a snapshot behind that."""
        others = [one for one in self.earlier if one.tables != NONE]
        until = max([until, *(one.until for one in self.earlier if one.tables == NONE)])
        return self.model_copy(update=self._kept((*others, Earlier(tables=NONE, until=until))))

    @property
    def all_until(self) -> Place | None:
        """Up to where each table counts as not followed, also one that has no snapshot and never joined."""
        return max((one.until for one in self.earlier if one.tables == NONE), default=None)

    def _kept(self, earlier: tuple[Earlier, ...]) -> dict[str, Any]:
        known = [self.forgotten] if self.forgotten else []
        known += [one.until for one in earlier[:-KEPT]]
        return {"earlier": earlier[-KEPT:], "forgotten": max(known, default=None)}

    def since(self, db: str, table: str) -> Place | None:
        """From where on the table is followed without a gap; None where that is from the beginning, as far as is
        known."""
        if not self.follows(db, table):
            return self.place
        gaps = (one.until for one in self.earlier if not one.tables.match(db, table))
        return max(gaps, default=None)  # behind a move back (`headrace seek`) the last one may end before another

    def joining(self, tables: Mapping[str, bool], place: Place) -> Checkpoint:
        """The same place. Of these tables (`db.table`, or `db.*`) there may be rows of before `place` that nobody
        streamed, or there are certainly none (false), as of one that was made or dropped there."""
        databases = tuple(name[:-1] for name in tables if name.endswith(".*"))

        def stays(name: str) -> bool:  # a name with a dot in it may be of another database
            whole = any(name.startswith(db) and "." not in name.removeprefix(db) for db in databases)
            return name not in tables and not whole

        joined = {name: at for name, at in self.joined.items() if stays(name)}
        joined |= {name: place for name, joins in tables.items() if joins}
        joined = dict(list(joined.items())[-JOINED:])
        return self if joined == self.joined else self.model_copy(update={"joined": joined})

    def unread(self, db: str, table: str, read_at: Sequence[int] | None) -> Place | None:
        """Where the table joined, if a snapshot that read it at `read_at` (None without one) lacks rows of before."""
        joined = self.joined.get(f"{db}.{table}")
        return None if joined is None or (read_at is not None and tuple(read_at[:3]) >= joined) else joined

    def showing(self, rules: str, each: tuple[Rule, ...]) -> Checkpoint:
        """The same place, from which on rows are shown by these rules."""
        if (rules, each) == (self.rules, self.shown_by):
            return self
        others = self.other_rules
        tables = changed(self.shown_by, each) if self.rules not in ("", rules) else ()
        if tables:
            others = (*others, OtherRules(tables=tables, until=self.place, ts_ms=self.ts_ms, rules=self.rules))
        if len(others) > KEPT:
            first, second, *more = others
            both = tuple(dict.fromkeys((*first.tables, *second.tables)))
            others = (second.model_copy(update={"tables": both}), *more)
        return self.model_copy(update={"rules": rules, "shown_by": each, "other_rules": others})

    def shown_otherwise(self, db: str, table: str, read_at: Sequence[int], rules: str) -> int | None:
        """Of a table that a snapshot read at that place, by the rules of that fingerprint: until when (ms) changes of
        it were shown by other rules than now; None where that is over before the snapshot."""
        at = tuple(read_at[:3])
        late = (one for one in self.other_rules if at < one.until or (at == one.until and rules == one.rules))
        return max((one.ts_ms for one in late if chooses(one.tables, db, table)), default=None)

    def shown_since(self, db: str, table: str) -> Place | None:
        """From where on the table is shown by the rules of now; None where it was never by others, as far as is
        known."""
        return max((one.until for one in self.other_rules if chooses(one.tables, db, table)), default=None)

    @property
    def sent(self) -> str:
        """The GTID set of all that was sent, also behind the place from which a start goes on; empty of a stream by
        file and position."""
        return self.gtid_set if self.by_place else self.seen_set or self.gtid_set

    def covers(self, gtid_set: str) -> bool:
        """Whether all that the transactions of the set committed was delivered."""
        wanted = gtids.parse(gtid_set)
        return not wanted or gtids.parse(self.seen_set or self.behind).issuperset(wanted)

    @property
    def place(self) -> Place:
        """What checkpoints of a pipeline are ordered by."""
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
