"""Columns that MariaDB's TABLE_MAP does not tell for certain, and what they are by the table's definition.

UUID, INET6 and INET4 look like BINARY of their width there, and it like them; times in the format of before 10.1
(`mysql56_temporal_format=OFF`) come without their digits. `Definitions` knows them (streamer/definitions.py asks
the server); what does not fit raises UnclearTypeError.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Protocol

from contract.schema import Column
from streamer.errors import UnclearTypeError
from streamer.protocol.columns import STRING, Raw, field
from streamer.protocol.refusals import PASS_BY
from streamer.protocol.values.reader import Field

LIKE_BINARY = {4: ("binary", "inet4"), 16: ("binary", "uuid", "inet6")}  # by width
OLD_TIMES = {7: "timestamp", 11: "time", 12: "datetime"}
OLD_FORMAT = "mariadb-5.3"  # how the server marks such a column
HINT = f"{PASS_BY}; or exclude the table in the pipeline file"


@dataclass(frozen=True)
class Definition:
    """A column as information_schema has it. `type`: DATA_TYPE; `spelled`: COLUMN_TYPE; `fsp`: digits of a time."""

    type: str
    spelled: str
    fsp: int


class Definitions(Protocol):
    def of(self, db: str, table: str, columns: Sequence[str], at: int, gtid: str) -> Mapping[str, Definition]:
        """By name, those of the columns at least that the table has, as they were at `at` (Unix seconds), in the
        transaction `gtid`. Raises
        UnclearTypeError where that is not known, UnreachableError and its like where nothing can be asked."""

    def shown(self, db: str, table: str) -> tuple[str, Set[str]]:
        """What the table is by now, as information_schema spells it, and its columns; empty where it is gone."""

    def changed(self, db: str, statement: str, gtid: str, ended: int, escapes: bool = True) -> None:
        """A statement that may have defined tables anew was read; it ran until `ended` (Unix seconds) in a session of
        the database `db`. Raises UnclearTypeError where what was said before is in doubt by it."""


def is_unclear(raw: Raw) -> bool:
    if raw.code in OLD_TIMES:
        return True
    if raw.code != STRING or raw.meta[0] != STRING:
        return False
    column = field(raw).column
    return column.type == "binary" and column.length in LIKE_BINARY


def cleared(raws: Sequence[Raw], known: Mapping[str, Definition], table: str) -> list[Field]:
    """All the table's columns, the unclear ones as they are known."""
    return [_cleared(raw, known, table) if is_unclear(raw) else field(raw) for raw in raws]


def _cleared(raw: Raw, definitions: Mapping[str, Definition], table: str) -> Field:
    known = definitions.get(raw.name)
    if known is None:
        raise doubt(table, f"it has no column {raw.name} by now")
    if raw.code in OLD_TIMES:
        if known.type != OLD_TIMES[raw.code] or OLD_FORMAT not in known.spelled:
            raise doubt(table, f"its column {raw.name} is {known.spelled} by now")
        column = Column(name=raw.name, type=known.type, fsp=known.fsp, nullable=raw.nullable)
        return Field(column, old_format=True)
    found = field(raw)
    width = found.column.length or 0
    if known.type not in LIKE_BINARY[width] or (known.type == "binary" and known.spelled != f"binary({width})"):
        raise doubt(table, f"its column {raw.name} is {known.spelled} by now")
    if known.type == "binary":
        return found
    return Field(found.column.model_copy(update={"type": known.type, "length": None}), found.size)


def doubt(table: str, now: str) -> UnclearTypeError:
    cause = (
        "the binlog does not tell UUID, INET6, INET4 and BINARY of their width apart, nor the digits of times in "
        f"MariaDB's old format, and {now}"
    )
    return UnclearTypeError("read", f"rows of {table}", cause, HINT)
