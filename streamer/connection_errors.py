"""What a server means by refusing a login, a question or a dump, for the operator; and which ones are waited for."""

from __future__ import annotations

import pymysql

from contract import tls
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

# Login, database, table, privilege; password expired, account locked.
DENIED = {1044, 1045, 1142, 1227, 1698, 1862, 3118}
LACKING = {1142, 1227}  # a right on a table, a privilege: the login itself was good
FULL = {1040, 1203, 1226}  # no connection is free: of the server, or of those that the user may have
CLOSED = 3032  # MySQL's offline_mode
# What passes: no answer, no room, 1053 the server is stopping.
AWAY = {0, 2002, 2003, 2005, 2006, 2013, 1053, CLOSED, *FULL}
FATAL_READING = 1236  # ER_SOURCE_FATAL_ERROR_READING_BINLOG: the text alone tells which
GONE = {2006, 2013}


def refused(source: Source, error: Exception) -> HeadraceError:
    """The typed error of a failed login or statement."""
    code, message = facts_of(error)
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


def facts_of(error: Exception) -> tuple[int, str]:
    if len(error.args) >= 2 and isinstance(error.args[0], int):
        return error.args[0], str(error.args[1])
    return 0, str(error) or type(error).__name__


def dump_error(source: Source, code: int, message: str) -> HeadraceError:
    where = f"the binlog of {source.where}"
    text = message.lower()
    if "same server_uuid" in text or "same server_id" in text or "same server id" in text:
        hint = (
            "Where that is another streamer of this pipeline, stop one of the two; else give one of them another "
            f"server_id in its pipeline file (this one has {source.server_id})"
        )
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
        return refusals.anonymous("read", where)
    if code == FATAL_READING and "position > file size" in text:
        return refusals.shorter(where, message)
    if code in (*FULL, CLOSED, 1053, 1927, 3169, 3024):  # shutting down, killed
        return ConnectionLostError("read", where, message, "The streamer connects again by itself")
    if code in LACKING:
        hint = f"GRANT SELECT, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO {source.user}, by a user that may"
        return AccessDeniedError("ask", where, message, hint)
    if code in DENIED:
        hint = f"GRANT REPLICATION SLAVE, REPLICATION CLIENT, SELECT ON *.* TO '{source.user}'@'%'"
        return AccessDeniedError("read", where, message, hint)
    return SourceRefusedError("read", where, f"error {code}: {message}", "Mend what the server names, and start again")
