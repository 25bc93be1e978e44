"""What of the tables' changes goes on: their columns and masks, the kinds of events; and counts of what does not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Set

from contract.pipeline_columns import Shown
from contract.pipeline_events import Kind
from contract.schema import TableSchema
from streamer.protocol.model import Op

KINDS: dict[Op, Kind] = {"c": "insert", "u": "update", "d": "delete"}


class Filters:
    """`show(table)`: its columns and masks; all as they are without it. `drops(db, table)`: the kinds of events that
    are left out; none without it. `dropped`: what was, since the start, by (`db.table`, kind): rows, or statements of
    DDL. `passed_by`: rows events of tables that take no part, which nobody decodes."""

    def __init__(
        self,
        show: Callable[[TableSchema], Shown] | None = None,
        drops: Callable[[str, str], Set[Kind]] | None = None,
    ) -> None:
        self.show = show
        self._drops = drops
        self.dropped: Counter[tuple[str, Kind]] = Counter()
        self.passed_by = 0

    def ops(self, db: str, table: str) -> frozenset[Op]:
        """Whose rows are left out."""
        dropped = self._drops(db, table) if self._drops else frozenset()
        return frozenset(op for op, kind in KINDS.items() if kind in dropped)

    def drop_rows(self, name: str, op: Op, rows: int) -> None:
        self.dropped[name, KINDS[op]] += rows // 2 if op == "u" else rows

    def drop(self, db: str, table: str, kind: Kind) -> bool:
        """Whether an event of the kind is left out; it is counted then."""
        if self._drops is None or kind not in self._drops(db, table):
            return False
        self.dropped[f"{db}.{table}", kind] += 1
        return True

    def as_dict(self) -> dict[str, object]:
        """As `/status` shows it."""
        tables: dict[str, dict[str, int]] = {}
        for (name, kind), count in sorted(self.dropped.copy().items()):
            tables.setdefault(name, {})[kind] = count
        return {"tables": tables, "rows_events_of_other_tables": self.passed_by}
