"""An empty database in memory, and how the lake's tables come into it."""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime
from typing import Any

import duckdb
from deltalake import DeltaTable

from contract.pipeline import Pipeline
from contract.sequence import FIELDS
from readers import delta, store
from readers.past import literal

RAW = "_headrace"  # the schema of what the views are made from


class Loading:
    """Of a pipeline's lake, by delta-rs, wherever it is."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline, self.options, self.connection = pipeline, store.options(pipeline), duckdb.connect()
        # What does not fit into memory is put aside there.
        self.connection.execute(f"SET temp_directory = {literal(tempfile.gettempdir())}")
        self.connection.execute("SET TimeZone = 'UTC'")
        # A name that the lake does not have is no variable of this program.
        self.connection.execute("SET python_enable_replacements = false")
        # As in MySQL and in Spark: a row's first version, which began at no time that is known, comes first.
        self.connection.execute("SET default_null_order = 'NULLS_FIRST_ON_ASC_LAST_ON_DESC'")

    def there(self, path: str) -> bool:
        return DeltaTable.is_deltatable(path, self.options)

    def stream(self, path: str, columns: str = "*", where: str = "true") -> Any:
        return delta.stream(path, columns, where, self.options)

    def make(self, name: str, columns: str, rows: Any) -> None:
        """A table of this name from a stream."""
        self.connection.register("_stream", rows)
        self.connection.execute(f"CREATE TABLE {name} AS SELECT {columns} FROM _stream")
        self.connection.unregister("_stream")

    def first(self, changes: str, where: str) -> datetime | None:
        """When the first of all tables' changes was committed, of these."""
        order = ", ".join(f"_seq['{name}']" for name in FIELDS)
        first = self.stream(changes, "ts", f"({where}) ORDER BY {order} LIMIT 1")
        self.connection.register("_stream", first)
        found = self.connection.execute("SELECT ts FROM _stream").fetchall()
        self.connection.unregister("_stream")
        return found[0][0].astimezone(UTC) if found else None
