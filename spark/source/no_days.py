"""Days that their month does not have, as 2026-02-30, in what is asked of MySQL.

A column may have such a day from a session that allows them; to any other it is no date, not even in a comparison
(error 1525). They are allowed for the statements alone that name one: elsewhere a column that is computed as it is read
would make such days of texts, which no writer's session did. MariaDB compares them in any session.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Iterable

ALLOWED = "sql_mode = 'ALLOW_INVALID_DATES'"
HINT = "SELECT /*+ SET_VAR(sql_mode = 'ALLOW_INVALID_DATES') */ "  # for the statement that begins so
DATE = re.compile(r"'(\d{4})-(\d{2})-(\d{2})")


def named(texts: Iterable[str], flavor: str) -> bool:
    """Whether the SQL has a literal of such a day, and the server is to be told that it is meant."""
    return flavor == "mysql" and any(_is_none(*map(int, date)) for text in texts for date in DATE.findall(text))


def asked(sql: str, flavor: str) -> str:
    """The statement as it is to be asked; only a SELECT is another one."""
    return sql.replace("SELECT ", HINT, 1) if sql.startswith("SELECT ") and named([sql], flavor) else sql


def _is_none(year: int, month: int, day: int) -> bool:
    if not 1 <= month <= 12:
        return False
    return day > (28 if (year, month) == (0, 2) else monthrange(year, month)[1])  # to MySQL the year 0 is no leap year
