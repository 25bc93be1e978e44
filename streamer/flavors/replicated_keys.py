"""Whether a MySQL replica's binlog lacks rows that foreign keys change, though that of its own sessions has them.

A replica applies a row event as its source did, whatever it is set to itself: what InnoDB changed there, below the
binlog, InnoDB changes here. The events say so by a flag, which servers before 9.6 do not know.
Source: MySQL 9.7 Reference Manual, "Replication and Foreign Keys".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pymysql

from streamer.flavors.port import Ask, Rows
from streamer.protocol.server import server

STATUS = "SHOW REPLICA STATUS"
RELAY_LOG, CHANNEL = 7, 55  # columns of that
NO_SUCH_FILE = 1220  # ER_ERROR_WHEN_EXECUTING_COMMAND
FLAG = "USE_SQL_FOREIGN_KEY_F"
ROWS = ("Write_rows", "Update_rows", "Delete_rows")
VERSION = "Server ver: "
BEGINNING, SAMPLE = 20, 1000  # events; the first, of a relay log, have the format of the source's binlog


def lacks_cascades(ask: Ask) -> bool:
    """Of a server of 9.6 or later. A source further away, or one that is set otherwise than its version has it, is
    known by the rows alone that the last binlog file begins with."""
    channels = ask(STATUS) or []
    return any(_is_old(ask, row) for row in channels) or (bool(channels) and _has_unmarked_rows(ask))


def _is_old(ask: Ask, channel: Sequence[Any]) -> bool:
    """Whether the source is of before 9.6. A channel that never ran has no relay log that tells."""
    events = _events(ask, f"SHOW RELAYLOG EVENTS IN %s LIMIT {BEGINNING} FOR CHANNEL %s", channel[RELAY_LOG],
                     channel[CHANNEL])  # fmt: skip
    formats = [str(row[5]).partition(VERSION)[2] for row in events if row[2] == "Format_desc"]
    return any(server(version.partition(",")[0]).hides_cascades for version in formats)


def _has_unmarked_rows(ask: Ask) -> bool:
    files = ask("SHOW BINARY LOGS") or []
    events = _events(ask, f"SHOW BINLOG EVENTS IN %s LIMIT {SAMPLE}", files[-1][0]) if files else ()
    return any(row[2].startswith(ROWS) and FLAG not in row[5] for row in events)


def _events(ask: Ask, statement: str, *names: str) -> Rows:
    try:
        return ask(statement, *names) or ()
    except pymysql.MySQLError as error:
        if error.args[0] != NO_SUCH_FILE:  # it has gone meanwhile
            raise
        return ()
