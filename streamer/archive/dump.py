"""A server's binlog by file and position, through all later files: every event as it stands in the file.

Raises the typed errors of `connection`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from struct import pack
from typing import Any

import pymysql

from contract.pipeline import Source
from streamer.connection import BinlogConnection
from streamer.errors import ServerIdInUseError
from streamer.flavors import dump
from streamer.flavors.dump import replica_uuid
from streamer.flavors.port import Facts
from streamer.patience import RETRY_SECONDS
from streamer.source import readers

ENDS = 1  # flag: the dump ends at the end of the last file
ALL_EVENTS = 2  # flag: MariaDB leaves out no event; to MySQL it says how heartbeats look
SETTINGS = (
    "SET @master_heartbeat_period = {heartbeat}, @source_heartbeat_period = {heartbeat}, "
    "@master_binlog_checksum = @@GLOBAL.binlog_checksum, @source_binlog_checksum = @@GLOBAL.binlog_checksum, "
    "@slave_uuid = '{uuid}', @replica_uuid = '{uuid}', @mariadb_slave_capability = 4"
)


class FileDump(BinlogConnection):
    """`until_now`: it ends at the end of the last file, and else never."""

    def __init__(self, source: Source, file: str, position: int, until_now: bool) -> None:
        super().__init__(source, source.gtids(""))
        self._place = file, position
        self._flags = ALL_EVENTS | (ENDS if until_now else 0)

    def request(self, connection: pymysql.Connection[Any]) -> None:
        source = self._source
        uuid = replica_uuid(source.server_id)
        with connection.cursor() as cursor:
            cursor.execute(SETTINGS.format(heartbeat=dump.heartbeat_nanoseconds(source), uuid=uuid))
        dump.register(connection, source.server_id, uuid)
        file, position = self._place
        body = pack("<IHI", position, self._flags, source.server_id) + file.encode()
        dump.send(connection, dump.COM_BINLOG_DUMP, body)


def refuse_taken_id(source: Source, server: Facts, wait: Callable[[float], bool]) -> None:
    """A reader that was killed is still known to the server for some heartbeats: these are
    waited for; `wait` sleeps, and tells whether to stop. MariaDB lists its readers to users alone that have REPLICATION
    MASTER ADMIN; without it the older of two readers is ended. Raises ServerIdInUseError, and as `connection`."""
    until = time.monotonic() + dump.GHOST_HEARTBEATS * source.heartbeat_seconds
    own = server.server_id == source.server_id
    while own or any(source.server_id == number for number, _ in readers(source, server.version)):
        if own or time.monotonic() > until:
            who = "the server itself has" if own else "another client reads under"
            hint = "Give archive.server_id in the pipeline file a number that nothing else has"
            where = f"the binlog of {source.where}"
            raise ServerIdInUseError("read", where, f"{who} the server id {source.server_id}", hint)
        if wait(RETRY_SECONDS):
            return
