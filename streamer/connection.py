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
from contract.information_schema import SHOWS_GENERATED_KEYS
from contract.pipeline import Source
from streamer.connection_errors import FATAL_READING, GONE, dump_error, facts_of, refused
from streamer.errors import AccessDeniedError, ConnectionLostError, HeadraceError, SourceRefusedError, TlsError
from streamer.flavors import flavor
from streamer.protocol import refusals
from streamer.protocol.packets import ServerAnswerError

# Whatever the server's own settings are: what it answers, such as SHOW CREATE TABLE, depends on these.
SESSION = (
    "SET sql_mode = '', sql_quote_show_create = 1, time_zone = '+00:00', sql_select_limit = 18446744073709551615"
    f"{SHOWS_GENERATED_KEYS}"
)
CHUNK = 1 << 18  # bytes received at once: large, for each call costs as much as decoding some rows
TICK_SECONDS = 0.1
IN_VAIN = 64  # times as long as usual that a server may be silent at most


def connect(source: Source, read_timeout: float, **settings: Any) -> pymysql.Connection[Any]:
    """A connection in autocommit, in UTC, with an empty sql_mode; `read_timeout` holds once it is logged in. Raises
    UnreachableError, AccessDeniedError, SourceRefusedError."""
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
            # Of a text it would make Latin-1, and servers keep the hash of its UTF-8.
            host=source.host, port=source.port, user=source.user, password=secret.encode(), charset="utf8mb4",
            autocommit=True, init_command=SESSION,
            # A frozen server's kernel takes connections, and nobody greets.
            connect_timeout=seconds, read_timeout=seconds, program_name="headrace", **encrypted, **settings,
        )  # fmt: skip
    except UnicodeError as error:
        hint = "Correct source.host in the pipeline file"
        raise SourceRefusedError("connect to", source.host, f"no host has such a name ({error})", hint) from None
    except (pymysql.MySQLError, OSError, RuntimeError) as error:
        raise refused(source, error) from None
    connection._read_timeout = read_timeout  # type: ignore[attr-defined]
    return connection


class Silence:
    """How long a server may say nothing, over several dumps. It may look long for the place where one begins, in very
    large files or in very many, and neither sends heartbeats meanwhile nor knows the place the next time: so each dump
    that has brought no more than its beginning gives the next one twice the time."""

    def __init__(self) -> None:
        self.times = 1

    def in_vain(self) -> None:
        self.times = min(2 * self.times, IN_VAIN)


class BinlogConnection:
    """One dump. `start`: the transactions that are not asked for; `reader`: the pipeline; `silence`: of the dumps
    before it, too. `close()` may be called from any thread or from a signal handler; `chunks()` ends then."""

    def __init__(self, source: Source, start: GtidSet, reader: str = "", silence: Silence | None = None) -> None:
        self._source = source
        self._start = start
        self._reader = reader
        self._silence = silence or Silence()
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
        silent = waited = 0.0  # seconds since something came, and in all
        while True:
            try:
                data = receive(CHUNK)
            except TimeoutError:
                silent += TICK_SECONDS
                waited += TICK_SECONDS
                if silent >= self.silence_seconds * self._silence.times:
                    if waited - silent < self.silence_seconds:
                        self._silence.in_vain()
                    raise self._lost(f"nothing came for {silent:.1f} s, not even a heartbeat") from None
                yield b""
                continue
            # Behind a shutdown, what the kernel still gives may lack bytes in between.
            if not data or self._closed:
                return
            silent = 0.0
            if waited >= self.silence_seconds:
                self._silence.times = 1
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
        code, message = facts_of(error)
        if isinstance(error, pymysql.MySQLError) and code not in GONE:
            return dump_error(self._source, code, message)
        return self._lost(message)

    def answered(self, error: ServerAnswerError) -> HeadraceError:
        """The typed error of what the server said in place of the binlog, as the decoder met it."""
        if error.code == FATAL_READING and "i/o error reading" in error.message.lower():  # bounded, as each new epoch
            return refusals.cannot_go_on(f"the binlog of {self._source.where}", error.message)
        return dump_error(self._source, error.code, error.message)
