"""The statements that may stand between two shapes of a table, as far as they are still known. Pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass

from spark.evolution.schema_change_rows import Place
from spark.evolution.state import Altered, Mark
from spark.lake.stopped import Name

KEPT = 1000  # of each table, and of each kind: tables that are made and dropped are not to push out another's
Known = Mapping[Name, Sequence[Place]]


@dataclass(frozen=True)
class Statements:
    """By table, the oldest first: `altered` and `shaped` as of State."""

    altered: Known
    shaped: Known

    def between(self, name: Name, first: Place, last: Place) -> set[Place] | None:
        """Those behind one place and before the other; None where some of them may be forgotten."""
        mine = [known.get(name, ()) for known in (self.altered, self.shaped)]
        if any(len(places) >= KEPT and places[0] > first for places in mine):
            return None
        return {seq for places in mine for seq in places[bisect_right(places, first) : bisect_left(places, last)]}

    def altered_in(self, name: Name, begin: Place, end: Place) -> bool:
        """Whether one may have changed rows at the first place or behind it, and before the other."""
        places = self.altered.get(name, ())
        return bisect_left(places, begin) < bisect_left(places, end)

    def without(self, gone: Set[tuple[Name, Place]]) -> Statements:
        left = ((*name, seq) for name, places in self.altered.items() for seq in places if (name, seq) not in gone)
        return Statements(_by_table(left), self.shaped)

    def since_drops(self, marks: Iterable[Mark]) -> Statements:
        """Without those before a table's last DROP whose mark is open, so that a table which is dropped for good has
        that one alone. They are not asked for: the table stays stale until it is read behind the DROP, whatever they
        did, and none that is forgotten counts as the only one between two shapes."""
        last: dict[Name, Place] = {}
        for mark in marks:
            if mark.kind == "drop":
                last[mark.name] = max(mark.seq, last.get(mark.name, mark.seq))
        altered, shaped = (
            {name: [seq for seq in places if name not in last or seq >= last[name]] for name, places in known.items()}
            for known in (self.altered, self.shaped)
        )
        return Statements(altered, shaped)

    def lists(self) -> tuple[list[Altered], list[Altered]]:
        """As State has them."""
        altered, shaped = (
            [(*name, seq) for name, places in known.items() for seq in places] for known in (self.altered, self.shaped)
        )
        return altered, shaped


def statements(altered: Iterable[Altered], shaped: Iterable[Altered]) -> Statements:
    """The last KEPT of each table. By their places, whenever they came: what is forgotten is older than what is not."""
    return Statements(_by_table(altered), _by_table(shaped))


def _by_table(known: Iterable[Altered]) -> Known:
    found: dict[Name, set[Place]] = {}
    for db, table, seq in known:
        found.setdefault((db, table), set()).add(seq)
    return {name: sorted(places)[-KEPT:] for name, places in found.items()}
