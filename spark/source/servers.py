"""What differs between MySQL and MariaDB for the jobs: the session, the positions, and what a query sees.

A binlog is written before the engine commits: its end, and the GTIDs up to it, may be ahead of what a query sees.
MySQL can wait until a set of GTIDs is seen. MariaDB's wait looks at what a replica has applied alone; there the exact
place in the binlog comes with each consistent snapshot, and commits are seen in the binlog's order.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from contract import gtids
from contract.sequence import file_number
from spark.errors import LakeError

Ask = Callable[..., Sequence[Any] | None]  # the first row of a statement
Place = tuple[str, int]  # binlog file, byte position

# As contract/types.py wants it: a value's text depends on the value alone, and is never cut.
SESSION = {
    "time_zone": "'+00:00'",
    "sql_mode": "''",
    "group_concat_max_len": "18446744073709551615",
    # A server's own limit would cut each read without a word.
    "sql_select_limit": "18446744073709551615",
    # So that literals have the collation of texts that the server makes: MariaDB takes no other beside it, and
    # Connector/J sets MySQL's.
    "character_set_connection": "utf8mb4",
    # Seconds: longer than a job rests by itself, for a busy server or snapshot.max_rows_per_second.
    "wait_timeout": "7200",
}
REPEATABLE = "'REPEATABLE-READ'"  # with any other the server's CONSISTENT SNAPSHOT is none, and says so nowhere
CONSISTENT = "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"
WAIT_STEP = 0.05  # seconds
UNORDERED = (
    "binlog_order_commits is OFF: commits become visible in another order than the binlog's, so no "
    "state of the source can be compared at. Run SET GLOBAL binlog_order_commits = ON"
)


class Server(Protocol):
    """`title`: as messages call it. `named`: SQL of what a checkpoint calls the server, `server_uuid`: what the
    streamer asks for. `session`: variables that each session sets. `exact`: a consistent read shows all that is before
    the place that `begin` gives. `lets_alter`: as Source.let_alter wants it."""

    @property
    def title(self) -> str: ...
    @property
    def named(self) -> str: ...
    @property
    def session(self) -> Mapping[str, str]: ...
    @property
    def exact(self) -> bool: ...
    @property
    def lets_alter(self) -> bool: ...

    def executed(self, ask: Ask) -> str:
        """The GTID set of at least the transactions whose changes a query has seen by now."""

    def end(self, ask: Ask) -> Place | None:
        """The end of the binlog; None where none is written."""

    def sees(self, ask: Ask, gtid_set: str, seconds: float) -> bool:
        """Whether a query sees every transaction of the set; waits for it."""

    def applied(self, ask: Ask, gtid_set: str, seconds: float) -> bool:
        """The same of a replica."""

    def replication_sql(self, ask: Ask) -> str:
        """Says how a replica stands, a row a channel; none of a server that is no replica."""

    def begin(self, ask: Ask) -> Place | None:
        """Begins a consistent read. A place in the binlog at or behind all that it sees."""

    def unordered(self, ask: Ask) -> str | None:
        """Why commits are not seen in the binlog's order; None where they are."""

    def seen(self, ask: Ask) -> str:
        """A GTID set whose transactions every query from now on shows; empty where nobody can tell."""


class MySQL:
    title = "MySQL"
    named = "@@server_uuid"
    exact = False
    lets_alter = True
    session: Mapping[str, str] = {
        **SESSION,
        "transaction_isolation": REPEATABLE,
        "max_execution_time": "0",
        # Else a table is as large as it was when somebody asked, for a day.
        "information_schema_stats_expiry": "0",
    }

    def executed(self, ask: Ask) -> str:
        return _text(ask("SELECT @@GLOBAL.gtid_executed"))

    def end(self, ask: Ask) -> Place | None:
        return _place(ask("SHOW BINARY LOG STATUS" if self._since(ask, 8, 2, 0) else "SHOW MASTER STATUS"))

    def sees(self, ask: Ask, gtid_set: str, seconds: float) -> bool:
        row = ask("SELECT WAIT_FOR_EXECUTED_GTID_SET(%s, %s)", gtid_set, seconds)
        return row is not None and row[0] == 0

    def applied(self, ask: Ask, gtid_set: str, seconds: float) -> bool:
        return self.sees(ask, gtid_set, seconds)

    def replication_sql(self, ask: Ask) -> str:
        return "SHOW REPLICA STATUS" if self._since(ask, 8, 0, 22) else "SHOW SLAVE STATUS"

    def begin(self, ask: Ask) -> Place | None:
        ask(CONSISTENT)
        return self.end(ask)

    def unordered(self, ask: Ask) -> str | None:
        row = ask("SELECT @@GLOBAL.binlog_order_commits")
        return None if row and row[0] else UNORDERED

    def seen(self, ask: Ask) -> str:
        return self.executed(ask)

    def _since(self, ask: Ask, *version: int) -> bool:
        return tuple(map(int, re.findall(r"\d+", _text(ask("SELECT version()")))[:3])) >= version


class MariaDB:
    title = "MariaDB"
    named = (
        "coalesce((SELECT variable_value FROM information_schema.global_variables WHERE variable_name = 'SERVER_UID'), "
        "concat(@@server_id, '-', @@gtid_domain_id))"
    )
    exact = True
    lets_alter = False  # nor may it: a savepoint within a consistent read is written to its binlog
    session: Mapping[str, str] = {**SESSION, "tx_isolation": REPEATABLE, "max_statement_time": "0"}

    def executed(self, ask: Ask) -> str:
        return _text(ask("SELECT @@GLOBAL.gtid_binlog_pos"))

    def end(self, ask: Ask) -> Place | None:
        return _place(ask("SHOW MASTER STATUS"))

    def sees(self, ask: Ask, gtid_set: str, seconds: float) -> bool:
        wanted, until = gtids.parse(gtid_set), time.monotonic() + seconds
        while not gtids.parse(self.executed(ask)).issuperset(wanted):
            if time.monotonic() > until:
                return False
            time.sleep(WAIT_STEP)
        written = self.end(ask)
        while written is not None and time.monotonic() <= until:
            seen = self.begin(ask)
            ask("COMMIT")
            if seen is not None and _order(seen) >= _order(written):
                return True
            time.sleep(WAIT_STEP)
        return False

    def applied(self, ask: Ask, gtid_set: str, seconds: float) -> bool:
        row = ask("SELECT MASTER_GTID_WAIT(%s, %s)", gtid_set, seconds)
        return row is not None and row[0] == 0

    def replication_sql(self, ask: Ask) -> str:
        return "SHOW ALL REPLICAS STATUS"

    def begin(self, ask: Ask) -> Place | None:
        ask(CONSISTENT)
        file, pos = ask("SHOW STATUS LIKE 'binlog_snapshot_file'"), ask("SHOW STATUS LIKE 'binlog_snapshot_position'")
        return (str(file[1]), int(pos[1])) if file and file[1] and pos else None

    def unordered(self, ask: Ask) -> str | None:
        return None

    def seen(self, ask: Ask) -> str:
        return ""  # what is in its binlog may not be seen yet


SERVERS: Mapping[str, Server] = {"mysql": MySQL(), "mariadb": MariaDB()}


def _text(row: Sequence[Any] | None) -> str:
    return str(row[0] or "").replace("\n", "") if row else ""


def _place(row: Sequence[Any] | None) -> Place | None:
    return (str(row[0]), int(row[1])) if row else None


def _order(place: Place) -> tuple[int, int]:
    return file_number(place[0]), place[1]


def known(place: Place | None) -> Place:
    """Raises LakeError where there is no binlog."""
    if place is None:
        raise LakeError("the source writes no binlog: set log_bin, and see that the streamer's preflight passes")
    return place
