"""The commands by which a client asks for a binlog, and how it learns whether the server is a replica.

PyMySQL has no public way to send a command of replication; its `_execute_command` writes the packet.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import pack
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import pymysql

from contract.pipeline import Source
from streamer.flavors.port import Ask, Rows

COM_BINLOG_DUMP, COM_REGISTER_SLAVE, COM_BINLOG_DUMP_GTID = 0x12, 0x15, 0x1E
FIRST_POSITION = 4
NO_SUCH_STATEMENT = 1064
MAY_NOT = 1227
GHOST_HEARTBEATS = 3  # within which a server notices that a client was killed
APPLIES = ("Replica_SQL_Running", "Slave_SQL_Running")


def asking(cursor: Any) -> Ask:
    """Raises pymysql.MySQLError for what is no lack of a privilege."""

    def ask(statement: str, *values: object) -> list[tuple[Any, ...]] | None:
        try:
            cursor.execute(statement, values or None)
        except pymysql.MySQLError as error:
            if error.args[0] == MAY_NOT:
                return None
            raise
        return list(cursor.fetchall())

    return ask


def heartbeat_nanoseconds(source: Source) -> int:
    return int(source.heartbeat_seconds * 1_000_000_000)


def replica_uuid(server_id: int, reader: str = "") -> str:
    """The same for every streamer of the pipeline `reader` with this server id, so that two of one pipeline notice each
    other. MySQL ends the older of two dumps with one UUID; one of another pipeline is told apart, and not ended."""
    return str(uuid5(NAMESPACE_URL, f"headrace:{server_id}:{reader}"))


def register(connection: pymysql.Connection[Any], server_id: int, host: str = "") -> None:
    """`host`: what the server's list of replicas calls this one, where it says nothing else of it."""
    name = host.encode()
    body = pack("<IB", server_id, len(name)) + name + bytes(2 + 2 + 4 + 4)
    send(connection, COM_REGISTER_SLAVE, body)
    connection._read_ok_packet()  # type: ignore[attr-defined]


def send(connection: pymysql.Connection[Any], command: int, body: bytes) -> None:
    """Behind a dump's command nothing is read by PyMySQL any more: the socket is the caller's."""
    connection._execute_command(command, body)  # type: ignore[attr-defined]


def filters(status: Rows | None) -> tuple[Sequence[str], Sequence[str]]:
    """`binlog_do_db` and `binlog_ignore_db`, from the row that tells the end of the binlog; none where the user may not
    see it."""
    only, ignored = (status or [("", 0, "", "")])[0][2:4]
    return [name for name in only.split(",") if name], [name for name in ignored.split(",") if name]


def channels(cursor: Any, *spellings: str) -> list[dict[str, Any]] | None:
    """How the server's replication stands, a row a channel; None where the user may not know. `spellings`: the
    statement, the newest first."""
    for statement in spellings:
        try:
            cursor.execute(statement)
        except pymysql.MySQLError as error:
            if error.args[0] == MAY_NOT:
                return None
            if error.args[0] != NO_SUCH_STATEMENT or statement == spellings[-1]:
                raise
            continue
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    return None


def replicates(cursor: Any, *spellings: str) -> bool | None:
    """Whether the server applies another one's changes; else as `channels`."""
    found = channels(cursor, *spellings)
    return found if found is None else any(row.get(name) == "Yes" for row in found for name in APPLIES)
