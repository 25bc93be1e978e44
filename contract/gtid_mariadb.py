"""MariaDB's GTIDs as values: `domain-server-sequence`, and positions such as `0-1-270,1-2-33`.

A server writes each domain's transactions in one order, so that the last one of each says which are there: all up to
it. Source: MariaDB's documentation, "Global Transaction ID".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from contract.gtid import GtidSet

GTID = re.compile(r"(\d+)-(\d+)-(\d+)")


class MariaGtids(GtidSet):
    """The transactions up to a position. Keys are domains, each with one interval: from 1 to its last number.

    Servers' own numbers are kept to name the last transaction; what is contained is told by domain and sequence.
    """

    __slots__ = ("servers",)

    def __init__(self) -> None:
        super().__init__()
        self.servers: dict[str, str] = {}

    @classmethod
    def parse(cls, text: str) -> MariaGtids:
        """`0-1-270,1-2-33`; blanks and newlines are allowed. Raises ValueError."""
        gtids = cls()
        for part in filter(None, "".join(text.split()).split(",")):
            if not GTID.fullmatch(part):
                raise ValueError(f"{part!r} is no GTID of MariaDB: domain-server-sequence is expected")
            gtids.add(part)
        return gtids

    def add(self, gtid: str) -> None:
        """Everything of its domain up to this transaction, `domain-server-sequence`. The last one added counts: where
        servers wrote into one domain without care, their numbers may fall."""
        domain, server, number = gtid.split("-")
        self.intervals[domain] = [(1, int(number))]
        self.servers[domain] = server

    def add_all(self, gtids: Iterable[str]) -> None:
        for gtid in gtids:
            self.add(gtid)

    def contains(self, gtid: str) -> bool:
        domain, _, number = gtid.split("-")
        return self._covers(domain, (int(number), int(number)))

    def union(self, other: GtidSet) -> MariaGtids:
        result = self.copy()
        if isinstance(other, MariaGtids):
            result.add_all(gtid for gtid in other.last() if not self.contains(gtid))
        return result

    def subtract(self, other: GtidSet) -> MariaGtids:
        result = MariaGtids()
        result.intervals = super().subtract(other).intervals
        result.servers = dict(self.servers)
        return result

    def without(self, left_out: Sequence[tuple[str, str]]) -> MariaGtids:
        """A domain's transactions stand in one order: it goes back to before the first of those left out."""
        result = self.copy()
        for gtid, before in reversed(left_out):
            result.intervals.pop(gtid.split("-")[0], None)
            if before:
                result.add(before)
        return result

    def copy(self) -> MariaGtids:
        result = MariaGtids()
        result.add_all(self.last())
        return result

    def last(self) -> list[str]:
        """The last transaction of each domain, in the domains' order."""
        return [
            f"{domain}-{self.servers[domain]}-{self.intervals[domain][-1][1]}"
            for domain in sorted(filter(self.intervals.get, self.intervals), key=int)
        ]

    def __str__(self) -> str:
        """The server's own spelling."""
        return ",".join(self.last())

    def __repr__(self) -> str:
        return f"MariaGtids({str(self)!r})"
