"""The only owner of the MySQL socket: logs in, asks for the binlog behind a GTID set, and gives the bytes as they come.

`chunks()` raises typed errors only: unreachable, access denied, purged, server id in use, connection lost (also when
nothing came for twice the heartbeat), source refused.
"""

from __future__ import annotations

import select
import socket
import ssl
from collections.abc import Iterator
from typing import Any

import pymysql

from contract import tls
from contract.gtid import GtidSet
from contract.pipeline import Source
from streamer.errors import (
    AccessDeniedError,
    ConnectionLostError,
    HeadraceError,
    PurgedError,
    ServerIdInUseError,
    SourceRefusedError,
    TlsError,
    UnreachableError,
)
from streamer.flavors import flavor
from streamer.protocol import refusals
from streamer.protocol.events import ANONYMOUS_GTID
from streamer.protocol.packets import ServerAnswerError

CHUNK = 1 << 18  # bytes received at once: large, for each call costs as much as decoding some rows
TICK_SECONDS = 0.1
DENIED = {
    1044,
    1045,
    1142,
    1227,
    1698,
    1862,
    3118,
}  # login, database, table, privilege; password expired, account locked
LACKING = {1142, 1227}  # a right on a table, a privilege: the login itself was good
FULL = {1040, 1203, 1226}  # no connection is free: of the server, or of those that the user may have
CLOSED = 3032  # MySQL's offline_mode
# What passes: no answer, no room, 1053 the server is stopping.
AWAY = {0, 2002, 2003, 2005, 2006, 2013, 1053, CLOSED, *FULL}
FATAL_READING = 1236  # ER_SOURCE_FATAL_ERROR_READING_BINLOG: the text alone tells which
GONE = {2006, 2013}


def connect(source: Source, read_timeout: float, **settings: Any) -> pymysql.Connection[Any]:
    """A connection in autocommit; `read_timeout` holds once it is logged in. Raises UnreachableError,
    AccessDeniedError, SourceRefusedError."""
    try:
        secret = source.secret()
    except OSError as error:
        hint = "Name a file that the streamer may read"
        raise AccessDeniedError("read", f"password file {source.password_file}", str(error.strerror), hint) from None
    try:
        encrypted = tls.settings(source.tls)
    except tls.TlsFileError as error:
        hint = "Name PEM files that the streamer may read (source.tls in the pipeline file)"
        raise TlsError("connect to", source.where, str(error), hint) from None
    seconds = max(1, round(source.connect_timeout_seconds))
    try:
        connection = pymysql.connect(
            host=source.host, port=source.port, user=source.user, password=secret, charset="utf8mb4", autocommit=True,
            # A frozen server's kernel takes connections, and nobody greets.
            connect_timeout=seconds, read_timeout=seconds, program_name="headrace", **encrypted, **settings,
        )  # fmt: skip
    except (pymysql.MySQLError, OSError, RuntimeError) as error:
        raise refused(source, error) from None
    connection._read_timeout = read_timeout  # type: ignore[attr-defined]
    return connection


def refused(source: Source, error: Exception) -> HeadraceError:
    """The typed error of a failed login or statement."""
    code, message = _facts(error)
    where = f"{flavor(source).title} at {source.where}"
    if cause := tls.fault(error):
        return TlsError("connect to", where, cause, _tls_hint(source, cause))
    if code in LACKING:
        hint = f"GRANT SELECT, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO {source.user}, by a user that may"
        return AccessDeniedError("ask", where, message, hint)
    if code in DENIED:
        hint = (
            f"Check user and password in the pipeline file; the server must know {source.user}, with SELECT, "
            "REPLICATION SLAVE and REPLICATION CLIENT. A user with REQUIRE SSL or X509 needs source.tls"
        )
        return AccessDeniedError("log in to", where, message, hint)
    if isinstance(error, pymysql.OperationalError | OSError) and code in AWAY:
        return UnreachableError("connect to", where, message, _away_hint(source, code))
    return SourceRefusedError(
        "talk to", where, f"error {code}: {message}", "Mend what the server names, and start again"
    )


def _away_hint(source: Source, code: int) -> str:
    if code in FULL:
        return f"Raise max_connections or max_user_connections of the server, or MAX_USER_CONNECTIONS of {source.user}"
    if code == CLOSED:
        return "SET GLOBAL offline_mode = OFF, when the server may be used again"
    return "Start the server, or correct host and port in the pipeline file"


def _tls_hint(source: Source, cause: str) -> str:
    if "takes connections by TLS alone" in cause:
        return "Write source.tls: {mode: required}, or better verify_identity with a ca_file"
    if "offers no TLS" in cause:
        return "Set ssl_ca, ssl_cert and ssl_key on the server, or write another mode in source.tls"
    if "not trusted" in cause:
        return (
            "Name the authority that signed it in source.tls.ca_file. Of a server that goes by another name than "
            f"{source.host}, write in source.host the name that its certificate has, or mode: verify_ca"
        )
    return "See that server and streamer share a version of TLS (1.2 at least), and look at the server's error log"


def _facts(error: Exception) -> tuple[int, str]:
    if len(error.args) >= 2 and isinstance(error.args[0], int):
        return error.args[0], str(error.args[1])
    return 0, str(error) or type(error).__name__


class BinlogConnection:
    """One dump. `start`: the transactions that are not asked for; `reader`: the pipeline. `close()` may be called from
    any thread or from a signal handler; `chunks()` ends then."""

    def __init__(self, source: Source, start: GtidSet, reader: str = "") -> None:
        self._source = source
        self._start = start
        self._reader = reader
        self._closed = False
        self._connection: pymysql.Connection[Any] | None = None

    def chunks(self) -> Iterator[bytes]:
        """Bytes as received, of any size up to CHUNK; none at all (b"") whenever nothing came for TICK_SECONDS, so
        that the caller's other work goes on. Only waiting counts as the server's silence, not the caller's work."""
        connection = connect(self._source, read_timeout=self.silence_seconds, write_timeout=self.silence_seconds)
        self._connection = connection
        try:
            self.request(connection)
            yield from self._received(connection._sock)  # type: ignore[attr-defined]
            if not self._closed:
                raise self._lost("the server closed the connection")
        except (OSError, ssl.SSLError, pymysql.MySQLError) as error:
            if not self._closed:
                raise self._failed(error) from None
        finally:
            connection._force_close()  # type: ignore[attr-defined]

    def request(self, connection: pymysql.Connection[Any]) -> None:
        """Sends what makes the server give the binlog. Raises pymysql.MySQLError, OSError."""
        flavor(self._source).request(connection, self._source, self._start, self._reader)

    def _received(self, sock: socket.socket) -> Iterator[bytes]:
        receive = sock.recv
        sock.settimeout(TICK_SECONDS)
        silent = 0.0
        while True:
            try:
                data = receive(CHUNK)
            except TimeoutError:
                silent += TICK_SECONDS
                if silent >= self.silence_seconds:
                    raise self._lost(f"nothing came for {silent:.1f} s, not even a heartbeat") from None
                yield b""
                continue
            # Behind a shutdown, what the kernel still gives may lack bytes in between.
            if not data or self._closed:
                return
            silent = 0.0
            yield data

    def more(self) -> bool:
        """Whether bytes have come already that `chunks` gives next."""
        sock = getattr(self._connection, "_sock", None)
        if sock is None:
            return False
        if isinstance(sock, ssl.SSLSocket) and sock.pending():
            return True
        ready = select.poll()
        ready.register(sock, select.POLLIN)
        return bool(ready.poll(0))

    @property
    def silence_seconds(self) -> float:
        return 2 * self._source.heartbeat_seconds

    def close(self) -> None:
        self._closed = True
        sock = getattr(self._connection, "_sock", None)
        if sock is not None:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                return  # it is closed already

    def _lost(self, cause: str) -> ConnectionLostError:
        where = f"the binlog of {self._source.where}"
        return ConnectionLostError("read", where, cause, "The streamer connects again by itself")

    def _failed(self, error: Exception) -> HeadraceError:
        code, message = _facts(error)
        if isinstance(error, pymysql.MySQLError) and code not in GONE:
            return dump_error(self._source, code, message)
        return self._lost(message)

    def answered(self, error: ServerAnswerError) -> HeadraceError:
        """The typed error of what the server said in place of the binlog, as the decoder met it."""
        if error.code == FATAL_READING and "i/o error reading" in error.message.lower():  # bounded, as each new epoch
            return refusals.cannot_go_on(f"the binlog of {self._source.where}", error.message)
        return dump_error(self._source, error.code, error.message)


def dump_error(source: Source, code: int, message: str) -> HeadraceError:
    where = f"the binlog of {source.where}"
    text = message.lower()
    if "same server_uuid" in text or "same server_id" in text or "same server id" in text:
        hint = f"Give one of the two another server_id in its pipeline file (this one has {source.server_id})"
        return ServerIdInUseError("read", where, "another client reads under the same server id", hint)
    if code == FATAL_READING and "could not find next log" in text:  # reset or purged meanwhile: the next login tells
        return ConnectionLostError("read", where, message, "The streamer connects again by itself")
    if code == FATAL_READING and ("purged" in text or "could not find" in text):
        hint = (
            "Start a pipeline of a new name, with a new snapshot; keep binlogs longer "
            "(binlog_expire_logs_seconds) than the streamer may be away"
        )
        return PurgedError("read", where, message, hint)
    if code == FATAL_READING and "not in the master's binlog" in text:  # MariaDB's strict mode
        hint = (
            "It is another server than the one that was streamed, or one restored from a backup: point source.host "
            "back at that one, or start a pipeline of a new name, with a new snapshot"
        )
        return SourceRefusedError("read", where, message, hint)
    if code == FATAL_READING and "anonymous" in text:
        error, cause, hint = refusals.REASONS[ANONYMOUS_GTID]
        return error("read", where, cause, hint)
    if code in (*FULL, CLOSED, 1053, 1927, 3169, 3024):  # shutting down, killed
        return ConnectionLostError("read", where, message, "The streamer connects again by itself")
    if code in LACKING:
        hint = f"GRANT SELECT, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO {source.user}, by a user that may"
        return AccessDeniedError("ask", where, message, hint)
    if code in DENIED:
        hint = f"GRANT REPLICATION SLAVE, REPLICATION CLIENT, SELECT ON *.* TO '{source.user}'@'%'"
        return AccessDeniedError("read", where, message, hint)
    return SourceRefusedError("read", where, f"error {code}: {message}", "Mend what the server names, and start again")
