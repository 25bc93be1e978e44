"""What holds of a lake whatever its days were."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import DataFrame

from spark.errors import LakeError
from spark.history.history import History
from tests.integration.lake_days import Days
from tests.integration.lake_source import key_of

CHANGE = ["tbl", "gtid", "_seq.event", "_seq.row"]
Rows = Counter[tuple[str | None, ...]]
Table = tuple[list[str], list[tuple[Any, ...]]]


class Claims:
    """`past`: the source's tables at moments at which nothing was written."""

    def __init__(self, days: Days) -> None:
        self.days, self.past = days, list[tuple[datetime, dict[str, Table]]]()

    def hold(self) -> None:
        """Behind a compaction of all that the source has."""
        self._rows()
        self._changes()

    def _rows(self) -> None:
        """A table of which nothing is told has the source's rows, each once, and the status counts them."""
        days, status = self.days, self.days.status()
        for name in days.untold():
            columns, rows = days.source.rows(name.partition(".")[2])
            found = _texts(days.lake.frame(days.path(name)), columns)
            wanted = _counter(columns, columns, rows)
            if name in days.loose:
                assert found <= wanted, (name, found - wanted, days.shown())
            else:
                assert found == wanted, (name, "lacks", wanted - found, "has", found - wanted, days.shown())
            assert status.tables[name].rows == found.total(), (name, "status", status.tables[name], days.shown())

    def _changes(self) -> None:
        """Each change is there once, and none of an erased row."""
        days = self.days
        if not days.lake.is_table(days.lake.changes):
            return
        changes = days.lake.frame(days.lake.changes).where("op <> 't'")
        twice = changes.groupBy(*CHANGE).count().where("count > 1").collect()
        assert twice == [], (twice, days.shown())
        for row in changes.where(changes.tbl.isin([*days.erased])).select("tbl", "key", "gtid").collect():
            key = {name: str(value) for name, value in json.loads(row["key"]).items()}
            assert key not in days.erased[row["tbl"]], (row, "was erased", days.shown())

    def remember(self) -> None:
        """The source as it is now, for `history`: nothing is written a second before and behind that."""
        time.sleep(1.1)
        moment, source = datetime.now(UTC), self.days.source
        self.past.append((moment, {f"{source.db}.{table}": source.rows(table) for table in source.tables()}))
        self.days.note(f"remembered: {moment}")
        time.sleep(1.1)

    def history(self) -> None:
        """A table's past is what it was, or is not told; its present versions are its rows."""
        for moment, tables in self.past[-3:]:
            for name in self.days.untold():
                if name in tables:
                    self._as_of(name, moment, *tables[name])
        for name in self.days.untold():
            self._versions(name)

    def _as_of(self, name: str, moment: datetime, columns: list[str], rows: list[tuple[Any, ...]]) -> None:
        days = self.days
        try:
            past = History(days.spark, days.lake, *name.split(".")).as_of(moment)
        except LakeError as error:
            days.note(f"no past: {error}")
            return
        # Of a column that is dropped, or was and came back, no snapshot has values.
        there = [column.name for column in days.source.columns(name.partition(".")[2])]
        lower = {column.lower() for column in past.columns} & {column.lower() for column in there} - days.source.remade
        shared = [column for column in columns if column.lower() in lower]
        found, wanted = _texts(past, shared), _counter(columns, shared, rows)
        lost, more = (self._kept(name, shared, rows) for rows in (wanted - found, found - wanted))
        assert (lost, more) == (Counter(), Counter()), (name, moment, "lacks", lost, "has", more, days.shown())

    def _kept(self, name: str, columns: list[str], rows: Rows) -> Rows:
        """Without those that were erased at some time: of them there is no past."""
        key = key_of(name.partition(".")[2])
        erased = [*self.days.erased.get(name, []), *self.days.present.get(name, [])]
        given = {row: dict(zip(columns, row, strict=True)) for row in rows}
        return Counter(
            {row: n for row, n in rows.items() if {column: given[row].get(column) for column in key} not in erased}
        )

    def _versions(self, name: str) -> None:
        days = self.days
        now = days.lake.frame(days.path(name)).drop("_seq", "_ts")
        try:
            versions = History(days.spark, days.lake, *name.split(".")).versions()
        except LakeError as error:
            days.note(f"no versions: {error}")
            return
        found, wanted = _texts(versions.where("valid_to IS NULL"), now.columns), _texts(now, now.columns)
        assert found == wanted, (name, "versions lack", wanted - found, "have", found - wanted, days.shown())


def _texts(frame: DataFrame, columns: Sequence[str]) -> Rows:
    """A column that was added, and of which no change tells yet, is null, and not there."""
    there = {column.lower() for column in frame.columns}
    texts = [f"string({f'`{one}`' if one.lower() in there else 'NULL'}) AS `{one}`" for one in columns]
    return _counter(columns, columns, [tuple(row) for row in frame.selectExpr(*texts).collect()])


def _counter(columns: Sequence[str], chosen: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> Rows:
    at = [columns.index(one) for one in chosen]
    return Counter(tuple(_plain(row[n]) for n in at) for row in rows)


def _plain(value: Any) -> str | None:
    """A fraction as both write it."""
    text = value.decode() if isinstance(value, bytes) else value
    return text.rstrip("0").rstrip(".") if text and re.fullmatch(r"[-\d: ]+\.\d+", text) else text
