"""Which server wrote a binlog file, as far as it decides how the file is read.

Source: MySQL's source documentation, `mysql::binlog::event::Format_description_event`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

VERSION_AT, VERSION_SIZE = 2, 50  # behind the binlog's own version
# Seen to write no sign bit for YEAR: 8.0.15. Known to write one: 8.0.29 and later, and MariaDB.
LAST_WITHOUT, FIRST_WITH = (8, 0, 15), (8, 0, 29)
CASCADES_LOGGED = (9, 6)  # from here on MySQL writes rows changed by foreign keys into the binlog
INLINE_KEYS = (9, 0)  # from here on MySQL makes a key of REFERENCES behind a column


@dataclass(frozen=True)
class Server:
    """`year_has_sign`: whether a YEAR has a bit among the signs of a TABLE_MAP; None where it is not known."""

    version: str
    mariadb: bool
    year_has_sign: bool | None

    @property
    def hides_cascades(self) -> bool:
        """Whether the file has no rows that foreign keys changed, however the server is set."""
        return self.mariadb or _numbers(self.version) < CASCADES_LOGGED

    @property
    def has_inline_keys(self) -> bool:
        return self.mariadb or _numbers(self.version) >= INLINE_KEYS


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)[:3]))


def server(version: str) -> Server:
    numbers = _numbers(version)
    mariadb = "mariadb" in version.lower()
    if mariadb or numbers >= FIRST_WITH:
        return Server(version, mariadb, True)
    return Server(version, mariadb, None if numbers > LAST_WITHOUT else False)


def writer(d: bytes, o: int) -> Server:
    """Of a format description event's body."""
    text = d[o + VERSION_AT : o + VERSION_AT + VERSION_SIZE]
    return server(text.partition(b"\x00")[0].decode(errors="replace"))


def started(d: bytes, o: int) -> bool:
    """Whether the server's start made the file, and no rotation: it has a time then."""
    at = o + VERSION_AT + VERSION_SIZE
    return any(d[at : at + 4])


NEWEST = server("9.7.0")
