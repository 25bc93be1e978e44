"""The commands by which a client asks for a binlog.

PyMySQL has no public way to send a command of replication; its `_execute_command` writes the packet.
"""

from __future__ import annotations

from struct import pack
from typing import Any

import pymysql

from contract.pipeline import Source

COM_BINLOG_DUMP, COM_REGISTER_SLAVE, COM_BINLOG_DUMP_GTID = 0x12, 0x15, 0x1E
FIRST_POSITION = 4


def heartbeat_nanoseconds(source: Source) -> int:
    return int(source.heartbeat_seconds * 1_000_000_000)


def register(connection: pymysql.Connection[Any], server_id: int) -> None:
    send(connection, COM_REGISTER_SLAVE, pack("<I", server_id) + bytes(3 + 2 + 4 + 4))
    connection._read_ok_packet()  # type: ignore[attr-defined]


def send(connection: pymysql.Connection[Any], command: int, body: bytes) -> None:
    """Behind a dump's command nothing is read by PyMySQL any more: the socket is the caller's."""
    connection._execute_command(command, body)  # type: ignore[attr-defined]
