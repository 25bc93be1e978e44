"""`headrace decoder`: the Python that decodes a table's rows, written from its schema as a stream writes it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from struct import Struct

from contract.pipeline import Pipeline
from contract.schema import TableSchema
from streamer import outputs, schemas
from streamer.delivery_errors import UnknownSchemaError
from streamer.protocol.compiler import READERS, PlanWriter
from streamer.protocol.fields import field


def find(pipeline: Pipeline, table: str, version: int | None) -> TableSchema:
    """The newest schema of `table` (`db.table`) known to the pipeline, or the version asked for. Raises
    UnknownSchemaError, and what reading them raises."""
    known = [one for one in outputs.known_schemas(pipeline) if f"{one.db}.{one.table}" == table]
    chosen = [one for one in known if version in (None, one.version)]
    if chosen:
        return max(chosen, key=lambda one: one.version)
    where = schemas.place(pipeline)
    if known:
        cause = f"{where} has its versions {', '.join(str(one.version) for one in known)} only"
        raise UnknownSchemaError("showing", f"version {version} of table {table}", cause, "Ask for one of these.")
    hint = "It is written before the table's first record: let `headrace run` stream a change of the table."
    raise UnknownSchemaError("showing", f"the decoder of {table}", f"{where} has no schema of it", hint)


def source(schema: TableSchema) -> str:
    """Python, with comments on the names that it uses. Raises UnsupportedTypeError."""
    readers = [READERS[one.column.type](one) for one in map(field, schema.columns)]
    writer = PlanWriter(schema, readers)
    plan = writer.source(0)
    title = (
        f"# {schema.db}.{schema.table}, schema version {schema.version}, for rows without NULL.\n"
        "# Rows with NULLs get such a function for each combination of NULL columns, without what is read for these.\n"
        "# d: the event's bytes; o: where the row's values begin. Gives JSON of row and key; returns the row's end.\n"
    )
    return title + "".join(f"{line}\n" for line in _names(schema, writer.names, plan)) + plan


def _names(schema: TableSchema, bound: dict[str, object], plan: str) -> Iterator[str]:
    """What the plan uses besides: structs as they are made, objects of a column by their purpose."""
    for name, value in bound.items():
        if name in _words(plan):
            struct = getattr(value, "__self__", None)
            if isinstance(struct, Struct):
                yield f"{name} = Struct({struct.format!r}).unpack_from"
            elif name[0] == "x" and name[1:].isdigit():
                column = schema.columns[int(name[1:])]
                yield f"# {name}: gives the text of {column.name!r}, {column.type}"
            else:
                yield f"# {name}: {MEANINGS[name]}"


MEANINGS = {
    "PLAIN": "changes only the characters that JSON escapes",
    "escape": "escapes them",
}


def _words(plan: str) -> Iterable[str]:
    return set("".join(c if c.isalnum() or c == "_" else " " for c in plan).split())
