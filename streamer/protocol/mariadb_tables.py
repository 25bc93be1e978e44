"""What MariaDB's TABLE_MAP has that no query shows: hidden columns, and tables of kinds that hold more than their rows.

Each is known by its look, and then asked for: a user's own column or table may look alike.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from streamer.errors import UnsupportedTypeError
from streamer.protocol.columns import LONGLONG, TIMESTAMP2, Raw
from streamer.protocol.unclear import Definitions, doubt

HASH = re.compile(r"DB_ROW_HASH_\d+")  # of a UNIQUE key over texts that are too long for an index
SEQUENCE = {
    "next_not_cached_value", "minimum_value", "maximum_value", "start_value", "increment", "cache_size",
    "cycle_option", "cycle_count",
}  # fmt: skip
PERIOD = {"row_start", "row_end"}  # the hidden columns of a system-versioned table; a user may name them otherwise
HINT = "Exclude the table in the pipeline file (tables.exclude), and start again"


def hidden(raws: Sequence[Raw], db: str, table: str, known: Definitions | None) -> set[int]:
    """The numbers of the columns that are not the user's. Raises UnsupportedTypeError for a sequence and for a
    system-versioned table."""
    names = {raw.name for raw in raws}
    hashes = {n for n, raw in enumerate(raws) if HASH.fullmatch(raw.name) and raw.code == LONGLONG and raw.nullable}
    if not hashes and names != SEQUENCE and not _may_have_history(raws):
        return set()
    if known is None:
        raise doubt(f"{db}.{table}", "the server was not asked")
    kind, shown = known.shown(db, table)
    if kind == "SEQUENCE" or (not kind and names == SEQUENCE):
        raise _refused(db, table, "a sequence")
    if kind == "SYSTEM VERSIONED" or (names >= PERIOD and not shown >= PERIOD):
        raise _refused(db, table, "system-versioned, with the history of its rows")
    return {n for n in hashes if raws[n].name not in shown}


def _may_have_history(raws: Sequence[Raw]) -> bool:
    """By the two moments of a row's start and end. One by transactions is never logged as rows."""
    return sum(raw.code == TIMESTAMP2 and raw.meta == b"\x06" and not raw.nullable for raw in raws) > 1


def _refused(db: str, table: str, kind: str) -> UnsupportedTypeError:
    cause = f"it is {kind}: its binlog events are of rows that no query shows, and the lake has no place for them"
    return UnsupportedTypeError("read", f"rows of {db}.{table}", cause, HINT)
