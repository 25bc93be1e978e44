"""From chunks that differ to their rows, and from rows to columns, while writes go on.

The chunks' rows are read from the source in one consistent read, as a snapshot reads them. When the lake has passed
that, its rows are wound back key by key to the boundary of that read: the same sums as of chunks, of one key each. A
key that differs there is missing, extra, changed or twice; of those that changed, the columns' own hashes say which.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as fn

from contract.schema import TableSchema
from spark.lake.keys import key_json
from spark.proof.answer import Answer, Opened
from spark.proof.boundary import NOTHING, Read, match, relevant
from spark.proof.checksum import Total, grouped, joined, row_hash
from spark.proof.differences import CHANGED, CHUNK, DUPLICATE, EXTRA, MISSING, Difference
from spark.proof.rewind import PLACE, Past, Position, Step

CHUNKS = 8  # of a table, that are opened; where more differ, a repair of whole chunks is what is wanted
ROWS = 10_000  # that may differ, or have changed meanwhile, in the chunks that are opened
NAMED = 1_000  # rows of which the columns are told


def unopened(answer: Answer, numbers: Iterable[int]) -> list[Difference]:
    """The chunks themselves, each as a difference."""
    schema, split = answer.schema, answer.split
    found = []
    for number in sorted(numbers):
        source, lake = split.source_where([number]), split.lake_where([number])
        found.append(Difference(schema.db, schema.table, CHUNK, source_where=source, lake_where=lake))
    return found


@dataclass(frozen=True)
class Pinning:
    """`lake`: the opened chunks' rows of the lake's table."""

    opened: Opened
    lake: DataFrame
    past: Past | None

    @classmethod
    def of(cls, opened: Opened, now: DataFrame, past: Past | None) -> Pinning:
        """`now`: the lake's table; `past`: its changes, complete behind what was read."""
        return cls(opened, now.where(opened.answer.split.lake_where(opened.numbers)), past)

    @property
    def schema(self) -> TableSchema:
        return self.opened.answer.schema

    def differences(self) -> list[Difference]:
        """None where the rows are equal, which is not to be forgotten of chunks whose sums differed."""
        steps = self._steps()
        rows = self._rows(steps)
        if len(rows) > ROWS:
            return self._one_by_one()
        source, now = _totals(rows, "s"), _totals(rows, "l")
        for step in steps:
            source.update({key: NOTHING for key in step.deltas if key not in source})
        read = Read(source, self.opened.seen, self.opened.high)
        mine = relevant(read, steps)
        found = match(read, now, mine)
        kinds = {key: kind_of(read.totals[key], found.states[key]) for key in found.wrong}
        changed = sorted(key for key, kind in kinds.items() if kind == CHANGED)[:NAMED]
        columns = self._columns(changed, mine[found.at :]) if changed else {}
        names = self.schema.db, self.schema.table
        return [Difference(*names, kinds[key], key, columns.get(key, ())) for key in sorted(kinds)]

    def _one_by_one(self) -> list[Difference]:
        """A chunk that differs too much is told as a whole, and keeps no other from being told row by row."""
        numbers = self.opened.numbers
        if len(numbers) == 1:
            return unopened(self.opened.answer, numbers)
        here = fn.expr(self.opened.answer.split.number())
        found: dict[int, list[Difference]] = {}
        for number in numbers:
            rows, lake = (side.where(here == number) for side in (self.opened.rows, self.lake))
            found[number] = Pinning(replace(self.opened, numbers=[number], rows=rows), lake, self.past).differences()
        if not any(found.values()):
            return []
        answer = self.opened.answer
        return [one for number, mine in found.items() for one in mine or unopened(answer, [number])]

    def _steps(self) -> list[Step]:
        if self.past is None:
            return []
        split, numbers = self.opened.answer.split, ", ".join(map(str, self.opened.numbers))
        return self.past.steps(
            self.opened.high,
            lambda image: key_json(self.schema, image),
            lambda image: f"{split.number(image)} in ({numbers})",
        )

    def _rows(self, steps: Sequence[Step]) -> list[Row]:
        """`g`, and the totals of both sides, of the keys that differ now or have changed meanwhile; more than ROWS
        means too many."""
        key = fn.expr(key_json(self.schema))
        source = _named(grouped(self.opened.rows, self.schema, key), "s")
        both = source.join(_named(grouped(self.lake, self.schema, key), "l"), "g", "full_outer")
        unequal = ~fn.struct("sn", "sh", "sl").eqNullSafe(fn.struct("ln", "lh", "ll"))
        touched = {group for step in steps for group in step.deltas}
        if len(touched) > ROWS:
            return [Row()] * (ROWS + 1)
        wanted = unequal | fn.col("g").isin(list(touched)) if touched else unequal
        return both.where(wanted).limit(ROWS + 1).collect()

    def _columns(self, keys: list[str], later: Sequence[Step]) -> dict[str, tuple[str, ...]]:
        """Which columns of the changed rows differ. `later`: the steps behind the boundary."""
        names = [column.name for column in self.schema.columns if column.name not in self.schema.key]
        source, lake = self._hashes(self.opened.rows, keys), self._hashes(self.lake, keys)
        begin = later[0].at if later else self.opened.high
        for row in self._images(keys, begin):
            known = lake.setdefault(row["g"], [0] * len(names))
            lake[row["g"]] = [n - row["sign"] * hashed for n, hashed in zip(known, row["hashes"], strict=True)]
        return {
            key: tuple(name for name, a, b in zip(names, source[key], lake[key], strict=True) if a != b)
            for key in keys
            if key in source and key in lake
        }

    def _hashes(self, rows: DataFrame, keys: list[str]) -> dict[str, list[int]]:
        told = rows.select(fn.expr(key_json(self.schema)).alias("g"), self._by_column(rows.columns).alias("hashes"))
        return {row["g"]: list(row["hashes"]) for row in told.where(fn.col("g").isin(keys)).collect()}

    def _by_column(self, present: Iterable[str], struct: str = "") -> SparkColumn:
        present = list(present)
        others = [column for column in self.schema.columns if column.name not in self.schema.key]
        return fn.array(*[row_hash([column], present, struct) for column in others])

    def _images(self, keys: list[str], begin: Position) -> list[Row]:
        """Of the changes of the keys at `begin` and later."""
        if self.past is None:
            return []

        def of(image: str, there: Sequence[str]) -> list[SparkColumn]:
            key = key_json(self.schema, image) if set(self.schema.key) <= set(there) else "cast(null as string)"
            return [fn.expr(key).alias("g"), self._by_column(there, image).alias("hashes")]

        later = Past(self.past.changes, self.past.shapes, self.schema, self.past.lake, begin)
        images = later.images(of)
        return [] if images is None else images.where(fn.col("g").isin(keys)).drop(*PLACE, "gtid").collect()


def kind_of(source: Total, lake: Total) -> str:
    if source.rows and not lake.rows:
        return MISSING
    if lake.rows and not source.rows:
        return EXTRA
    return DUPLICATE if lake.rows > source.rows else CHANGED


def _named(totals: DataFrame, side: str) -> DataFrame:
    return totals.select("g", *[fn.col(name).alias(side + name) for name in "nhl"])


def _totals(rows: Iterable[Row], side: str) -> dict[Any, Total]:
    return {
        row["g"]: NOTHING
        if row[f"{side}n"] is None
        else Total(row[f"{side}n"], joined(row[f"{side}h"], row[f"{side}l"]))
        for row in rows
    }
