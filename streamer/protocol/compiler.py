"""Writes and compiles a table's row decoder: from a rows event's bytes straight to each row's JSON.

Rows that have the same columns NULL share a plan: straight-line Python in which neighbouring fixed-width columns
are unpacked by one struct and a single bytes template makes the row. Plans are made when a row first asks for
one; a table whose rows use very many combinations falls back to a plan that tests every column, and so do all tables
once they have very many plans together, but for a few each: a plan takes some 10 KB.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from struct import Struct
from typing import cast

from contract.masks import Mask
from contract.schema import TableSchema
from contract.types import GEOMETRIES
from streamer.protocol.model import RowDecoder
from streamer.protocol.values import addresses, binary, decimals, document, numbers, old_times, temporal, text
from streamer.protocol.values.masked import masked
from streamer.protocol.values.reader import Field, Reader

Append = Callable[[bytes], None]
Plan = Callable[[bytes, int, Append, Append], int]  # (buffer, offset behind the NULL bits, ...) -> the row's end
Masks = Mapping[int, Mask]
NO_MASKS: Masks = {}
MANY = 500  # texts of a row
PLANS = 200  # of one table, before it falls back
ALL_PLANS = 2_000  # of all tables together, before each has no more than FEW
FEW = 4

READERS: dict[str, Callable[[Field], Reader]] = {
    **dict.fromkeys(("tinyint", "smallint", "mediumint", "int", "bigint"), numbers.integer),
    "float": numbers.single,
    "double": numbers.double,
    "year": numbers.year,
    "decimal": decimals.decimal,
    "date": temporal.date,
    "time": temporal.time,
    "datetime": temporal.datetime_,
    "timestamp": temporal.timestamp,
    **dict.fromkeys(("char", "varchar", "tinytext", "text", "mediumtext", "longtext"), text.text),
    "enum": text.enum,
    "set": text.set_,
    "json": document.json,
    "binary": binary.fixed,
    **dict.fromkeys(("varbinary", "tinyblob", "blob", "mediumblob", "longblob"), binary.varying),
    "bit": binary.bit,
    "vector": numbers.vector,
    **dict.fromkeys(GEOMETRIES, binary.geometry),
    "uuid": addresses.uuid,
    "inet4": addresses.inet4,
    "inet6": addresses.inet6,
}

OLD_FORMAT = {"time": old_times.time, "datetime": old_times.datetime_, "timestamp": old_times.timestamp}


def compile_rows(
    schema: TableSchema, fields: Sequence[Field], shown: Sequence[int] | None = None, masks: Masks = NO_MASKS
) -> tuple[RowDecoder, str]:
    """The decoder, and the source of its plan for rows without NULLs. `shown`: which of the fields are the schema's
    columns, where not all are; the others are read and left out. `masks`: of fields, by their numbers.

    The decoder raises ValueError, IndexError, KeyError, UnicodeError or struct.error for broken bytes; what it
    appended before belongs to no event then.
    """
    writer = PlanWriter(schema, covered(list(map(reader, fields)), masks), shown)
    plans = Plans(writer)
    width = (len(fields) + 7) // 8

    def decode(d: bytes, o: int, end: int, rows: Append, keys: Append) -> None:
        while o < end:
            n = o + width
            o = plans[d[o:n]](d, n, rows, keys)
        if o != end:
            raise ValueError("the rows do not end where their event does")

    return decode, writer.source(0)


def reader(field: Field) -> Reader:
    return (OLD_FORMAT if field.old_format else READERS)[field.column.type](field)


def covered(readers: Sequence[Reader], masks: Masks) -> list[Reader]:
    return [masked(one, masks[n]) if n in masks else one for n, one in enumerate(readers)]


class Plans(dict[bytes, Plan]):
    """The plan by a row's NULL bits. `made`: how many there are of all tables that are still known."""

    made = 0

    def __init__(self, writer: PlanWriter) -> None:
        super().__init__()
        self._writer = writer
        self._general: Plan | None = None

    def __missing__(self, bits: bytes) -> Plan:
        if len(self) < (PLANS if self.made < ALL_PLANS else FEW):
            plan = self[bits] = self._writer.plan(int.from_bytes(bits, "little"))
            type(self).made += 1
            return plan
        if self._general is None:
            self._general = self._writer.general()
        return self._general

    def __del__(self) -> None:
        type(self).made -= len(self)


class PlanWriter:
    """The source of a table's plans. `{0}` and its like in a reader's pieces become names of the column."""

    def __init__(self, schema: TableSchema, readers: Sequence[Reader], shown: Sequence[int] | None = None) -> None:
        self.readers = readers
        self.shown = range(len(readers)) if shown is None else shown
        names = [column.name for column in schema.columns]
        self.columns = dict(zip(self.shown, names, strict=True))
        self.key = [self.shown[names.index(name)] for name in schema.key]
        self.names: dict[str, object] = {"PLAIN": text.PLAIN, "escape": text.escape}
        self.names |= {f"x{n}": reader.bound for n, reader in enumerate(readers)}

    def plan(self, nulls: int) -> Plan:
        return self._compiled(self.source(nulls))

    def general(self) -> Plan:
        return self._compiled(self.general_source())

    def source(self, nulls: int) -> str:
        """A row whose NULL columns are the bits of `nulls`, the first column the lowest."""
        lines: list[str] = []
        run: list[int] = []
        for n, reader in enumerate(self.readers):
            if nulls >> n & 1:
                continue
            if reader.layout:
                run.append(n)
            else:
                lines += [*self._unpack(run), *self._read(n)]
                run = []
        lines += [*self._unpack(run), *self._escape([n for n in range(len(self.readers)) if not nulls >> n & 1])]
        pieces = [("null", "") if nulls >> n & 1 else self._piece(n) for n in range(len(self.readers))]
        return self._function(lines, pieces)

    def general_source(self) -> str:
        """Any row: each column is tested for NULL."""
        width = (len(self.readers) + 7) // 8
        lines = [f'nulls = int.from_bytes(d[o - {width}:o], "little")']
        for n, reader in enumerate(self.readers):
            form, args = self._piece(n)
            read = self._unpack([n]) if reader.layout else [*self._read(n), *self._escape([n])]
            lines += [f"if nulls & {1 << n}:", f'    r{n} = b"null"', "else:"]
            lines += [f"    {line}" for line in (*read, f"r{n} = {form.encode()!r} % ({args},)")]
        return self._function(lines, [("%b", f"r{n}") for n in range(len(self.readers))])

    def _unpack(self, run: Sequence[int]) -> list[str]:
        """Neighbouring fixed-width columns: one struct for those of each byte order."""
        if not run:
            return []
        lines = [self._struct(run, order) for order in (False, True) if any(self.readers[n].big is order for n in run)]
        lines.append(f"o += {sum(self.readers[n].width for n in run)}")
        return lines + [self._named(n, line) for n in run for line in self.readers[n].first]

    def _struct(self, run: Sequence[int], big: bool) -> str:
        """Unpacks the columns of one byte order and leaves out the others."""
        readers = [(n, self.readers[n]) for n in run]
        layout = "".join(reader.layout if reader.big is big else f"{reader.width}x" for _, reader in readers)
        fields = [f"c{n}_{i}" for n, reader in readers if reader.big is big for i in range(reader.fields)]
        struct = Struct((">" if big else "<") + layout)
        name = "unpack_" + re.sub(r"\W", "", layout) + ("_big" if big else "")
        self.names[name] = struct.unpack_from
        return f"{', '.join(fields)}, = {name}(d, o)"

    def _escape(self, chosen: Iterable[int]) -> list[str]:
        """One test of all texts: few hold a character that JSON escapes."""
        texts = [f"c{n}" for n in chosen if self.readers[n].escaped]
        if not texts:
            return []
        escapes = "; ".join(f"{name} = escape({name})" for name in texts)
        if len(texts) == 1:
            return [f"if {texts[0]}.translate(PLAIN) != {texts[0]}: {escapes}"]
        # Of a great many, a sum would be nested deeper than Python compiles.
        joined = " + ".join(texts) if len(texts) < MANY else f'b"".join(({", ".join(texts)}))'
        return [f"t = {joined}", f"if t.translate(PLAIN) != t: {escapes}"]

    def _named(self, n: int, piece: str) -> str:
        places = [f"c{n}_{i}" for i in range(self.readers[n].fields)]
        return piece.format(*places, v=f"c{n}", x=f"x{n}")

    def _read(self, n: int) -> list[str]:
        return [self._named(n, line) for line in self.readers[n].read]

    def _piece(self, n: int) -> tuple[str, str]:
        """The column's template and the expressions that fill it."""
        reader = self.readers[n]
        return reader.form, ", ".join(self._named(n, arg) for arg in reader.args)

    def _function(self, lines: Iterable[str], pieces: Sequence[tuple[str, str]]) -> str:
        body = [*lines, f"rows({self._object(self.shown, pieces)})"]
        if self.key:
            body.append(f"keys({self._object(self.key, pieces)})")
        return "\n    ".join(["def plan(d, o, rows, keys):", *body, "return o\n"])

    def _object(self, chosen: Iterable[int], pieces: Sequence[tuple[str, str]]) -> str:
        """An expression: the JSON object of the chosen columns."""
        members = [
            json.dumps(self.columns[n], ensure_ascii=False).replace("%", "%%") + ":" + pieces[n][0] for n in chosen
        ]
        template = "{" + ",".join(members) + "}"
        args = ", ".join(pieces[n][1] for n in chosen if pieces[n][1])
        return f"{template.encode()!r} % ({args},)" if args else f"{template.replace('%%', '%').encode()!r}"

    def _compiled(self, source: str) -> Plan:
        # Made of numbers and quoted names alone. All plans of a table look their names up in one place.
        exec(compile(source, "<row plan>", "exec"), self.names)
        return cast(Plan, self.names.pop("plan"))
