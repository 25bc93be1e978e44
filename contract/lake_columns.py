"""Which names a column of the lake's tables can have."""

from __future__ import annotations

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
