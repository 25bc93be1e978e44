"""The past of one table in the database of a statement: its history, its changes, and what it was at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from contract import breaks, lost_changes, names, renames, status
from contract.breaks import Break, Place
from readers import kept_history, store
from readers.errors import LakeReadError
from readers.loading import RAW, Loading
from readers.past import MOMENT, Past, behind, leaving, literal, parts, quoted


@dataclass(frozen=True)
class TablePast:
    """`now`: what has its columns, and its rows where there are any. `shown`: what SQL calls its versions, its
    changes, and what it was at a time. `joined`: from where on it is followed, None from the beginning. `refused`: why
    the lake tells of no time, None where it does."""

    loading: Loading
    table: status.TableStatus
    now: str
    shown: Sequence[str]
    joined: Place | None
    refused: str | None

    @property
    def name(self) -> str:
        return f"{self.table.db}.{self.table.table}"

    @property
    def raw(self) -> str:
        return f"{quoted(RAW)}.{quoted(self.name)}"

    @property
    def changes(self) -> str:
        return f"{names.lake_root(self.loading.pipeline)}/{names.CHANGES}"

    def make(self) -> None:
        """Raises LakeReadError."""
        if not self.loading.there(self.changes):
            raise LakeReadError(f"the lake has no changes yet: {self.name} has a past from its first one on")
        followed = store.small_file(self.loading.pipeline, renames.FILE)
        broken = breaks.of(breaks.parse(followed), self.table.db, self.table.table)
        renamed = renames.of(renames.parse(followed), self.table.db, self.table.table)
        self._load(broken, "key, op, before, after, _seq, gtid, ts" + (", schema" if renamed or broken else ""))
        # Behind the changes, since it is noted before they go.
        kept = kept_history.read(self.loading.pipeline).tables.get(self.name)
        if kept:
            self.loading.connection.execute(f"DELETE FROM {self.raw} WHERE {leaving(kept.since, kept.gone)}")
        spelled = renames.spellings(followed, self.table.db, self.table.table)
        past = Past(self.name, self.now, self.raw, self._kinds(), self._key(broken), renamed, broken, spelled)
        self._show(past, self._began(kept.since if kept else None, broken))

    def _load(self, broken: Sequence[Break], columns: str) -> None:
        counted = "max(ts) OVER (ORDER BY _seq ROWS UNBOUNDED PRECEDING) AS counted"
        parted = parts(broken, [self._ended(one) for one in broken if one.ends])
        mine = f"tbl = {literal(self.name)} AND db = {literal(self.table.db)}"
        self.loading.make(self.raw, f"*, {counted}, {parted}", self.loading.stream(self.changes, columns, mine))

    def _kinds(self) -> dict[str, str]:
        described = self.loading.connection.execute(f"DESCRIBE {self.now}").fetchall()
        return {str(column): str(kind) for column, kind, *_ in described}

    def _key(self, broken: Sequence[Break]) -> Sequence[str]:
        """Of the changes behind the last end of its past; empty where there are none."""
        ends = sum(one.ends for one in broken)
        keys = self.loading.connection.execute(
            f"SELECT DISTINCT json_keys(key) FROM {self.raw} WHERE op <> 't' AND part = {ends}"
        ).fetchall()
        if len(keys) > 1 and not self.table.changes_only:
            raise LakeReadError(f"{self.name}: its primary key changed meanwhile, rows before and after do not compare")
        return keys[0][0] if keys else ()

    def _show(self, past: Past, began: datetime | None) -> None:
        versions, changed, at = self.shown
        self.loading.connection.execute(f"CREATE VIEW {changed} AS {past.changes()}")
        if self.table.changes_only:
            return
        self.loading.connection.execute(f"CREATE VIEW {versions} AS {past.history()}")
        no_past = f"has no past for now: {self.refused}" if self.refused else self.table.no_past()
        as_of = past.as_of(began, no_past)
        self.loading.connection.execute(f"CREATE MACRO {at}({MOMENT}) AS TABLE {as_of}")

    def _ended(self, one: Break) -> datetime | None:
        if one.ts_ms:
            return datetime.fromtimestamp(one.ts_ms / 1000, UTC)
        return self.loading.first(self.changes, behind(one.seq))

    def _began(self, kept: datetime | None, broken: Sequence[Break]) -> datetime | None:
        """Since when the lake has every change of the table. `kept`: those of before were removed."""
        text = store.small_file(self.loading.pipeline, lost_changes.FILE)
        lost = lost_changes.until(text, self.loading.pipeline, self.table.db, self.table.table)
        place = max(filter(None, (self.joined, lost, breaks.last(broken))), default=None)
        if kept and not place:
            return kept
        began = self.loading.first(self.changes, behind(place) if place else "true")
        return max(began, kept) if began and kept else began
