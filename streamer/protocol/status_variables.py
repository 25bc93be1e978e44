"""A Query event's status variables: how the session that ran the statement was set.

In: their bytes. Each has a code and a value whose size follows from it; what may be unknown stands behind the rest.
"""

from __future__ import annotations

from streamer.protocol.charsets import BY_COLLATION, Charset

SQL_MODE, CHARSETS, UPDATED_DATABASES = 1, 4, 12
# By code: bytes of the value, or how many texts it is, each behind a byte with its length.
FIXED = {0: 4, SQL_MODE: 8, 3: 4, CHARSETS: 6, 7: 2, 8: 2, 9: 8, 10: 4}
TEXTS = {5: 1, 6: 1, 11: 2}
NO_BACKSLASH_ESCAPES = 1 << 20  # of sql_mode


def values(status: bytes) -> dict[int, bytes]:
    """By code, up to the databases that were changed; of what is cut or unknown, and all behind it, none."""
    found: dict[int, bytes] = {}
    o = 0
    while o < len(status):
        code, o = status[o], o + 1
        end = o + FIXED.get(code, 0)
        for _ in range(TEXTS.get(code, 0)):
            end += 1 + status[end] if end < len(status) else 1
        if end == o or end > len(status):
            found[code] = b""
            break
        found[code], o = status[o:end], end
    return found


def session(status: bytes) -> tuple[Charset | None, bool]:
    """The client's character set, None where it is not told, and whether a backslash is an escape."""
    found = values(status)
    mode = int.from_bytes(found.get(SQL_MODE, b""), "little")
    charset = found.get(CHARSETS)
    known = BY_COLLATION.get(int.from_bytes(charset[:2], "little")) if charset else None
    return known, not mode & NO_BACKSLASH_ESCAPES


def is_the_servers_own(status: bytes) -> bool:
    """Of a change of rows in MySQL's binlog: what a client typed names the databases that it changes."""
    last = max(values(status), default=UPDATED_DATABASES)
    return last in FIXED or last in TEXTS or last > UPDATED_DATABASES
