"""MySQL, and what speaks its protocol: GTIDs by `gtid_mode`, dumps by COM_BINLOG_DUMP_GTID."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from struct import pack
from typing import Any

import pymysql

from contract.gtid import GtidSet
from contract.gtid_places import UpTo
from contract.pipeline import Source
from streamer.flavors import dump, replicated_keys
from streamer.flavors.port import Ask, End, Facts, Rows, Setting, Version, Wanted, numbers
from streamer.protocol.gtid_set import encode
from streamer.protocol.position import WRAP
from streamer.protocol.server import CASCADES_LOGGED

IDENTITY = (
    "SELECT @@server_id, @@server_uuid, @@version, @@global.gtid_purged, @@lower_case_table_names, "
    "@@global.gtid_owned, @@global.gtid_mode"
)
OWNER = re.compile(r"#\d+")  # the thread, behind each GTID that is owned
HEARTBEAT_V2 = 2  # flag: heartbeats tell 64-bit positions
NO_TRANSACTION = ("Format_desc", "Previous_gtids", "Rotate", "Stop")  # as SHOW BINLOG EVENTS calls events
ANONYMOUS = "Anonymous_Gtid"
NATIVE = "innodb_native_foreign_keys"
NO_SUCH_FILE = 1220  # ER_ERROR_WHEN_EXECUTING_COMMAND

CASCADES = """
SELECT constraint_schema, table_name, constraint_name, referenced_table_name,
CONCAT('ON UPDATE ', update_rule, ', ON DELETE ', delete_rule)
FROM information_schema.referential_constraints
WHERE update_rule IN ('CASCADE', 'SET NULL', 'SET DEFAULT')
OR delete_rule IN ('CASCADE', 'SET NULL', 'SET DEFAULT')
ORDER BY 1, 2, 3
"""


class MySQL:
    title = "MySQL"
    hides_cascades = "MySQL before 9.6 or with innodb_native_foreign_keys=ON, or as a replica of such a server,"
    logs_replicated = ("log_replica_updates", "log_slave_updates")  # the second before 8.0.26
    lists_replicas = "REPLICATION SLAVE"
    replication = ("SHOW REPLICA STATUS", "SHOW SLAVE STATUS")  # the second before 8.0.22
    keep = "SET PERSIST binlog_expire_logs_seconds = {seconds};"
    settings = (
        Setting(
            "binlog_format",
            "ROW",
            "ROW",
            "statements instead of rows cannot be followed",
            "SET PERSIST binlog_format = 'ROW';",
        ),
        Setting(
            "binlog_row_image",
            "FULL",
            "FULL",
            "changes would lack columns",
            "SET PERSIST binlog_row_image = 'FULL';",
        ),
        Setting(
            "binlog_row_metadata",
            "FULL",
            "MINIMAL",
            "the binlog would not name the columns",
            "SET PERSIST binlog_row_metadata = 'FULL';",
            "8.0.1",
        ),
        Setting(
            "gtid_mode",
            "ON",
            "OFF",
            "the stream goes by file and position, on this server alone: no replica can take its place, and the lake "
            "takes no snapshot and proves nothing",
            "SET PERSIST enforce_gtid_consistency = ON; SET PERSIST gtid_mode = OFF_PERMISSIVE; "
            "SET PERSIST gtid_mode = ON_PERMISSIVE; SET PERSIST gtid_mode = ON;",
            level="warning",
        ),
    )

    def owns(self, version: str) -> bool:
        return "mariadb" not in version.lower()

    def facts(self, cursor: Any) -> Facts | None:
        cursor.execute(IDENTITY)
        server_id, server_uuid, version, purged, case, owned, mode = cursor.fetchone()  # before what it has executed
        status = _log_status(cursor)
        if status is None:  # no binlog; to ask for its files would be an error
            return None
        file, pos, *_, executed = status
        cursor.execute("SHOW BINARY LOGS")
        files = cursor.fetchall()
        gtids = GtidSet.parse
        replicates = dump.replicates(cursor, *self.replication)
        cursor.execute("SHOW GLOBAL VARIABLES LIKE %s", (NATIVE,))
        logs_cascades = self.logs_cascades(dump.asking(cursor), numbers(version), dict(cursor.fetchall()))
        found = Facts(
            server_id, server_uuid, version, gtids(purged), gtids(executed), file, pos, files[0][0], replicates,
            case != 0, gtids(OWNER.sub("", owned)), logs_cascades=logs_cascades,
        )  # fmt: skip
        return found if mode == "ON" else found.by_place()

    def end(self, cursor: Any) -> End | None:
        cursor.execute("SELECT @@server_uuid")
        [server_uuid] = cursor.fetchone()
        status = _log_status(cursor)
        return status and End(server_uuid, status[0], status[1], GtidSet.parse(status[-1]))

    def before(self, cursor: Any, file: str) -> GtidSet | None:
        try:
            cursor.execute("SHOW BINLOG EVENTS IN %s LIMIT 5", (file,))
        except pymysql.MySQLError as error:
            if error.args[0] in (NO_SUCH_FILE, dump.MAY_NOT):  # what a user lacks is preflight's to say
                return None
            raise
        return next((GtidSet.parse(row[5]) for row in cursor.fetchall() if row[2] == "Previous_gtids"), GtidSet())

    def lacks_gtid(self, cursor: Any, file: str, pos: int) -> bool:
        cursor.execute("SHOW BINARY LOGS")
        files = [row[0] for row in cursor.fetchall()]
        for name in files[files.index(file) :] if file in files else ():
            try:
                cursor.execute("SHOW BINLOG EVENTS IN %s FROM %s LIMIT 5", (name, pos))
            except pymysql.MySQLError as error:
                # Or no such place: the dump has its own words for it; what a user lacks is preflight's to say.
                if error.args[0] in (NO_SUCH_FILE, dump.MAY_NOT):
                    return False
                raise
            kinds = [row[2] for row in cursor.fetchall() if row[2] not in NO_TRANSACTION]
            if kinds:
                return bool(kinds[0] == ANONYMOUS)
            pos = dump.FIRST_POSITION
        return False

    def request(self, connection: pymysql.Connection[Any], source: Source, start: GtidSet, reader: str) -> None:
        server_id, heartbeat = source.server_id, dump.heartbeat_nanoseconds(source)
        with connection.cursor() as cursor:
            cursor.execute("SET @master_heartbeat_period = %s, @source_heartbeat_period = %s", (heartbeat, heartbeat))
            cursor.execute(
                "SET @master_binlog_checksum = @@GLOBAL.binlog_checksum, "
                "@source_binlog_checksum = @@GLOBAL.binlog_checksum"
            )
            cursor.execute("SET @slave_uuid = %s, @replica_uuid = %s", (dump.replica_uuid(server_id, reader),) * 2)
        dump.register(connection, server_id)
        if isinstance(start, UpTo):
            file, pos = start.end
            place = pos if pos < WRAP else dump.FIRST_POSITION
            dump.send(connection, dump.COM_BINLOG_DUMP, pack("<IHI", place, HEARTBEAT_V2, server_id) + file.encode())
            return
        gtids = encode(start)
        head = pack("<HIIQI", HEARTBEAT_V2, server_id, 0, dump.FIRST_POSITION, len(gtids))
        dump.send(connection, dump.COM_BINLOG_DUMP_GTID, head + gtids)

    def grants(self, ask: Ask, version: Version) -> Mapping[str, Rows | None]:
        return {"REPLICATION SLAVE": self.replicas(ask, version), "REPLICATION CLIENT": self._status(ask, version)}

    def _status(self, ask: Ask, version: Version) -> Rows | None:
        return ask("SHOW BINARY LOG STATUS" if version >= (8, 2) else "SHOW MASTER STATUS")

    def replicas(self, ask: Ask, version: Version) -> Rows | None:
        return ask("SHOW REPLICAS" if version >= (8, 0, 22) else "SHOW SLAVE HOSTS")

    def replicated(self, ask: Ask, variables: Mapping[str, str], version: Version) -> bool:
        """A channel that is set up says so, running or not."""
        return bool(ask("SHOW REPLICA STATUS" if version >= (8, 0, 22) else "SHOW SLAVE STATUS"))

    def filtered(self, ask: Ask, version: Version) -> tuple[Sequence[str], Sequence[str]]:
        return dump.filters(self._status(ask, version))

    def purged(self, ask: Ask, variables: Mapping[str, str]) -> GtidSet:
        return GtidSet.parse(variables.get("gtid_purged", ""))

    def executed(self, ask: Ask) -> GtidSet:
        [(text,)] = ask("SELECT @@GLOBAL.gtid_executed") or [("",)]
        return GtidSet.parse(text)

    def keeps_seconds(self, variables: Mapping[str, str]) -> float:
        if variables.get("binlog_expire_logs_auto_purge") == "OFF":
            return 0
        days = float(variables.get("expire_logs_days", "0"))  # before 8.4; where it is set the other is 0
        return float(variables.get("binlog_expire_logs_seconds", "0")) or days * 86_400

    def logs_cascades(self, ask: Ask, version: Version, variables: Mapping[str, str]) -> bool:
        """As long as the server's SQL layer does them, and not InnoDB as before; of a replica, its source's."""
        by_itself = version >= CASCADES_LOGGED and variables.get(NATIVE, "OFF") == "OFF"
        return by_itself and not replicated_keys.lacks_cascades(ask)

    def cascades(self, ask: Ask, wanted: Wanted) -> Rows:
        return [row for row in ask(CASCADES) or [] if wanted(row[0], row[1])]

    def unclear(self, ask: Ask) -> Rows:
        return ()


def _log_status(cursor: Any) -> Any:
    try:
        cursor.execute("SHOW BINARY LOG STATUS")
    except pymysql.ProgrammingError as error:
        if error.args[0] != dump.NO_SUCH_STATEMENT:
            raise
        cursor.execute("SHOW MASTER STATUS")  # servers before 8.2
    return cursor.fetchone()
