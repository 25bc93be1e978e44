"""`headrace decoder`: the Python that decodes a table's rows, written as a stream writes it.

The schema topic does not tell all that rows hold: the columns that the pipeline leaves out, what masks cover, and what
MariaDB compresses and hides. The server tells it, where the table still has the shape that is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from struct import Struct

from contract import table_names
from contract.masks import Mask
from contract.pipeline import Pipeline
from contract.pipeline_columns import ColumnRuleError
from contract.schema import TableSchema
from streamer import outputs, present_table, schemas
from streamer.delivery_errors import UnknownSchemaError
from streamer.errors import UnreachableError
from streamer.protocol import fields
from streamer.protocol.compiler import PlanWriter, covered, reader
from streamer.protocol.table_map import laid_out
from streamer.protocol.values.reader import Field

MEANINGS = {
    "PLAIN": "changes only what escape looks at: characters that JSON escapes, and halves of characters",
    "escape": "escapes them",
}


@dataclass(frozen=True)
class Layout:
    """What rows hold: the numbers of those fields that are the schema's columns, and masks by number. `doubt`: why it
    is the schema alone that tells this; empty where the server does."""

    fields: Sequence[Field]
    shown: Sequence[int]
    masks: Mapping[int, Mask] = field(default_factory=dict)
    doubt: str = ""


def printed(pipeline: Pipeline, table: str, version: int | None) -> str:
    """Of the newest schema of `table` (`db.table`), or of the version asked for. Raises HeadraceError."""
    return source(pipeline, find(pipeline, table, version))


def find(pipeline: Pipeline, table: str, version: int | None) -> TableSchema:
    """Raises UnknownSchemaError, and what reading them raises."""
    every = outputs.known_schemas(pipeline)
    known = [one for one in every if f"{one.db}.{one.table}" == table]
    chosen = [one for one in known if version in (None, one.version)]
    if chosen:
        return max(chosen, key=lambda one: one.version)
    where = schemas.place(pipeline)
    if known:
        cause = f"{where} has its versions {', '.join(str(one.version) for one in known)} only"
        raise UnknownSchemaError("showing", f"version {version} of table {table}", cause, "Ask for one of these.")
    if meant := table_names.close(table, {f"{one.db}.{one.table}" for one in every}):
        hint = f"Did you mean {meant[0]}?"
        raise UnknownSchemaError("showing", f"the decoder of {table}", f"{where} has no schema of it", hint)
    if why := table_names.refused(pipeline, table):
        raise UnknownSchemaError("showing", f"the decoder of {table}", why, "")
    hint = "It is written before the table's first record: let `headrace run` stream a change of the table."
    raise UnknownSchemaError("showing", f"the decoder of {table}", f"{where} has no schema of it", hint)


def source(pipeline: Pipeline, schema: TableSchema) -> str:
    """Python, with comments on the names that it uses. Raises UnsupportedTypeError, UnknownSchemaError, and what
    asking the server raises."""
    layout = _layout(pipeline, schema)
    readers = covered(list(map(reader, layout.fields)), layout.masks)
    writer = PlanWriter(schema, readers, layout.shown)
    plan = writer.source(0)
    notes = [
        f"{schema.db}.{schema.table}, schema version {schema.version}, for rows without NULL.",
        "Rows with NULLs get such a function for each combination of NULL columns, without what is read for these.",
        "d: the event's bytes; o: where the row's values begin. Gives JSON of row and key; returns the row's end.",
    ]
    if layout.doubt:
        notes[1:1] = [f"Of the schema alone, for {layout.doubt}: where the pipeline left columns out, or MariaDB",
                      "compressed or hid some, the one that decoded its rows reads them otherwise."]  # fmt: skip
    lines = [*map(_comment, notes), *_names(layout, writer.names, plan)]
    return "".join(f"{line}\n" for line in lines) + plan


def _layout(pipeline: Pipeline, schema: TableSchema) -> Layout:
    try:
        present = present_table.ask(pipeline.source, schema.db, schema.table)
    except UnreachableError:
        return _of_schema(schema, "the server could not be asked")
    if present is None:
        return _of_schema(schema, "the server no longer has the table")
    try:
        now, shown, masks = laid_out(present.schema, range(len(present.schema.columns)), pipeline.show)
    except ColumnRuleError as error:
        return _of_schema(schema, f"a rule of the pipeline file cannot hold for the table by now ({error.cause})")
    if now.shape() != schema.shape():
        return _of_schema(schema, "the table has another shape by now")
    return Layout(present.fields, shown, masks)


def _of_schema(schema: TableSchema, doubt: str) -> Layout:
    masked = [column.name for column in schema.columns if column.mask]
    if masked:
        cause = f"it reads what the mask of {', '.join(masked)} covers, which the schema does not tell, and {doubt}"
        hint = "Ask for the newest version, while the server can be reached and has the table as it was streamed last."
        raise UnknownSchemaError(
            "showing", f"the decoder of {schema.db}.{schema.table}, version {schema.version}", cause, hint
        )
    return Layout(list(map(fields.field, schema.columns)), range(len(schema.columns)), doubt=doubt)


def _names(layout: Layout, bound: dict[str, object], plan: str) -> Iterator[str]:
    """What the plan uses besides: structs as they are made, objects of a column by their purpose."""
    for name, value in bound.items():
        if name in _words(plan):
            struct = getattr(value, "__self__", None)
            if isinstance(struct, Struct):
                yield f"{name} = Struct({struct.format!r}).unpack_from"
            elif name[0] == "x" and name[1:].isdigit():
                yield _comment(f"{name}: {_purpose(layout, int(name[1:]))}")
            else:
                yield _comment(f"{name}: {MEANINGS[name]}")


def _purpose(layout: Layout, n: int) -> str:
    one = layout.fields[n]
    text = f"gives the text of {one.column.name!r}, {one.column.type}"
    text += ", inflated where it is compressed" * one.compressed
    return f"{text}; x{n}[1] masks it ({layout.masks[n].name})" if n in layout.masks else text


def _comment(text: str) -> str:
    """In one line, whatever a name holds."""
    return "# " + "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)


def _words(plan: str) -> Iterable[str]:
    return set("".join(c if c.isalnum() or c == "_" else " " for c in plan).split())
