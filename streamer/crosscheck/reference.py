"""mysql-replication over a stretch of a live binlog, as steps.

In: a server and a transaction's first position. What it passes by in silence is told from the events that it does
not know; what it fails on, with whatever exception, is said of the step.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pymysql

from contract import tls
from contract.pipeline import Source
from contract.start_at import Place
from streamer.connection_errors import refused
from streamer.crosscheck.errors import MissingPackageError
from streamer.crosscheck.steps import End, Rows, Statement, Step
from streamer.protocol import events as ev
from streamer.protocol.query import Meaning, meaning

Wanted = Callable[[str, str], bool]
OPS = {"WriteRowsEvent": "c", "UpdateRowsEvent": "u", "DeleteRowsEvent": "d"}
PASSED_BY = ("SAVEPOINT", "RELEASED", "UNDONE", "ROWS")  # statements of which the stream gives nothing
STANDALONE = 1  # flag of MariaDB's GTID event: a statement that is a transaction
FAILS = "what it fails on"
# What its transactions lack, by the events that it does not know.
LACKS = {
    ev.TRANSACTION_PAYLOAD: "compressed transaction",
    ev.GTID_TAGGED: "tagged GTID",
    ev.PARTIAL_UPDATE_ROWS: "partial JSON update",
    ev.QUERY_COMPRESSED: "MariaDB's compressed events",
    **dict.fromkeys(range(ev.WRITE_ROWS_COMPRESSED_V1, ev.DELETE_ROWS_COMPRESSED + 1), "MariaDB's compressed events"),
}


def steps(source: Source, begin: Place, wanted: Wanted) -> Iterator[Step]:
    """From the transaction that begins at `begin` to the present end. Raises MissingPackageError."""
    return Reader(source, begin, wanted).steps()


def package() -> Any:
    """mysql-replication's module. Raises MissingPackageError."""
    try:
        import pymysqlreplication.event
        import pymysqlreplication.row_event
    except ImportError:
        hint = "Install it: pip install mysql-replication==1.0.17"
        raise MissingPackageError(
            "start", "crosscheck", "the package mysql-replication is not installed", hint
        ) from None
    return pymysqlreplication


class Reader:
    def __init__(self, source: Source, begin: Place, wanted: Wanted) -> None:
        self._package = package()
        self._source = source
        self._wanted = wanted
        self._open = False  # inside a transaction
        self._gtid = ""
        self._lacks: set[str] = set()
        login = {"host": source.host, "port": source.port, "user": source.user, "passwd": source.secret()}
        login |= tls.settings(source.tls)
        event, row = self._package.event, self._package.row_event
        self._stream = self._package.BinLogStreamReader(
            connection_settings=login, server_id=source.server_id, log_file=begin.file, log_pos=begin.pos,
            resume_stream=True, enable_logging=False, filter_non_implemented_events=False,
            only_events=[
                event.GtidEvent, event.MariadbGtidEvent, event.QueryEvent, event.XidEvent, event.XAPrepareEvent,
                event.NotImplementedEvent, row.WriteRowsEvent, row.UpdateRowsEvent, row.DeleteRowsEvent,
                row.PartialUpdateRowsEvent,
            ],
        )  # fmt: skip

    def steps(self) -> Iterator[Step]:
        handlers: dict[str, Callable[[Any], Iterator[Step]]] = {
            "GtidEvent": self._begins, "MariadbGtidEvent": self._begins, "QueryEvent": self._query,
            "XidEvent": lambda found: self._end(found.xid), "XAPrepareEvent": self._prepared,
            "NotImplementedEvent": self._unknown, "PartialUpdateRowsEvent": self._unknown,
        }  # fmt: skip
        try:
            while (found := self._next()) is not None:
                yield from handlers.get(type(found).__name__, self._rows)(found)
        finally:
            self._stream.close()

    def _next(self) -> Any:
        """The next event; None at the end. What it fails on is passed by, as a lack of its transaction."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            while True:
                try:
                    return self._stream.fetchone()
                except (pymysql.MySQLError, OSError) as error:
                    raise refused(self._source, error) from None
                except Exception:  # its own affair
                    self._lacks.add(FAILS)

    def _begins(self, found: Any) -> Iterator[Step]:
        yield from self._forgotten()
        self._gtid = found.gtid
        self._open = not getattr(found, "flags", STANDALONE) & STANDALONE

    def _forgotten(self) -> Iterator[Step]:
        """A transaction of which it gave no end."""
        if self._gtid or self._lacks - {"tagged GTID"}:
            yield from self._end(None)

    def _end(self, xid: int | None) -> Iterator[Step]:
        yield End(self._gtid, xid, frozenset(self._lacks))
        self._gtid, self._open = "", False
        self._lacks.clear()

    def _query(self, found: Any) -> Iterator[Step]:
        kind = meaning(found.query.encode())
        if kind is Meaning.BEGIN:
            self._open = True
        elif kind in (Meaning.COMMIT, Meaning.ROLLBACK):
            if kind is Meaning.ROLLBACK:
                self._lacks.add("rolled back")
            yield from self._end(None)
        elif kind is Meaning.XA:
            self._lacks.add("XA")
            if not found.query.upper().startswith(("XA START", "XA BEGIN", "XA END")):
                yield from self._end(None)
        elif kind.name not in PASSED_BY:
            yield Statement(found.query)
            if not self._open:
                yield from self._end(None)

    def _prepared(self, found: Any) -> Iterator[Step]:
        self._lacks.add("XA")
        return self._end(None)

    def _unknown(self, found: Any) -> Iterator[Step]:
        if (name := LACKS.get(found.event_type)) is not None:
            if name == "tagged GTID":
                yield from self._forgotten()
            self._lacks.add(name)

    def _rows(self, found: Any) -> Iterator[Step]:
        if not self._wanted(found.schema, found.table):
            return
        op, key = OPS[type(found).__name__], found.primary_key
        names = tuple(sorted([key] if isinstance(key, str) else key)) if key else ()
        images, failed = [], ""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                for row in found.rows:
                    images += [row["before_values"], row["after_values"]] if op == "u" else [row["values"]]
        except Exception as error:  # whatever it fails with is its own affair
            failed = type(error).__name__
        yield Rows(op, f"{found.schema}.{found.table}", names, images, failed=failed)
