"""The load that all programs read: one table, bulk inserts, then single-row update transactions."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from stack.database import Database

BULK = 500  # rows an insert statement
DATABASE = "bench"
TABLE = """
CREATE TABLE bench.orders (
  id BIGINT NOT NULL PRIMARY KEY, customer INT UNSIGNED NOT NULL, status ENUM('new','paid','sent') NOT NULL,
  amount DECIMAL(10,2) NOT NULL, note VARCHAR(100), created DATETIME NOT NULL, changed TIMESTAMP(3) NULL, ratio DOUBLE)
"""


class Begin(NamedTuple):
    """A place in the binlog, in each form that a program asks for. `ts`: seconds, Unix."""

    file: str
    pos: int
    gtids: str
    ts: int


def begin(database: Database) -> Begin:
    with database.connect() as connection, connection.cursor() as cursor:
        old = database.name == "mysql80"
        cursor.execute("SHOW MASTER STATUS" if old else "SHOW BINARY LOG STATUS")
        file, pos, *_, gtids = cursor.fetchone()
        return Begin(file, pos, gtids.replace("\n", ""), int(time.time()))


def table(database: Database) -> None:
    with database.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {DATABASE}")
        cursor.execute(TABLE)


def bulk(database: Database, rows: int) -> Begin:
    """Writes the bulk inserts; the place before them."""
    before = begin(database)
    with database.connect() as connection, connection.cursor() as cursor:
        for first in range(0, rows, BULK):
            cursor.execute(f"INSERT INTO bench.orders VALUES {','.join(map(row, range(first, first + BULK)))}")
    return before


def updates(database: Database, count: int) -> Begin:
    """Writes the single-row transactions; the place before them."""
    before = begin(database)
    with database.connect() as connection, connection.cursor() as cursor:
        rows = count_of(cursor)
        for n in range(count):
            cursor.execute(f"UPDATE bench.orders SET amount = amount + 1, status = 'sent' WHERE id = {n % rows}")
    return before


def count_of(cursor: Any) -> int:
    cursor.execute("SELECT COUNT(*) FROM bench.orders")
    return int(cursor.fetchone()[0])


def row(n: int) -> str:
    status = ("new", "paid", "sent")[n % 3]
    return (
        f"({n}, {n % 9973}, '{status}', {n % 1000}.{n % 90 + 10}, 'order {n} of a customer who writes notes', "
        f"'2026-01-{n % 28 + 1:02} 10:00:00', '2026-01-{n % 28 + 1:02} 10:00:00.{n % 1000:03}', {n / 7})"
    )
