"""A part's rows out of the source, by the rules of a snapshot (snapshot.py): P0 is a checkpoint behind the table's
shape, no row is read before the server shows all of P0, and the shape is asked for again behind the rows.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from contract.counted import counted
from contract.pipeline_columns import Shown
from spark.errors import TableAlteredError, TableError
from spark.lake.erasures import Erasures
from spark.lake.unfinished import Beating, Found
from spark.mending.unfound import Unfound
from spark.mending.wanted import own_key, source_condition
from spark.merging.parts import MYSQL, Chosen, Part, begin, new_id, put, sweep, write_keys
from spark.snapshot.snapshot import ATTEMPTS, Staging, shared_keys
from spark.source import chunks
from spark.source.choice import shown_of
from spark.source.row_texts import rows_of
from spark.source.unreadable import unreadable
from spark.tables.rows import keys_of

KEYS = 200  # in one statement
Choose = Callable[[Shown], Chosen]
T = TypeVar("T")


@dataclass
class SourceParts:
    """`job`: repair or backfill, started by `by`."""

    staging: Staging
    job: str
    by: str
    unfound: Unfound

    def stage(self, db: str, table: str, choose: Choose) -> tuple[Part, int]:
        """Reads what `choose` names of the table as it is shown, and stages it; gives the part and its rows' number.
        Raises LakeError, and then leaves nothing."""
        lake = self.staging.lake
        sweep(lake)
        for _ in range(ATTEMPTS):
            found, id, erasures = self.staging.found(db, table), new_id(), Erasures(lake).known.number
            shown = shown_of(self.staging.pipeline, found.schema)
            chosen = choose(shown)
            p0 = self.staging.begin()
            part = Part(
                id=id, pipeline=p0.pipeline, job=self.job, by=self.by, source=MYSQL, shape=shown.schema,
                told=chosen.told, where=chosen.where, keyed=chosen.keys is not None, texts=True, p0=p0, p1="",
                erasures=erasures,
            )  # fmt: skip
            folder = part.folder(lake)
            try:
                with Beating(lake, folder):
                    begin(lake, part)
                    rows = self._read(shown, chosen, f"{folder}/rows", found)
                    if rows is not None:
                        if chosen.keys is not None:
                            write_keys(lake, folder, chosen.keys)
                        if shown.schema.key != shown.source.key:
                            self._refuse_shared_keys(part, shown)
                        part = part.model_copy(update={"p1": self.staging.end(), "count": rows})
                        self.unfound(part)
                        put(lake, part)
                        return part, rows
            except BaseException:
                lake.delete(folder)
                raise
            lake.delete(folder)
            self.staging.tell(f"{db}.{table}: the table was altered while it was read; it is read again")
        raise TableAlteredError(
            f"{db}.{table}: its columns keep changing; run this again when the ALTER TABLEs are through"
        )

    def _read(self, shown: Shown, chosen: Chosen, folder: str, found: Found) -> int | None:
        """How many rows there are; None where the table is another one by now."""
        try:
            rows = self._rows(shown, chosen, folder)
        except Exception as error:  # a column dropped meanwhile is such an error
            if self._same(found):
                name = f"{shown.schema.db}.{shown.schema.table}"
                raise unreadable(name, error, f"the {self.job}") or error from None
            return None
        return rows if self._same(found) else None

    def _refuse_shared_keys(self, part: Part, shown: Shown) -> None:
        """Of rows with one key the lake has that which came last, and nobody can tell here which one did."""
        spark, lake = self.staging.spark, self.staging.lake
        rows = spark.read.parquet(f"{part.folder(lake)}/rows").groupBy("key").count().where("count > 1")
        if shared := part.inside(spark, lake)(keys_of(rows, part.shape)).count():
            told = f"{counted(shared, 'key')} ({', '.join(shown.schema.key)}) that several rows have"
            raise TableError(shared_keys(self.staging.pipeline, shown.schema, told))

    def _same(self, found: Found) -> bool:
        now = self.staging.found(found.schema.db, found.schema.table)
        return (now.schema.shape(), now.made) == (found.schema.shape(), found.made)

    def _rows(self, shown: Shown, chosen: Chosen, folder: str) -> int:
        staging, pipeline = self.staging, self.staging.pipeline
        spark, read_of = staging.spark, staging.reading
        for wanted, within in self._conditions(shown, chosen):
            staging.reading.awake()  # the group before may have been read for long
            staging.load.wait()
            began = time.monotonic()
            rows = rows_of(spark, read_of, shown.source, wanted, within).coalesce(pipeline.snapshot.parallelism)
            rows.write.mode("append").parquet(folder)
            staging.load.took(staging.load.chunk_rows * len(wanted), began)
        count = spark.read.schema("key string, after string").parquet(folder).count()
        staging.tell(f"{shown.schema.db}.{shown.schema.table}: {counted(count, 'row')} read for {chosen.told}")
        return count

    def _conditions(self, shown: Shown, chosen: Chosen) -> Iterator[tuple[list[str], str]]:
        """Groups of conditions over k0, k1 .., each with one over the columns' names. Never none."""
        if not own_key(shown):  # nothing but all rows can be asked for; the part takes its own out of them
            yield ["1 = 1"], ""
            return
        if chosen.keys is not None:
            keys = [json.loads(key) for key in chosen.keys]
            ask = self.staging.reading.row
            each = [source_condition(shown.source, some, ask) for some in _groups(keys, KEYS)] or ["1 = 0"]
            for group in _groups(each, self.staging.load.group):
                yield group, ""
        if chosen.within or chosen.all:
            yield from self._walked(shown, chosen.within or "")

    def _walked(self, shown: Shown, within: str) -> Iterator[tuple[list[str], str]]:
        source, staging = shown.source, self.staging
        names = [f"k{at}" for at in range(len(chunks.walked(source)))]
        with staging.reading.again() as walker:
            found: Sequence[chunks.Boundary] = list(
                chunks.walk(source, staging.load.chunk_rows, walker.row, within=within)
            )
        for group in _groups(chunks.conditions(names, found), staging.load.group):
            yield group, within


def _groups(all: list[T], size: int) -> Iterator[list[T]]:
    yield from (all[at : at + size] for at in range(0, len(all), size))
