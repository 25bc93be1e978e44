"""Reads of rows that were erased since. With a row its deletion goes, too, so that no change leads the lake back to
where the source still had it: what such a read answered cannot be compared any more.
"""

from __future__ import annotations

from collections.abc import Sequence

from contract import gtids
from spark.lake.erasures import Erased, Erasures
from spark.lake.lake import Lake
from spark.proof.boundary import Read
from spark.proof.rewind import Position


def erased(lake: Lake, low: Position) -> dict[str, list[Erased]]:
    """By table, as `db.table`, the erasures that reach behind the place, one for each place up to which they do."""
    found: dict[str, dict[Position, Erased]] = {}
    for one in Erasures(lake).known.erased:
        if one.until > low:
            found.setdefault(one.tbl, {})[one.until] = one
    return {name: [*ones.values()] for name, ones in found.items()}


def lost(read: Read, ones: Sequence[Erased]) -> bool:
    """Whether the read may show rows that were erased: it is not known to show all of before."""
    return any(not _shown(read, one) for one in ones)


def _shown(read: Read, one: Erased) -> bool:
    if read.exact:
        return read.high >= one.until
    return bool(read.seen and one.gtid_set) and gtids.parse(read.seen).issuperset(gtids.parse(one.gtid_set))
