"""The source's side of a lake's days at random: tables of several forms, what is written into them, and statements that
change or rearrange them. All of it is drawn of one generator, and every statement goes to the days' log."""

from __future__ import annotations

import random
import re
from typing import Any, NamedTuple

import pymysql

from stack.database import Database

TEXT = "varchar(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci"
# By the letters that a table's name begins with. `loose` and `past` have no key but the one of the pipeline file.
FORMS = {
    "a": "id int PRIMARY KEY, v int, name varchar(20), at datetime(3)",
    "letters": f"k {TEXT} PRIMARY KEY, v int, name varchar(20), at datetime(3)",
    "pair": f"a int, k {TEXT}, v int, name varchar(20), PRIMARY KEY (a, k)",
    "loose": "id int NOT NULL, v int, name varchar(20), at datetime(3)",
    "past": "id int NOT NULL, v int, name varchar(20)",
    "typed": "id bigint unsigned PRIMARY KEY, v int, e enum('a', 'b', 'é'), d decimal(20, 6), t timestamp(3) NULL, "
    "twice bigint GENERATED ALWAYS AS (v * 2) STORED, thrice bigint GENERATED ALWAYS AS (v * 3) VIRTUAL",
}  # fmt: skip
KEYS = {"letters": ("k",), "pair": ("a", "k")}
RULES = """\
keys:
  - {{tables: ["{db}.loose*"], columns: [id]}}
  - {{tables: ["{db}.past*"], changes_only: true}}
"""
ALTERS = (
    "ADD COLUMN c{n} int", "ADD COLUMN c{n} varchar(9) NOT NULL DEFAULT 'x'", "ADD COLUMN c{n} int DEFAULT 5 FIRST",
    "ADD COLUMN c{n} decimal(9, 2)", "ADD COLUMN c{n} timestamp(3) NULL", "ADD COLUMN c{n} bigint AS (v + 1) STORED",
    "ADD COLUMN c{n} bigint AS (v + 2) VIRTUAL", "DROP COLUMN {column}",
    "DROP COLUMN {column}, ADD COLUMN {column} int", "RENAME COLUMN {column} TO r{n}", "CHANGE v V int",
    "MODIFY v bigint", "MODIFY v varchar(30)", "MODIFY name varchar(80)",
    "MODIFY name varchar(20) CHARACTER SET latin1", "CONVERT TO CHARACTER SET utf8mb4", "MODIFY id bigint",
    f"MODIFY k {TEXT.replace('40', '60')} NOT NULL", "ENGINE = InnoDB", "COMMENT = 'n{n}'",
    "ALTER COLUMN v SET DEFAULT 7", "ADD INDEX i{n} (v)", "DROP PRIMARY KEY, ADD PRIMARY KEY (id)",
)  # fmt: skip
PLACES = 1_000_000  # a row keeps the number that it came with, in whatever key it has, so no two have the same key


WIDE = 200  # of a line that is printed


class Column(NamedTuple):
    name: str
    type: str
    generated: bool


class Source:
    """`db`: on `server`. `log`: everything that was done, in words by which it can be done again.
    `remade`: columns that one statement dropped and added."""

    def __init__(self, server: Database, db: str, chance: random.Random, log: list[str]) -> None:
        self.server, self.db, self.chance, self.log, self.n = server, db, chance, log, 0
        self.remade: set[str] = set()

    def number(self) -> int:
        self.n += 1
        return self.n

    def note(self, line: str) -> None:
        self.log.append(line)
        print(f"did: {line if len(line) < WIDE else f'{line[:WIDE]} ...'}", flush=True)

    def sql(self, *statements: str) -> None:
        """Of one session, with autocommit. One that the server refuses changes nothing, and is no step then."""
        with self.server.connect(database=self.db, autocommit=True) as connection, connection.cursor() as cursor:
            for statement in statements:
                try:
                    cursor.execute(statement)
                    self.note(statement)
                except pymysql.MySQLError as error:
                    self.note(f"-- refused ({error.args[0]}): {statement}")

    def asked(self, statement: str) -> list[tuple[Any, ...]]:
        with self.server.connect(database=self.db, autocommit=True) as connection, connection.cursor() as cursor:
            cursor.execute("SET time_zone = '+00:00'")
            cursor.execute(statement)
            return list(cursor.fetchall())

    def tables(self) -> list[str]:
        return sorted(name for (name,) in self.asked("SHOW TABLES"))

    def columns(self, table: str) -> list[Column]:
        found = self.asked(f"SHOW COLUMNS FROM {table}")
        return [Column(row[0], str(row[1]), "GENERATED" in str(row[5]).upper()) for row in found]

    def rows(self, table: str) -> tuple[list[str], list[tuple[Any, ...]]]:
        """The columns, and all rows as texts."""
        columns = [column.name for column in self.columns(table)]
        texts = ", ".join(f"CAST(`{name}` AS CHAR)" for name in columns)
        return columns, self.asked(f"SELECT {texts} FROM {table}")

    def make(self, *tables: str) -> None:
        self.sql(*(f"CREATE TABLE {table} ({FORMS[form(table)]})" for table in tables))

    def writes(self) -> list[str]:
        """Into one table."""
        chance, table = self.chance, self.chance.choice(self.tables())
        columns, key = self.columns(table), key_of(table)
        own = f"crc32(concat_ws('|', {', '.join(key)}))"
        loose = [column for column in columns if not column.generated and column.name not in key]
        made = [self._insert(table, key, loose)]
        if loose:
            one = chance.choice(loose)
            value = _value(one.type, self.number(), chance)
            made.append(f"UPDATE {table} SET `{one.name}` = {value} WHERE {own} % 7 = {chance.randint(0, 6)}")
        made.append(f"DELETE FROM {table} WHERE {own} % 11 = {chance.randint(0, 10)}")
        made.append(f"UPDATE {table} SET {self._moved(key)} WHERE {own} % 13 = 5 ORDER BY {key[-1]} DESC LIMIT 3")
        return made

    def _insert(self, table: str, key: tuple[str, ...], loose: list[Column]) -> str:
        first, chance = self.number() * 100, self.chance
        given = [column for column in loose if chance.random() < 0.8]
        rows = []
        for n in range(first, first + chance.choice([1, 2, 20, 60])):
            values = [{"id": str(n), "a": str(n % 3), "k": f"'K-é{n}'"}[name] for name in key]
            rows.append(", ".join([*values, *(_value(column.type, n, chance) for column in given)]))
        names = ", ".join(f"`{name}`" for name in [*key, *(column.name for column in given)])
        return f"INSERT INTO {table} ({names}) VALUES ({'), ('.join(rows)})"

    def _moved(self, key: tuple[str, ...]) -> str:
        if "k" not in key:
            return f"id = id % {PLACES} + {self.number() * PLACES}"
        # The last ones are the same key to the source, and another to who compares bytes.
        again = [f"concat('m{self.number()}-', substring_index(k, '-', -1))", "upper(k)", "lower(k)",
                 "replace(k, 'é', 'e')"]  # fmt: skip
        return f"k = {self.chance.choice(again)}"

    def write(self) -> None:
        """A few statements, each a transaction; or all of them one, of which a part or the whole is taken back."""
        made, chance = self.writes(), self.chance
        if chance.random() < 0.4:
            first, then = self.writes(), self.writes()
            made = ["START TRANSACTION", *made, "SAVEPOINT here", *first, "ROLLBACK TO here", *then]
            made.append(chance.choice(["COMMIT", "COMMIT", "ROLLBACK"]))
        self.sql(*made)

    def alter(self) -> None:
        table = self.chance.choice(self.tables())
        loose = [column.name for column in self.columns(table) if column.name not in key_of(table)]
        column = self.chance.choice(loose or ["v"])
        how = self.chance.choice(ALTERS).format(n=self.number(), column=column)
        if how.startswith("DROP COLUMN") and "ADD" in how:
            self.remade.add(column.lower())
        self.sql(f"ALTER TABLE {table} {how}")

    def rearrange(self) -> None:
        """Truncated, dropped and made again, renamed, swapped as gh-ost does."""
        table, n = self.chance.choice(self.tables()), self.number()
        made, moved, ghost, old = FORMS[form(table)], *(f"{form(table)}_{kind}{n}" for kind in "mgo")
        again = [f"DROP TABLE {table}", f"CREATE TABLE {table} ({made})"]
        away = [f"RENAME TABLE {table} TO {moved}", f"CREATE TABLE {table} ({made})"]
        names = ", ".join(f"`{column.name}`" for column in self.columns(table) if not column.generated)
        swap = [f"CREATE TABLE {ghost} LIKE {table}", f"INSERT INTO {ghost} ({names}) SELECT {names} FROM {table}"]
        swap += [f"RENAME TABLE {table} TO {old}, {ghost} TO {table}", f"DROP TABLE {old}"]
        self.sql(*self.chance.choice([[f"TRUNCATE TABLE {table}"], again, away, swap]))


def form(table: str) -> str:
    found = re.match("[a-z]+", table)
    return found[0] if found else table


def key_of(table: str) -> tuple[str, ...]:
    return KEYS.get(form(table), ("id",))


def _value(kind: str, n: int, chance: random.Random) -> str:
    if chance.random() < 0.05 and "not null" not in kind:
        return "DEFAULT"
    if kind.startswith("enum"):
        return chance.choice(re.findall("'[^']*'", kind))
    if kind.startswith(("datetime", "timestamp")):
        return "now(3)"
    if kind.startswith("decimal"):
        return f"{n % 9999}.{n % 97:02}"
    return f"'é{n}'" if kind.startswith(("varchar", "text")) else str(n)
