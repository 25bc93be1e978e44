"""Rows of transactions that may yet end otherwise than by a commit: held back until that is known.

An XA transaction is written to the binlog when it is prepared, under a GTID of its own; whether it was committed is
told later, by another transaction. MariaDB writes a transaction that was rolled back where it had made a temporary
table, and `ROLLBACK TO` with the rows that it takes back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from contract.gtid import GtidSet
from contract.gtid_mariadb import MariaGtids
from streamer.ddl.temporary import Name, TemporaryTables
from streamer.protocol import refusals
from streamer.protocol.model import OpenXa, RowsBatch
from streamer.protocol.spool import Spool

LIMIT = 256 << 20  # bytes of rows of all open XA transactions
UNDOABLE = 1 << 20  # bytes of one transaction's events in MariaDB's binlog; of a larger one the rest waits in a file
STATEMENT = re.compile(rb"XA\s+(\w+)\s*(.*?)\s*(ONE\s+PHASE)?$", re.IGNORECASE | re.DOTALL)
_VERB = rb"(?:SAVEPOINT|ROLLBACK\s+(?:WORK\s+)?TO(?:\s+SAVEPOINT)?)\s+"
# The name is in backticks, or as the session's sql_mode and sql_quote_show_create have it.
SAVEPOINT = re.compile(_VERB + rb"""(`(?:[^`]|``)*`|"(?:[^"]|"")*"|\S+)\s*$""", re.IGNORECASE)


def xid_of(d: bytes, o: int) -> tuple[bytes, bool]:
    """An XA_PREPARE event's body -> the id as statements spell it, and whether it is committed by the same event."""
    form, first, second = (int.from_bytes(d[o + 1 + 4 * n : o + 5 + 4 * n], "little") for n in range(3))
    names = d[o + 13 : o + 13 + first + second]
    if len(names) != first + second:
        raise ValueError("an XA transaction's id is cut off")
    return b"X'%b',X'%b',%d" % (names[:first].hex().encode(), names[first:].hex().encode(), form), d[o] != 0


def size(batch: RowsBatch) -> int:
    return sum(map(len, batch.rows)) + sum(map(len, batch.keys))


class Held:
    """The rows of the transaction that is being read, as far as they are held. `size`: bytes of them, or of their
    events, those taken back included. `spool`: what comes behind the batches, where they would be too many. Of the
    methods, `given`: how many batches the transaction has so far, without the spool's."""

    def __init__(self) -> None:
        self.batches: list[RowsBatch] = []
        self.size = 0
        self.spool: Spool | None = None
        self._savepoints: dict[bytes, tuple[int, int]] = {}  # batches, and bytes of the spool

    def clear(self) -> None:
        self.batches, self.size = [], 0
        self._savepoints.clear()
        if self.spool is not None:
            self.spool.close()
            self.spool = None

    def savepoint(self, statement: bytes, given: int) -> None:
        self._savepoints[_name(statement)] = given, self.spool.size if self.spool else 0

    def undo(self, statement: bytes, given: int, gtid: str) -> int:
        """Takes back what was read since the savepoint; how many batches are left. Raises
        UnsupportedTransactionError where some of them were given already; `gtid` is told there."""
        first = given - len(self.batches)
        left, spooled = self._savepoints.get(_name(statement), (0 if given == 0 else -1, 0))
        if left < first:
            raise refusals.rollback(gtid)
        del self.batches[left - first :]
        if self.spool is not None:
            self.spool.cut(spooled)
        return left


def _name(statement: bytes) -> bytes:
    """Of the savepoint; they are compared without regard to case."""
    found = SAVEPOINT.search(statement)
    if found is None:
        raise refusals.savepoint()
    name, quote = found[1].lower(), found[1][:1]
    return name[1:-1].replace(quote * 2, quote) if quote in (b"`", b'"') else name


class _Prepared(NamedTuple):
    batches: list[RowsBatch]
    size: int
    open: OpenXa
    place: tuple[str, int] | None


class PreparedXa:
    """The XA transactions that are prepared and have not ended. It outlives a connection: what was read of them is not
    sent again. `limit`: bytes of their rows. `behind`: where reading begins. `seen`: what was delivered before.
    `temporary`: the sessions' temporary tables, which outlive a connection, too."""

    def __init__(
        self, limit: int = LIMIT, behind: GtidSet | None = None, seen: GtidSet | None = None,
        temporary: Iterable[Name] = (),
    ) -> None:  # fmt: skip
        self.limit = limit
        self._seen = seen
        self.temporary = TemporaryTables(temporary)
        # Of each of MariaDB's domains the transaction that was seen last, and the one before it.
        self._last: dict[str, tuple[str, str]] = {}
        if isinstance(behind, MariaGtids):
            self._last = {gtid.split("-")[0]: (gtid, "") for gtid in behind.last()}
        self.open: tuple[OpenXa, ...] = ()
        self.first: tuple[str, int] | None = None  # file and position where the first of them begins, if known
        self._known: dict[bytes, _Prepared] = {}
        self._size = 0

    def before(self, domain: str, gtid: str) -> str:
        """The transaction before this one in its domain, also where it comes again after a lost connection."""
        last, before = self._last.get(domain, ("", ""))
        if last != gtid:
            before = last
            self._last[domain] = gtid, before
        return before

    def refuse_gap(self, before: Mapping[tuple[str, str], int], file: str) -> None:
        """`before`: the last number of each domain and server before a file that begins. Raises BegunAnewError where
        what was read ends before that: where MariaDB's binlog is reset, its dumps go on with another file."""
        for domain, (gtid, _) in self._last.items():
            _, server, number = gtid.split("-")
            if (there := before.get((domain, server), 0)) > int(number):
                last = f"{domain}-{server}-{there}"
                raise refusals.begun_anew(f"{file} begins behind {last}, and no more than {gtid} was given")

    def check(self, more: int) -> None:
        """Raises UnsupportedTransactionError where this many bytes more would be too many."""
        if self._size + more > self.limit:
            raise refusals.held(self.limit)

    def elsewhere(self) -> None:
        """Another server goes on: its places are others, and its sessions."""
        self._known = {xid: one._replace(place=None) for xid, one in self._known.items()}
        self._changed()
        self.temporary.clear()

    def prepare(
        self, xid: bytes, held: Held, gtid: str, before: str, place: tuple[str, int] | None = None
    ) -> None:  # fmt: skip
        """`place`: the file and position where its transaction begins."""
        self.end(xid)
        self._known[xid] = _Prepared(held.batches, held.size, OpenXa(gtid, before), place)
        self._changed()

    def rows(self, xid: bytes, gtid: str) -> list[RowsBatch]:
        """Those of the one that `gtid` commits; none where they were delivered before. Raises
        UnsupportedTransactionError where it was prepared before the place where reading began."""
        if xid in self._known:
            return self._known[xid].batches
        if self._seen is not None and self._seen.contains(gtid):
            return []
        raise refusals.unknown_xa()

    def end(self, xid: bytes) -> None:
        if self._known.pop(xid, None):
            self._changed()

    def _changed(self) -> None:
        self.open = tuple(one.open for one in self._known.values())
        self.first = next((one.place for one in self._known.values()), None)
        self._size = sum(one.size for one in self._known.values())
