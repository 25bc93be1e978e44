"""Reads of rows that were erased since. With a row its deletion goes, too, so that no change leads the lake back to
where the source still had it: what such a read answered cannot be compared any more. Nor may a check write down again
what the erasure has removed: keys are in what it found, and in the conditions of its chunks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from contract import gtids
from spark.lake.erasures import Erased, Erasures
from spark.lake.lake import Lake
from spark.proof.boundary import Read
from spark.proof.differences import Difference
from spark.proof.rewind import Position

WHILE: Final = "rows were erased"


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


def since(lake: Lake, number: int) -> set[str]:
    """The tables, as `db.table`, of erasures behind the one of that number."""
    return {one.tbl for one in Erasures(lake).known.erased if one.number > number}


def without(lake: Lake, number: int, found: Sequence[Difference]) -> list[Difference]:
    """What a check found that began behind that erasure, without what a later one was about: its keys, and chunks of
    its table, whose conditions may have them."""
    erasures = Erasures(lake)
    late = {(one.tbl, one.hash) for one in erasures.known.erased if one.number > number}
    tables = {tbl for tbl, _ in late}

    def stays(one: Difference) -> bool:
        name = f"{one.db}.{one.table}"
        return name not in tables or (one.key is not None and (name, erasures.hash_of(name, one.key)) not in late)

    return [one for one in found if stays(one)]


def _shown(read: Read, one: Erased) -> bool:
    if read.exact:
        return read.high >= one.until
    return bool(read.seen and one.gtid_set) and gtids.parse(read.seen).issuperset(gtids.parse(one.gtid_set))
