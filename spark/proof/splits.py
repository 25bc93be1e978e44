"""How a table's rows are put into chunks, so that the source and Spark put every row into the same one.

Integer keys: ranges of the key, walked in the source, which is then asked chunk by chunk. Other keys: Spark cannot
compare as MySQL's collations do, so buckets, by a hash of the bytes of the key's texts, and the source answers for all
of them in one consistent read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from contract import types
from contract.names import quoted
from contract.pipeline_columns import Shown
from contract.schema import Column
from spark.proof.checksum import lake_texts, source_texts
from spark.source import chunks

INTEGERS = ("tinyint", "smallint", "mediumint", "int", "bigint")
MOST_BUCKETS = 4096
Walked = Callable[[Iterator[chunks.Boundary]], Iterator[chunks.Boundary]]
Spelled = Callable[[str], str]  # a column's name -> as it stands in a statement


@dataclass(frozen=True)
class Ranges:
    """Ranges between `boundaries`, literals of the key's columns; the first and the last chunk are open."""

    key: tuple[Column, ...]  # its first columns, or all
    boundaries: Sequence[chunks.Boundary]

    @property
    def count(self) -> int:
        return len(self.boundaries) + 1

    def number(self, struct: str = "") -> str:
        """Spark SQL: the number, from 0, of the chunk of the row whose columns are in `struct` (empty: in the row
        itself). It is how many boundaries are below the key, found by halving; 0 of a row without a key, which somebody
        else wrote."""
        if not self.boundaries:
            return "0"
        inside = quoted(struct) + "." if struct else ""
        key = self._tuple([inside + quoted(column.name) for column in self.key])
        bounds = f"array({', '.join(self._tuple(boundary) for boundary in self.boundaries)})"
        steps = ", ".join(str(1 << bit) for bit in reversed(range(len(self.boundaries).bit_length())))
        # The variables' names are such as no column has.
        below = f"get({bounds}, headrace_at + headrace_step - 1) < {key}"
        step = f"if({below}, headrace_at + headrace_step, headrace_at)"
        found = f"aggregate(array({steps}), 0, (headrace_at, headrace_step) -> {step})"
        return f"if({self._keyless(inside)}, 0, {found})"

    def _keyless(self, inside: str = "") -> str:
        return " or ".join(f"{inside}{quoted(column.name)} is null" for column in self.key)

    def _tuple(self, values: Sequence[str]) -> str:
        typed = [f"cast({value} as {types.of(c).spark})" for c, value in zip(self.key, values, strict=True)]
        if len(typed) == 1:
            return typed[0]
        fields = [f"'k{n}', {value}" for n, value in enumerate(typed)]
        return f"named_struct({', '.join(fields)})"

    def source_where(self, numbers: Iterable[int], spelled: Spelled = quoted) -> str:
        """SQL of the source: the condition of the rows of these chunks."""
        names = [spelled(column.name) for column in self.key]
        return " or ".join(f"({self._condition(names, number)})" for number in sorted(numbers))

    def _condition(self, names: Sequence[str], number: int) -> str:
        """Of this chunk alone: there may be very many."""
        behind = self.boundaries[number - 1] if number else None
        [*_, found] = chunks.conditions(names, self.boundaries[number : number + 1], behind, number >= self.count - 1)
        return found

    def source_wheres(self) -> list[str]:
        """`source_where` of each chunk by itself."""
        conditions = chunks.conditions([quoted(column.name) for column in self.key], self.boundaries)
        return [f"({condition})" for condition in conditions]

    def lake_where(self, numbers: Collection[int]) -> str:
        """The same in Spark SQL: of integers both speak one language."""
        found, keyless = self.source_where(numbers), self._keyless()
        return f"(({found}) or {keyless})" if 0 in numbers else f"(({found}) and not ({keyless}))"

    def kept(self) -> dict[str, Any]:
        """As JSON, from which `again` makes it."""
        return {"boundaries": [list(boundary) for boundary in self.boundaries]}


@dataclass(frozen=True)
class Buckets:
    """`count` buckets by the key's bytes; one, of all rows, where there is no key."""

    shown: Shown
    flavor: str
    count: int

    def source_number(self, spelled: Spelled = quoted) -> str:
        texts = source_texts(self.shown, self.shown.schema.key, self.flavor, spelled)
        return f"crc32(concat_ws(char(31 using utf8mb4), {', '.join(texts)})) % {self.count}" if texts else "0"

    def number(self, struct: str = "") -> str:
        columns = [self.shown.schema.column(name) for name in self.shown.schema.key]
        texts = ", ".join(lake_texts(columns, [column.name for column in columns], struct))
        return f"cast(crc32(cast(concat_ws('\\u001f', {texts}) as binary)) % {self.count} as int)" if texts else "0"

    def source_where(self, numbers: Iterable[int], spelled: Spelled = quoted) -> str:
        return f"{self.source_number(spelled)} in ({', '.join(map(str, sorted(numbers)))})"

    def source_wheres(self) -> list[str]:
        return [self.source_where([number]) for number in range(self.count)]

    def lake_where(self, numbers: Collection[int]) -> str:
        return f"{self.number()} in ({', '.join(map(str, sorted(numbers)))})"

    def kept(self) -> dict[str, Any]:
        return {"buckets": self.count}


Split = Ranges | Buckets


def split_of(
    shown: Shown, flavor: str, rows: int, ask: Callable[..., Sequence[Any] | None], walked: Walked = iter
) -> Split:
    """Chunks of about `rows` rows. `ask` runs SQL on the source and gives the first row, or None; `walked` may hold the
    walk along the key between two boundaries."""
    schema, source = shown.schema, shown.source
    if schema.key and schema.key == source.key and all(schema.column(n).type in INTEGERS for n in schema.key):
        return _ranges(shown, list(walked(chunks.walk(source, rows, ask))))
    found = ask(
        "SELECT table_rows FROM information_schema.tables WHERE table_schema = %s AND table_name = %s",
        source.db,
        source.table,
    )
    known = int(found[0] or 0) if found else 0
    return Buckets(shown, flavor, min(MOST_BUCKETS, known // rows + 1) if schema.key else 1)


def again(shown: Shown, flavor: str, kept: dict[str, Any]) -> Split:
    if "buckets" in kept:
        return Buckets(shown, flavor, kept["buckets"])
    return _ranges(shown, [tuple(boundary) for boundary in kept["boundaries"]])


def _ranges(shown: Shown, boundaries: Sequence[chunks.Boundary]) -> Ranges:
    """Over as many of the key's columns as were walked."""
    key = shown.schema.key[: len(boundaries[0])] if boundaries else shown.schema.key
    return Ranges(tuple(shown.schema.column(name) for name in key), boundaries)
