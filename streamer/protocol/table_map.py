"""A TABLE_MAP event -> the table's schema and compiled row decoder.

In: the event's bytes behind the table's id and flags. Out: `TableMap`. Raises MissingMetadataError where the
server wrote no column names, UnsupportedTypeError, and ValueError or IndexError for broken bytes.

Source: MySQL's source documentation, `mysql::binlog::event::Table_map_event`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial

from contract.masks import Mask
from contract.pipeline_columns import Shown
from contract.schema import TableSchema
from contract.types import INEXACT
from streamer.errors import UnsupportedTypeError
from streamer.protocol import mariadb_tables
from streamer.protocol.columns import Raw, field
from streamer.protocol.compiler import compile_rows
from streamer.protocol.metadata import columns as columns_of
from streamer.protocol.model import TableMap
from streamer.protocol.partial import compile_partial
from streamer.protocol.server import NEWEST, Server
from streamer.protocol.unclear import Definitions, cleared, doubt, is_unclear
from streamer.protocol.values.reader import Field

Show = Callable[[TableSchema], Shown]
KEY_HINT = "Exclude the table in the pipeline file, or give it a primary key of exact types"


def names(d: bytes, o: int) -> tuple[str, str, int]:
    """Database, table, and where the columns begin; `o` is behind the table's id and flags."""
    db_end = o + 1 + d[o]
    table_end = db_end + 2 + d[db_end + 1]
    return d[o + 1 : db_end].decode(), d[db_end + 2 : table_end].decode(), table_end + 1


def table_map(
    d: bytes, server: Server = NEWEST, known: Definitions | None = None, at: int = 0, gtid: str = "",
    show: Show | None = None,
) -> TableMap:  # fmt: skip
    """`d`: the event's body from the database's name on, without the checksum. `server`: who wrote the file. `at`,
    `gtid`: the event's time and transaction, for which `known` tells what it does not. `show`: which columns take part,
    and their masks; all as they are without it."""
    db, table, o = names(d, 0)
    raws, places = columns_of(d, o, f"{db}.{table}", server)
    hidden = mariadb_tables.hidden(raws, db, table, known) if server.mariadb else ()
    try:
        fields = _fields(raws, db, table, known, at, gtid) if server.mariadb else [field(raw) for raw in raws]
    except UnsupportedTypeError as error:
        error.object += f" of {db}.{table}"
        raise
    own = [n for n in range(len(fields)) if n not in hidden]
    key = [fields[n].column for n in places]
    for column in key:
        if column.type in INEXACT:
            cause = f"its type, {column.type}, is a part of the primary key, and has no one text that tells rows apart"
            raise UnsupportedTypeError("read", f"column {column.name} of {db}.{table}", cause, KEY_HINT)
    columns = tuple(fields[n].column for n in own)
    source = TableSchema(db=db, table=table, columns=columns, key=tuple(column.name for column in key))
    schema, shown, covers = laid_out(source, own, show)
    decode, text = compile_rows(schema, fields, shown, covers)
    partly = cache(partial(compile_partial, schema, fields, shown, covers))
    return TableMap(schema, decode, text, partly, len(fields) - len(shown))


def laid_out(
    source: TableSchema, own: Sequence[int], show: Show | None
) -> tuple[TableSchema, list[int], dict[int, Mask]]:
    """`source`: the user's columns; `own`: their numbers in a row. What is shown of the table, the numbers of its
    columns, and the masks by number. Raises ColumnRuleError."""
    places = {column.name: n for column, n in zip(source.columns, own, strict=True)}
    masks: Mapping[str, Mask] = {}
    schema = source
    if show is not None:
        found = show(source)
        schema, masks = found.schema, found.masks
    shown = [places[column.name] for column in schema.columns]
    return schema, shown, {places[name]: mask for name, mask in masks.items()}


def _fields(raws: Sequence[Raw], db: str, table: str, known: Definitions | None, at: int, gtid: str) -> list[Field]:
    """Of MariaDB."""
    unclear = [raw.name for raw in raws if is_unclear(raw)]
    if not unclear:
        return [field(raw) for raw in raws]
    name = f"{db}.{table}"
    if known is None:
        raise doubt(name, "the server was not asked")
    return cleared(raws, known.of(db, table, unclear, at, gtid), name)
