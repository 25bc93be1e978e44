"""A pipeline with all that a file can ask of records, a writer that keeps book of what its statements change, and what
each topic must have by that book, to the record."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from stack.database import Database
from tests.integration.streaming import Make, Streamer, execute

LIMIT = 50_000  # bytes of a record
LARGE = "x" * 60_000
KEYS = 150
STATUSES = ("paid", "paid", "paid", "test", "far", "bad")
Row = dict[str, Any]

MORE = """
transforms:
  - {{tables: ["{name}.orders"], script: orders.py, on_error: dead_letter}}
records:
  headers: [op, table, gtid, seq]
  transactions: true
  tombstones: true
  heartbeat_seconds: 0.5
  oversized: {{target: {folder}/large}}
"""
SCRIPT = """\
def transform(event):
    row = event.after or event.before
    if row["status"] == "bad":
        raise ValueError
    if row["status"] == "test":
        return None
    if row["status"] == "far":
        event.topic = event.db + "-far"
    for image in (event.before, event.after):
        if image is not None:
            image["note"] = "***"
    return event
"""


def everything_on(make: Make, name: str) -> Streamer:
    streamer = make(name, kafka_more=f", max_message_bytes: {LIMIT}")
    columns = "id BIGINT PRIMARY KEY, v INT, status VARCHAR(10), note MEDIUMTEXT"
    execute(streamer.mysql, *(f"CREATE TABLE {name}.{table} ({columns})" for table in ("orders", "plain")))
    folder = streamer.file.parent
    (folder / "orders.py").write_text(SCRIPT)
    streamer.file.write_text(streamer.file.read_text() + MORE.format(name=name, folder=folder))
    return streamer


class Change(NamedTuple):
    """`number`: of its transaction, from 1."""

    number: int
    table: str
    op: str
    before: Row | None
    after: Row | None


@dataclass
class Book:
    """`ddl`: number and statement. `truncations`: numbers."""

    changes: list[Change] = field(default_factory=list)
    ddl: list[tuple[int, str]] = field(default_factory=list)
    truncations: list[int] = field(default_factory=list)
    transactions: int = 0


class Writer(threading.Thread):
    """One connection, so that the order of the binlog is the book's."""

    def __init__(self, mysql: Database, db: str, seed: int) -> None:
        super().__init__(daemon=True)
        self._connection = mysql.connect(database=db, autocommit=False)
        self._chance = random.Random(seed)
        self._tables: dict[str, dict[int, Row]] = {"orders": {}, "plain": {}}
        self._more: list[str] = []  # columns of `plain` that came by ALTER TABLE
        self._open: list[Change] = []
        self.book = Book()
        self._ending = threading.Event()
        self._failure: Exception | None = None

    def run(self) -> None:
        try:
            with self._connection as connection, connection.cursor() as cursor:
                while not self._ending.wait(0.002):
                    self._transaction(cursor.execute)
        except Exception as error:
            self._failure = error

    def end(self) -> Book:
        self._ending.set()
        self.join()
        if self._failure is not None:
            raise self._failure
        return self.book

    def _transaction(self, run: Callable[..., Any]) -> None:
        was = {name: dict(rows) for name, rows in self._tables.items()}
        for _ in range(self._chance.randint(1, 4)):
            table = self._chance.choice(("orders", "plain"))
            self._chance.choice(
                (self._insert_rows, self._insert_rows, self._update_rows, self._delete_rows, self._move_row)
            )(run, table)
        if self._chance.random() < 0.1:
            self._connection.rollback()
            self._tables = was
        else:
            self._connection.commit()
            self.book.transactions += bool(self._open)  # one without changes is not in the binlog
            self.book.changes += self._open
        self._open = []
        if self.book.transactions % 60 == 0:
            self._alter(run)
        if self.book.transactions % 150 == 0:
            self._truncate(run)

    def _changed(self, table: str, op: str, before: Row | None, after: Row | None) -> None:
        self._open.append(Change(self.book.transactions + 1, table, op, before, after))
        rows = self._tables[table]
        if before is not None:
            del rows[before["id"]]
        if after is not None:
            rows[after["id"]] = after

    def _free(self, table: str, count: int) -> list[int]:
        return self._chance.sample([n for n in range(KEYS) if n not in self._tables[table]], count)

    def _made(self, table: str, key: int, v: int) -> Row:
        """Of a row that is new: the columns that were added are NULL in it."""
        large = table == "plain" and self._chance.random() < 0.03
        note = LARGE if large else f"n{self._chance.randrange(10**6)}"
        row = {"id": key, "v": v, "status": self._chance.choice(STATUSES), "note": note}
        return row | (dict.fromkeys(self._more) if table == "plain" else {})

    def _insert_rows(self, run: Callable[..., Any], table: str) -> None:
        if len(self._tables[table]) > KEYS - 10:
            return
        rows = [self._made(table, key, 0) for key in self._free(table, self._chance.randint(1, 3))]
        values = [row[name] for row in rows for name in ("id", "v", "status", "note")]
        places = ", ".join(["(%s, %s, %s, %s)"] * len(rows))
        run(f"INSERT INTO {table} (id, v, status, note) VALUES {places}", values)
        for row in rows:
            self._changed(table, "c", None, row)

    def _update_rows(self, run: Callable[..., Any], table: str) -> None:
        first, made = self._chance.randrange(KEYS), self._made(table, 0, 0)
        status, note = made["status"], made["note"]
        change = f"UPDATE {table} SET v = v + 1, status = %s, note = %s WHERE id BETWEEN %s AND %s"
        run(change, (status, note, first, first + 4))
        for key in range(first, first + 5):
            if (row := self._tables[table].get(key)) is not None:
                self._changed(table, "u", row, row | {"v": row["v"] + 1, "status": status, "note": note})

    def _delete_rows(self, run: Callable[..., Any], table: str) -> None:
        first = self._chance.randrange(KEYS)
        run(f"DELETE FROM {table} WHERE id BETWEEN %s AND %s", (first, first + 2))
        for key in range(first, first + 3):
            if (row := self._tables[table].get(key)) is not None:
                self._changed(table, "d", row, None)

    def _move_row(self, run: Callable[..., Any], table: str) -> None:
        """A row gets another key: a delete and a create."""
        key, [to] = self._chance.randrange(KEYS), self._free(table, 1)
        run(f"UPDATE {table} SET id = %s WHERE id = %s", (to, key))
        if (row := self._tables[table].get(key)) is not None:
            self._changed(table, "d", row, None)
            self._changed(table, "c", None, row | {"id": to})

    def _alter(self, run: Callable[..., Any]) -> None:
        rows = self._tables["plain"]
        if self._more:
            gone = self._more.pop()
            statement = f"ALTER TABLE plain DROP COLUMN {gone}"
            self._tables["plain"] = {key: {n: v for n, v in row.items() if n != gone} for key, row in rows.items()}
        else:
            self._more.append(f"more{self.book.transactions}")
            statement = f"ALTER TABLE plain ADD COLUMN {self._more[0]} INT"
            self._tables["plain"] = {key: row | dict.fromkeys(self._more) for key, row in rows.items()}
        run(statement)
        self._noted(statement)

    def _truncate(self, run: Callable[..., Any]) -> None:
        run("TRUNCATE TABLE plain")
        self._tables["plain"] = {}
        self._noted("TRUNCATE TABLE plain")
        self.book.truncations.append(self.book.transactions)

    def _noted(self, statement: str) -> None:
        self.book.transactions += 1
        self.book.ddl.append((self.book.transactions, statement))


class Sent(NamedTuple):
    """What a record of a topic must say."""

    number: int
    op: str
    key: Row
    before: Row | None
    after: Row | None


@dataclass
class Expected:
    """`topics`: each one's, in order. `letters`: number, kind, op and key."""

    topics: dict[str, list[Sent]]
    letters: list[tuple[int, str, str, Row]] = field(default_factory=list)

    @property
    def by_transaction(self) -> Counter[int]:
        return Counter(one.number for sent in self.topics.values() for one in sent)


def expected(db: str, book: Book) -> Expected:
    """By the rules of the pipeline, said anew."""
    made = Expected({f"{db}.{db}.orders": [], f"{db}.{db}.plain": [], f"{db}-far": []})
    for change in book.changes:
        row = change.after or change.before
        assert row is not None
        key = {"id": row["id"]}
        if change.table == "plain":
            if LARGE in [image["note"] for image in (change.before, change.after) if image]:
                made.letters.append((change.number, "record_too_large", change.op, key))
            else:
                made.topics[f"{db}.{db}.plain"].append(Sent(change.number, change.op, key, change.before, change.after))
        elif row["status"] == "bad":
            made.letters.append((change.number, "transform", change.op, key))
        else:
            for topic, sent in _of_orders(db, change, key, row["status"]):
                made.topics[topic].append(sent)
    return made


def _of_orders(db: str, change: Change, key: Row, status: str) -> Iterator[tuple[str, Sent]]:
    before, after = (image and image | {"note": "***"} for image in (change.before, change.after))
    if status != "paid" and change.op == "u" and before is not None and before["status"] == "paid":
        yield f"{db}.{db}.orders", Sent(change.number, "d", key, before, None)  # it leaves the table
    if status != "test":
        topic = f"{db}-far" if status == "far" else f"{db}.{db}.orders"
        yield topic, Sent(change.number, change.op, key, before, after)


def killed_at_random(streamer: Streamer, kills: int, seed: int) -> None:
    """From before it is up to well into its work."""
    moment = random.Random(seed)
    for _ in range(kills):
        time.sleep(moment.uniform(0.1, 2.4))
        streamer.kill()
        streamer.start()
