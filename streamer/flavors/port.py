"""What the streamer asks of a kind of server."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, Protocol

import pymysql

from contract.gtid import GtidSet
from contract.gtid_places import UpTo
from contract.pipeline import Source
from contract.start_at import FIRST

Rows = Sequence[tuple[Any, ...]]
Ask = Callable[..., list[tuple[Any, ...]] | None]  # a statement's rows, or None where the user may not
Version = tuple[int, ...]
Wanted = Callable[[str, str], bool]  # whether the pipeline has the table db, table


def numbers(version: str) -> Version:
    """Of @@version."""
    return tuple(int(number) for number in version.partition("-")[0].split(".") if number.isdigit())


@dataclass(frozen=True)
class Facts:
    """`file`, `pos`, `executed`: one consistent reading of the end of the binlog. `first_file`: the oldest one.
    `server_uuid`: what tells this server from others. `replicates`: whether it applies another server's changes; None
    where the user may not know. `lower_case`: whether it keeps the names of databases and tables in lower case, however
    a statement spells them. `under_way`: transactions that it commits just now; a stream may have them already, for a
    commit that waits for its replicas (semi-synchronous replication) stands in the binlog before it is executed.
    `gtids`: whether a stream goes by them, for each transaction to come has one; where not, sets are of places.
    `logs_cascades`: whether rows that foreign keys change are in its binlog."""

    server_id: int
    server_uuid: str
    version: str
    purged: GtidSet
    executed: GtidSet
    file: str
    pos: int
    first_file: str
    replicates: bool | None = False
    lower_case: bool = False
    under_way: GtidSet = field(default_factory=GtidSet)
    gtids: bool = True
    logs_cascades: bool = True

    def by_place(self) -> Facts:
        """The same, for a stream that goes by file and position."""
        purged, executed = UpTo.place(self.first_file, FIRST), UpTo.place(self.file, self.pos)
        return replace(self, purged=purged, executed=executed, under_way=UpTo(), gtids=False)


@dataclass(frozen=True)
class End:
    """Where the server of that uuid (as in Facts) has the end of its binlog, and what it has executed by then."""

    server_uuid: str
    file: str
    pos: int
    executed: GtidSet

    def by_place(self) -> End:
        return replace(self, executed=UpTo.place(self.file, self.pos))


class Setting(NamedTuple):
    """A global variable's wanted value; what a server that lacks it does; why; how it is set; where older servers
    lack it, since which release there is one; and whether a stream can do without."""

    name: str
    wanted: str
    absent: str
    reason: str
    statement: str
    since: str = ""
    level: Literal["error", "warning"] = "error"


class Flavor(Protocol):
    """`title`: how messages call it. `hides_cascades`: which servers write no rows that foreign keys changed.
    `logs_replicated`: names of the variable by which a replica writes what it applies into its own binlog.
    `lists_replicas`: the privilege that `replicas` takes. `replication`: says how a replica
    stands, the newest spelling first. `keep`: the statement that keeps binlogs for {seconds}."""

    @property
    def title(self) -> str: ...
    @property
    def settings(self) -> Sequence[Setting]: ...
    @property
    def hides_cascades(self) -> str: ...

    @property
    def logs_replicated(self) -> Sequence[str]: ...

    @property
    def lists_replicas(self) -> str: ...

    @property
    def keep(self) -> str: ...

    @property
    def replication(self) -> Sequence[str]: ...

    def owns(self, version: str) -> bool:
        """Whether a server with this @@version is of this kind."""

    def facts(self, cursor: Any) -> Facts | None:
        """None where the server writes no binlog. Raises pymysql.MySQLError."""

    def end(self, cursor: Any) -> End | None:
        """As `facts`, of the binlog's end alone: cheap on any server. None where it writes no binlog."""

    def before(self, cursor: Any, file: str) -> GtidSet | None:
        """The transactions before a binlog file, None where there is no such file. Raises pymysql.MySQLError."""

    def lacks_gtid(self, cursor: Any, file: str, pos: int) -> bool:
        """Whether the first transaction behind that place has no GTID, so that a dump by GTID may pass it by. Raises
        pymysql.MySQLError."""

    def request(self, connection: pymysql.Connection[Any], source: Source, start: GtidSet, reader: str) -> None:
        """Sends what makes the server give the binlog behind `start`, of places of a file from its beginning where the
        place is beyond 4 GiB (the command has 32 bits for it); it may show the reader's name, in a way of its
        own. Raises pymysql.MySQLError, OSError."""

    def grants(self, ask: Ask, version: Version) -> Mapping[str, Rows | None]:
        """The privileges that a stream needs beside SELECT; None for one that the user lacks."""

    def replicas(self, ask: Ask, version: Version) -> Rows | None:
        """Clients that read the binlog: rows that begin with the server id and end with the client's UUID."""

    def replicated(self, ask: Ask, variables: Mapping[str, str], version: Version) -> bool:
        """Whether the server applies another one's changes, or has."""

    def filtered(self, ask: Ask, version: Version) -> tuple[Sequence[str], Sequence[str]]:
        """The databases that alone are in the binlog, none for all; and those that are not."""

    def purged(self, ask: Ask, variables: Mapping[str, str]) -> GtidSet:
        """The transactions that are no longer in the binlog."""

    def executed(self, ask: Ask) -> GtidSet:
        """The transactions that are in the binlog, or were."""

    def keeps_seconds(self, variables: Mapping[str, str]) -> float:
        """How long a binlog file is kept at least; 0 where the server removes none by its age."""

    def logs_cascades(self, ask: Ask, version: Version, variables: Mapping[str, str]) -> bool:
        """Whether rows that foreign keys changed are in the binlog."""

    def cascades(self, ask: Ask, wanted: Wanted) -> Rows:
        """`(db, table, foreign key, its parent, its rules)` of keys that change a wanted table's rows."""

    def unclear(self, ask: Ask) -> Rows:
        """`(db, table, column, type)` of columns whose values the binlog does not tell for certain."""
