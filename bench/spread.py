"""The load of bench.lake over one table or several alike, each with the same share of the rows and of the changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count

from bench.load import DATABASE
from bench.snapshot import fill
from stack.mysql import MySQL


def tables(number: int) -> list[str]:
    return ["orders", *(f"orders_{n}" for n in range(1, number))]


def fill_all(mysql: MySQL, rows: int, number: int) -> None:
    """`rows`: of all tables together."""
    fill(mysql, rows // number)
    with mysql.connect(autocommit=True) as connection, connection.cursor() as cursor:
        for name in tables(number)[1:]:
            cursor.execute(f"CREATE TABLE {DATABASE}.{name} LIKE {DATABASE}.orders")
            cursor.execute(f"INSERT INTO {DATABASE}.{name} SELECT * FROM {DATABASE}.orders")


def pieces(names: Sequence[str], rows: int, piece: int) -> Iterator[tuple[str, int]]:
    """Without end: a table and the first of the next `piece` rows of it, the tables in turn. `rows`: of each."""
    for n in count():
        yield f"{DATABASE}.{names[n % len(names)]}", n // len(names) * piece % rows
