"""The past of one table in the database of a statement: its history, its changes, and what it was at a time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain

from contract import breaks, lost_changes, names, renames, status, steps
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

    def make(self, rows: bool) -> None:
        """`rows`: not the changes alone, which need no key. Raises LakeReadError."""
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
        keys, kinds = self._keys(broken) if rows else [], self._kinds()
        spelled = [*renames.spellings(followed, self.table.db, self.table.table), *chain.from_iterable(keys)]
        key = self._key_of_table(keys, kinds)
        past = Past(self.name, self.now, self.raw, kinds, key, renamed, broken, [*dict.fromkeys(spelled)])
        versions, changes, at = self.shown
        self.loading.connection.execute(f"CREATE VIEW {changes} AS {past.changes()}")
        if rows:
            self._show(past, versions, at, self._began(kept.since if kept else None, broken))

    def _load(self, broken: Sequence[Break], columns: str) -> None:
        counted = "max(ts) OVER (ORDER BY _seq ROWS UNBOUNDED PRECEDING) AS counted"
        parted = parts(broken, [self._ended(one) for one in broken if one.ends])
        mine = f"tbl = {literal(self.name)} AND db = {literal(self.table.db)}"
        self.loading.make(self.raw, f"*, {counted}, {parted}", self.loading.stream(self.changes, columns, mine))

    def _kinds(self) -> dict[str, str]:
        described = self.loading.connection.execute(f"DESCRIBE {self.now}").fetchall()
        return {str(column): str(kind) for column, kind, *_ in described}

    def _keys(self, broken: Sequence[Break]) -> list[list[str]]:
        """The names of the key's columns in the changes behind the last end of its past, as each spells them."""
        ends = sum(one.ends for one in broken)
        found = self.loading.connection.execute(
            f"SELECT DISTINCT json_keys(key) FROM {self.raw} WHERE op <> 't' AND key IS NOT NULL AND part = {ends}"
        ).fetchall()
        return [one for (one,) in found]

    def _key_of_table(self, keys: Sequence[Sequence[str]], kinds: Iterable[str]) -> Sequence[str]:
        """As the table's columns are spelled; empty where there is no change."""
        changed = f"{self.name}: its primary key changed meanwhile"
        if len({tuple(map(str.lower, one)) for one in keys}) > 1:
            ask = f"{self.shown[1]} has each change by the key of its time"
            raise LakeReadError(f"{changed}, rows before and after do not compare. {ask}")
        columns = {name.lower(): name for name in kinds}
        if missing := [name for name in (keys[0] if keys else ()) if name.lower() not in columns]:
            step = steps.snapshot_table(self.loading.pipeline, self.name)
            raise LakeReadError(f"{changed}, and the lake's table has no column {', '.join(missing)}: {step}")
        return [columns[name.lower()] for name in keys[0]] if keys else ()

    def _show(self, past: Past, versions: str, at: str, began: datetime | None) -> None:
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
