"""The replay: day after day of flying, written into MySQL at a steady rate by a thread of its own.

It counts what it committed, by the server's own count of changed rows.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from itertools import chain, count
from typing import Any

import pymysql
from pymysql.cursors import DictCursor

from stack.demo import flying_day
from stack.demo.dataset import DATABASE, Connection
from stack.errors import StackError

COLUMNS = ("gate", "stand", "baggage_belt")


class Replay:
    """`connect` gives a connection to the server. `changes`: committed row changes by (table, operation)."""

    def __init__(self, connect: Callable[[], Connection], changes_per_second: float) -> None:
        self.connect = connect
        self.rate = changes_per_second
        self.changes: Counter[tuple[str, str]] = Counter()
        self.transactions = self.rolled_back = 0
        self.days: list[date] = []
        self.column: str | None = None
        self.seconds = 0.0
        self._error: Exception | None = None
        self._column_wanted = threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="replay", daemon=True)

    @property
    def total(self) -> int:
        return sum(list(self.changes.values()))

    def start(self) -> None:
        self._thread.start()

    def add_column(self) -> None:
        """Has the replay run ALTER TABLE flights ADD COLUMN before its next transaction."""
        self._column_wanted.set()

    def stop(self) -> None:
        """Ends the replay behind the transaction that it is in."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(30)

    def check(self) -> None:
        """Raises StackError where the replay has ended by itself."""
        if self._error is not None:
            raise StackError(
                f"the replay of flights ended: {self._error}", "Read MySQL's log (`python -m stack logs`)."
            )

    def _run(self) -> None:
        began = time.monotonic()
        try:
            with self.connect() as connection:
                connection.select_db(DATABASE)
                connection.autocommit(False)
                for transaction in self._flying(connection):
                    self._execute(connection, transaction)
                    self.seconds = time.monotonic() - began
                    if self._stop.wait(max(0.0, self.total / self.rate - self.seconds)):
                        return
        except (pymysql.MySQLError, OSError) as error:
            self._error = error

    def _flying(self, connection: Connection) -> Iterator[flying_day.Transaction]:
        world = self._world(connection)
        day = _last_day(connection)
        while True:
            day += timedelta(days=1)
            self.days.append(day)
            model = flying_day.model_day(day)
            flights, weather = _rows(connection, "flights", model), _rows(connection, "weather", model)
            yield from flying_day.transactions(day, flights, weather, world)

    def _world(self, connection: Connection) -> flying_day.World:
        (top,) = _tuples(connection, "SELECT MAX(id) FROM flights")[0]
        return flying_day.World(
            next_id=top + 1,
            planes={tailnum for (tailnum,) in _tuples(connection, "SELECT tailnum FROM planes")},
            carriers=[carrier for (carrier,) in _tuples(connection, "SELECT carrier FROM airlines ORDER BY carrier")],
            airports=[faa for (faa,) in _tuples(connection, "SELECT faa FROM airports ORDER BY faa")],
            gate=lambda: self.column,
        )

    def _execute(self, connection: Connection, transaction: flying_day.Transaction) -> None:
        if self._column_wanted.is_set():
            self._column_wanted.clear()
            self.column = _add_column(connection)
        done: Counter[tuple[str, str]] = Counter()
        with connection.cursor() as cursor:
            for statement in transaction.statements:
                done[statement.table, statement.op] += cursor.execute(statement.sql, statement.values)
        if transaction.commit:
            connection.commit()
            self.changes.update(done)
            self.transactions += 1
        else:
            connection.rollback()
            self.rolled_back += 1


def _last_day(connection: Connection) -> date:
    ((number,),) = _tuples(connection, "SELECT MAX(year * 10000 + month * 100 + day) FROM flights")
    return date(number // 10000, number // 100 % 100, number % 100)


def _rows(connection: Connection, table: str, day: date) -> list[dict[str, Any]]:
    with connection.cursor(DictCursor) as cursor:
        where = "year = %s AND month = %s AND day = %s"
        cursor.execute(f"SELECT * FROM {table} WHERE {where}", (day.year, day.month, day.day))
        return list(cursor.fetchall())


def _tuples(connection: Connection, sql: str) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return list(cursor.fetchall())


def _add_column(connection: Connection) -> str:
    """Adds the first of the columns that the table has not yet, so that each run of the demo adds one."""
    taken = {row[0] for row in _tuples(connection, "SHOW COLUMNS FROM flights")}
    names = chain(COLUMNS, (f"remark_{number}" for number in count(1)))
    name = next(name for name in names if name not in taken)
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE flights ADD COLUMN {name} VARCHAR(8) NULL")
    return name
