"""Which names a column of the lake's tables can have."""

from __future__ import annotations

import re

FORBIDDEN = set(" ,;{}()\n\t=")  # Delta keeps these out of column names
OWN = ("_seq", "_ts")  # the lake's own, in each table
# As Delta calls a column of its own, which it puts beside a table's while it merges or reads; it does neither then.
OF_MERGES = {
    "_row_id_", "_file_name_", "_source_row_present_", "_target_row_present_", "_row_dropped_",
    "__delta_internal_is_row_deleted", "_tmp_metadata_row_index",
}  # fmt: skip


def nameable(column: str) -> bool:
    """Whether the lake can have a column of this name."""
    return not FORBIDDEN & set(column) and column.lower() not in (*OWN, *OF_MERGES)


def holds(wide: str, narrow: str) -> bool:
    """Whether a column of the one Spark type has each value of the other as it is, though Parquet writes it in another
    form: a DECIMAL of more digits, also of whole numbers, as BIGINT UNSIGNED is one. False of types that are the
    same."""
    sizes = [_digits(kind) for kind in (wide, narrow)]
    if wide == narrow or not wide.startswith("decimal") or None in sizes:
        return False
    return all(more >= less for more, less in zip(*filter(None, sizes), strict=True))


def _digits(kind: str) -> tuple[int, int] | None:
    """Before the point and behind it."""
    if kind == "bigint":
        return 19, 0
    found = re.fullmatch(r"decimal\((\d+),\s*(\d+)\)", kind)
    return (int(found[1]) - int(found[2]), int(found[2])) if found else None
