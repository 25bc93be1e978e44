"""A table's shape, as the schema topic carries it and as the lake is made from it.

Two sources give it: the TABLE_MAP's metadata (streamer) and information_schema (snapshot). Both give
equal `Column`s for the same table; only `members`, `key` and the types' own numbers count, never a
server's spelling of them.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from contract.sequence import Sequence

Unfit = Literal["null", "string", "fail"]


class Column(BaseModel):
    """One column.

    `type` is MySQL's DATA_TYPE in lower case (`int`, `varchar`, `datetime`, `enum` ...), by which
    contract/types.py finds its row. `length`: characters of char/varchar, bytes of binary/varbinary, bits of
    bit, dimensions of vector; None for others. `precision`, `scale`: of decimal. `fsp`: fractional digits of time,
    datetime, timestamp. `members`: of enum and set, in order. `mask`: what takes the place of the column's
    values (contract/masks.py); the other facts are the masked column's then. `unfit`: what the lake makes of values
    that it cannot hold (`lake.unrepresentable`): the reader's own setting, which is never written. `sent`: the name
    that the column has in records of this shape, where it was renamed since; never written either.
    """

    model_config = ConfigDict(frozen=True)

    name: str
    type: str
    unsigned: bool = False
    length: int | None = None
    precision: int | None = None
    scale: int | None = None
    fsp: int = 0
    charset: str | None = None
    nullable: bool = True
    members: tuple[str, ...] = ()
    mask: str | None = None
    unfit: Unfit = Field("null", exclude=True)
    sent: str | None = Field(None, exclude=True)


class TableSchema(BaseModel):
    """`version` counts up from 1, also when an old shape comes back. `since`: the first seq that uses it.
    `key`: the primary key's columns in key order; empty without one."""

    model_config = ConfigDict(frozen=True)

    db: str
    table: str
    version: int = 0
    columns: tuple[Column, ...]
    key: tuple[str, ...] = ()
    since: Sequence | None = None

    def column(self, name: str) -> Column:
        """Raises LookupError, which a user's own suite may show to a person."""
        if found := next((column for column in self.columns if column.name == name), None):
            return found
        raise LookupError(f"{self.db}.{self.table} has no column {name}")

    def of_key(self) -> TableSchema:
        """The key's columns alone, in key order."""
        return self.model_copy(update={"columns": tuple(self.column(name) for name in self.key)})

    def shape(self) -> tuple[tuple[Column, ...], tuple[str, ...]]:
        """What makes two schemas the same version."""
        return self.columns, self.key
