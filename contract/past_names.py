"""By which name a change has a column's value, and where no change has one that can be read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from contract.breaks import Break
from contract.renames import Rename

Sent = list[tuple[int, str | None]]


def sent(renames: Sequence[Rename], broken: Iterable[Break], column: str) -> Sent:
    """The names that a table's column had, the oldest first, each with the first version of the table's schema that has
    it no more. None: by its name changes have another column's values, or its own in a form that cannot be read."""
    found = _named(renames, column)
    forms = [one.version for one in broken if _at(found, column, one.version) in {*map(str.lower, one.columns)}]
    readable = max(forms, default=0)
    return [(readable, None), *(one for one in found if one[0] > readable)] if readable else found


def _named(renames: Sequence[Rename], column: str) -> Sent:
    found: Sent = []
    for one in reversed(renames):
        to = {new.lower(): old for old, new in one.columns}
        if (old := to.get(column.lower())) is not None:
            found.insert(0, (one.version, old))
            column = old
        elif column.lower() in (old.lower() for old in to.values()):
            return [(one.version, None), *found]
    return found


def _at(found: Sent, column: str, version: int) -> str:
    """Its name in that version, in small letters; an empty text of none."""
    return (next((old for until, old in found if version < until), column) or "").lower()
