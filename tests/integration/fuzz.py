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
import pymysql
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
from tests.integration.random_tables import Table, tables, ticked

SERVERS: dict[str, type[Database]] = {kind.name: kind for kind in (MySQL, MySQL80, MariaDB)}
SESSION = ("SET sql_mode = '', time_zone = '+00:00'", "SET group_concat_max_len = 18446744073709551615")
TABLES = 10  # of a seed: Hypothesis makes the later ones by repeating parts of the first
TOO_LARGE = (1071, 1118)  # a key, or a row, for the server


class Fuzz:
    """One server. `rows`, `columns`: what was tried, by type; `keys`: types in primary keys; `deleted`: rows;
    `widest`: the most columns of a table."""

    def __init__(self, server: Database) -> None:
        self.server = server
        self.rows = self.deleted = self.widest = 0
        self.columns: Counter[str] = Counter()
        self.keys: Counter[str] = Counter()
        # A new file: by GTID a dump begins with its file's first byte, and there are many.
        run(server, "DROP DATABASE IF EXISTS fuzz", "CREATE DATABASE fuzz", "FLUSH BINARY LOGS")
        self._connect()

    def _connect(self) -> None:
        """From what is there now on."""
        self._seen = executed(self.server)
        # A long heartbeat: the connection may be silent while an example is shrunk.
        chosen = source(self.server, 4790, heartbeat_seconds=60)
        self._connection = BinlogConnection(chosen, self._seen)
        self._incoming = self._connection.chunks()
        self._decoder = BinlogDecoder(
            lambda db, table: db == "fuzz", definitions=Definitions(chosen, lambda: self._seen)
        )

    def close(self) -> None:
        self._connection.close()
        if self.server.flavor == "mariadb":
            run(self.server, "SET GLOBAL log_bin_compress = OFF")

    def tries(self, seed: int) -> None:
        """TABLES of them. Raises AssertionError with the smallest table found that is read wrong."""

        @hypothesis.seed(seed)
        @settings(max_examples=TABLES, database=None, deadline=None, phases=(Phase.generate, Phase.shrink),
                  suppress_health_check=list(HealthCheck))  # fmt: skip
        @given(tables(self.server))
        def tried(table: Table) -> None:
            try:
                self.tries_one(table)
            except Exception:  # a decoder that has failed reads nothing more, and the next example is another's
                self._connection.close()
                self._connect()
                raise

        tried()

    def tries_one(self, table: Table) -> None:
        with self.server.connect(database="fuzz") as connection, connection.cursor() as cursor:
            for statement in (*SESSION, *(f"SET {setting}" for setting in table.settings)):
                cursor.execute(statement)
            try:
                cursor.execute(table.create())
            except pymysql.err.OperationalError as error:
                if error.args[0] not in TOO_LARGE:
                    raise
                hypothesis.reject()
            try:
                self._tries_rows(table, cursor)
            finally:
                cursor.execute(f"DROP TABLE {ticked(table.name)}")

    def _tries_rows(self, table: Table, cursor: Any) -> None:
        found = self._written(cursor, table, table.fill())
        assert found.columns, "a server that takes no row shows nothing"
        self._is_as_defined(table, found)
        first = self._said(cursor, table, found.columns)
        assert found.images("c") == first
        changes = self._written(cursor, table, table.change())
        last = self._said(cursor, table, found.columns)
        before, after = changes.images("u", 0), changes.images("u", 1)
        assert {number for number, row in first.items() if row != last[number]} <= set(after)
        assert before == {number: first[number] for number in before}
        assert after == {number: last[number] for number in after}
        gone = self._written(cursor, table, table.delete()).images("d")
        assert gone == {number: row for number, row in last.items() if number in table.deletes}
        assert not set(self._said(cursor, table, found.columns)) & table.deletes
        self.rows += len(first) + len(after) + len(gone)
        self.deleted += len(gone)

    def _is_as_defined(self, table: Table, found: Written) -> None:
        """Names, NULL and key; the types are what the rows are asked for by."""
        assert [column.name for column in found.columns] == [column.name for column in table.columns]
        assert [column.nullable for column in found.columns] == [column.null for column in table.columns]
        assert found.key == [name for name, _ in table.key]
        kinds = {column.name: column.type for column in found.columns}
        self.columns.update(kinds.values())
        self.keys.update(kinds[name] for name in found.key)
        self.widest = max(self.widest, len(kinds))

    def _said(self, cursor: Any, table: Table, columns: Sequence[Column]) -> dict[int, list[Any]]:
        wire = [types.of(column, self.server.flavor).snapshot_sql(ticked(column.name)) for column in columns]
        cursor.execute(f"SELECT {ticked(table.number)}, {', '.join(wire)} FROM {ticked(table.name)}")
        texts = [[text.decode() if isinstance(text, bytes) else text for text in row] for row in cursor.fetchall()]
        return {
            number: [comparable(text, column) for text, column in zip(row, columns, strict=True)]
            for number, *row in texts
        }

    def _written(self, cursor: Any, table: Table, statements: Sequence[str]) -> Written:
        """What the binlog has of the statements."""
        for statement in statements:
            cursor.execute(statement)
        # By the same session: a login takes longer than a row, and there would be hundreds.
        cursor.execute(f"SELECT @@GLOBAL.{'gtid_binlog_pos' if self.server.flavor == 'mariadb' else 'gtid_executed'}")
        end = source(self.server).gtids(cursor.fetchone()[0])
        batches: list[RowsBatch] = []
        while not self._seen.issuperset(end):
            for item in self._decoder.feed(next(self._incoming)):
                if isinstance(item, Commit):
                    self._seen.add(item.gtid)
                elif isinstance(item, RowsBatch):
                    batches.append(item)
        assert {batch.table.table for batch in batches} <= {table.name}
        return Written(table.number, batches)


class Written:
    """Rows events of a table, whose column `number` tells its rows apart."""

    def __init__(self, number: str, batches: Sequence[RowsBatch]) -> None:
        self._number, self._batches = number, batches
        self.columns = batches[0].table.columns if batches else ()
        self.key = list(batches[0].table.key) if batches else []

    def images(self, op: str, part: int = 0) -> dict[int, list[Any]]:
        """By row number. `part`: of an update 0 for the rows before it, 1 for those after it. Each row's key has the
        row's values."""
        names = [column.name for column in self.columns]
        places = [names.index(name) for name in self.key]
        found: dict[int, list[Any]] = {}
        for batch in self._batches:
            assert batch.op == op
            chosen = slice(part, None, 2 if op == "u" else 1)
            rows = decoded(batch.rows[chosen], self.columns)
            keys = decoded(batch.keys[chosen], [self.columns[place] for place in places]) if places else []
            assert keys == ([[row[place] for place in places] for row in rows] if places else [])
            assert len(batch.keys) == (len(batch.rows) if places else 0)
            for row in rows:
                number = int(row[names.index(self._number)])
                assert number not in found
                found[number] = row
        return found


def decoded(rows: Sequence[bytes], columns: Sequence[Column]) -> list[list[Any]]:
    """Each column's own JSON text in each row."""
    found = []
    for row in rows:
        text, at = row.decode(), 0
        assert [name for name, _ in json.loads(text, object_pairs_hook=list)] == [column.name for column in columns]
        pieces = []
        for column in columns:
            begin = at + len(f",{json.dumps(column.name, ensure_ascii=False)}:")
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
            fuzz.tries(seed + tables_tried // TABLES)
            tables_tried += TABLES
        kinds, keys = shown(fuzz.columns), shown(fuzz.keys)
    seconds = time.monotonic() - began
    tried = f"{fuzz.rows:,} rows of {tables_tried:,} tables, {fuzz.deleted:,} of them deleted, in {seconds:.0f} s"
    print(f"  {tried}: all as SQL says")
    print(f"  columns, up to {fuzz.widest} in a table: {kinds}\n  in keys: {keys}", flush=True)


def shown(counts: Counter[str]) -> str:
    return ", ".join(f"{kind} {count}" for kind, count in sorted(counts.items()))


if __name__ == "__main__":
    main()
