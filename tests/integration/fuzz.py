"""Random rows of random tables, written to a real server and read back from its binlog, compared with SQL's text.

`make fuzz` tries many on each server; a seed that it printed tries the same again.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import hypothesis
from hypothesis import HealthCheck, Phase, given, settings

from contract import types
from contract.schema import Column
from stack.database import Database
from stack.mariadb import MariaDB
from stack.mysql import MySQL
from stack.mysql80 import MySQL80
from stack.ports import free_port
from streamer.connection import BinlogConnection
from streamer.definitions import Definitions
from streamer.protocol.model import Commit, RowsBatch
from streamer.transaction import BinlogDecoder
from tests.integration.decoding import executed, run, source
from tests.integration.edge_values import comparable
from tests.integration.random_tables import Table, tables

SERVERS: dict[str, type[Database]] = {kind.name: kind for kind in (MySQL, MySQL80, MariaDB)}
SESSION = "SET sql_mode = '', time_zone = '+00:00', group_concat_max_len = 18446744073709551615"
NAME = "fuzz.t"


class Fuzz:
    """One server. `rows`, `columns`: what was tried, by type."""

    def __init__(self, server: Database) -> None:
        self.server = server
        self.rows = 0
        self.columns: Counter[str] = Counter()
        run(server, "DROP DATABASE IF EXISTS fuzz", "CREATE DATABASE fuzz")
        self._seen = executed(server)
        # A long heartbeat: the connection may be silent while an example is shrunk.
        chosen = source(server, 4790, heartbeat_seconds=60)
        self._connection = BinlogConnection(chosen, self._seen)
        self._incoming = self._connection.chunks()
        self._decoder = BinlogDecoder(
            lambda db, table: db == "fuzz", definitions=Definitions(chosen, lambda: self._seen)
        )

    def close(self) -> None:
        self._connection.close()

    def tries(self, examples: int, seed: int) -> None:
        """Raises AssertionError with the smallest table found that is read wrong."""

        @hypothesis.seed(seed)
        @settings(max_examples=examples, database=None, deadline=None, phases=(Phase.generate, Phase.shrink),
                  suppress_health_check=list(HealthCheck))  # fmt: skip
        @given(tables(self.server))
        def tried(table: Table) -> None:
            self.tries_one(table)

        tried()

    def tries_one(self, table: Table) -> None:
        create, inserts, updates = table.statements(NAME)
        settings = [SESSION, *(f"SET {setting}" for setting in table.settings)]
        with self.server.connect() as connection, connection.cursor() as cursor:
            for statement in (*settings, f"DROP TABLE IF EXISTS {NAME}", create, *inserts):
                cursor.execute(statement)
            batches = self._read()
            columns = batches[0].table.columns
            first = self._said(cursor, columns)
            assert decoded([row for batch in batches for row in batch.rows], columns) == first
            for statement in updates:
                cursor.execute(statement)
            last = self._said(cursor, columns)
        self._compare_updates(self._read() if updates else [], columns, first, last)
        self.rows += len(table.rows) + len(table.changes)
        self.columns.update(column.type for column in columns)

    def _compare_updates(
        self, batches: Sequence[RowsBatch], columns: Sequence[Column], first: list[list[Any]], last: list[list[Any]]
    ) -> None:
        """Each row was updated once at most."""
        changed = [n for n, row in enumerate(first) if row != last[n]]
        before = {row[0]: row for batch in batches for row in decoded(batch.rows[0::2], columns)}
        after = {row[0]: row for batch in batches for row in decoded(batch.rows[1::2], columns)}
        assert {first[n][0] for n in changed} <= set(after)
        assert list(before.values()) == [row for row in first if row[0] in before]
        assert list(after.values()) == [row for row in last if row[0] in after]

    def _said(self, cursor: Any, columns: Sequence[Column]) -> list[list[Any]]:
        wire = [types.of(column, self.server.flavor).snapshot_sql(f"`{column.name}`") for column in columns]
        cursor.execute(f"SELECT {', '.join(wire)} FROM {NAME} ORDER BY id")
        texts = [[text.decode() if isinstance(text, bytes) else text for text in row] for row in cursor.fetchall()]
        return [[comparable(text, column) for text, column in zip(row, columns, strict=True)] for row in texts]

    def _read(self) -> list[RowsBatch]:
        """The rows up to what the server has written by now."""
        end = executed(self.server)
        batches: list[RowsBatch] = []
        while not self._seen.issuperset(end):
            for item in self._decoder.feed(next(self._incoming)):
                if isinstance(item, Commit):
                    self._seen.add(item.gtid)
                elif isinstance(item, RowsBatch):
                    batches.append(item)
        return batches


def decoded(rows: Sequence[bytes], columns: Sequence[Column]) -> list[list[Any]]:
    """Each column's own JSON text in each row."""
    found = []
    for row in rows:
        text, at = row.decode(), 0
        pieces = []
        for column in columns:
            begin = at + len(f",{json.dumps(column.name)}:")
            _, at = json.JSONDecoder().raw_decode(text, begin)
            pieces.append(comparable(None if text[begin:at] == "null" else text[begin:at], column))
        assert text[at:] == "}"
        found.append(pieces)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="make fuzz FUZZ='...'", description=__doc__)
    parser.add_argument("--servers", default=",".join(SERVERS), help="of mysql, mysql80, mariadb")
    parser.add_argument("--rows", type=int, default=5000, help="on each server, about")
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    chosen = parser.parse_args()
    for name in chosen.servers.split(","):
        with tempfile.TemporaryDirectory() as folder:
            server = SERVERS[name](Path(folder), free_port())
            server.start()
            try:
                report(server, chosen.rows, chosen.seed)
            finally:
                server.kill()


def report(server: Database, rows: int, seed: int) -> None:
    began, tables_tried = time.monotonic(), 0
    with closing(Fuzz(server)) as fuzz:
        print(f"{server.title} {server.version()}: seed {seed}", flush=True)
        while fuzz.rows < rows:
            fuzz.tries(100, seed + tables_tried)
            tables_tried += 100
        kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(fuzz.columns.items()))
    seconds = time.monotonic() - began
    print(f"  {fuzz.rows:,} rows of {tables_tried:,} tables in {seconds:.0f} s, all as SQL says; columns: {kinds}")


if __name__ == "__main__":
    main()
