"""Who writes a table of few keys while a test goes on, and ends with it, whatever becomes of the test."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator

import pytest

from stack.mysql import MySQL


class Writer(threading.Thread):
    """Transactions of some statements each over few keys, until it is told to end."""

    def __init__(self, mysql: MySQL, db: str) -> None:
        super().__init__(daemon=True)
        self._connection = mysql.connect(database=db, autocommit=False)
        self._chance = random.Random(5)
        self.ending = threading.Event()

    def run(self) -> None:
        with self._connection as connection, connection.cursor() as cursor:
            while not self.ending.wait(0.003):
                for _ in range(self._chance.randint(1, 4)):
                    key, v = self._chance.randrange(300), self._chance.randrange(10**6)
                    if self._chance.random() < 0.2:
                        cursor.execute("DELETE FROM t WHERE id = %s", (key,))
                    else:
                        cursor.execute("REPLACE INTO t VALUES (%s, %s, 'x')", (key, v))
                connection.commit()

    def end(self) -> None:
        self.ending.set()
        self.join()


Writing = Callable[[str], Writer]


@pytest.fixture
def writing(mysql: MySQL) -> Iterator[Writing]:
    """Starts one in a database."""
    writers: list[Writer] = []

    def start(db: str) -> Writer:
        writers.append(Writer(mysql, db))
        writers[-1].start()
        return writers[-1]

    yield start
    for writer in writers:
        writer.end()
