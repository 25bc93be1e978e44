"""MariaDB: GTIDs of domains, dumps by COM_BINLOG_DUMP behind a position that the session says before.

Source: MariaDB's documentation, "Replication Protocol" and "COM_BINLOG_DUMP".
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from struct import pack
from typing import Any

import pymysql

from contract.gtid import GtidSet
from contract.gtid_mariadb import MariaGtids
from contract.names import quoted
from contract.pipeline import Source
from streamer.flavors import dump
from streamer.flavors.port import Ask, End, Facts, Rows, Setting, Version, Wanted

GTID_CAPABLE = 4  # what a replica says that reads MariaDB's GTID events; to others they are sent in disguise
SEND_STATEMENTS = 2  # flag of the request: ANNOTATE_ROWS events too
REPLICATION = re.compile(r"^GRANT .*\b(REPLICATION SLAVE|ALL PRIVILEGES)\b.* ON \*\.\*")
UNCLEAR = """
SELECT table_schema, table_name, column_name, column_type FROM information_schema.columns
WHERE data_type IN ('uuid', 'inet4', 'inet6') OR column_type IN ('binary(4)', 'binary(16)')
OR column_type LIKE '%mariadb-5.3%'
ORDER BY table_schema, table_name, ordinal_position
"""

# A foreign key needs an index, and InnoDB.
PARENTED = """
SELECT DISTINCT t.table_schema, t.table_name FROM information_schema.tables t
JOIN information_schema.statistics s ON s.table_schema = t.table_schema AND s.table_name = t.table_name
WHERE t.table_type = 'BASE TABLE' AND t.engine = 'InnoDB' ORDER BY 1, 2
"""
NAME = r"(?:[^`]|``)+"
FOREIGN_KEY = re.compile(
    rf"^ +CONSTRAINT `(?P<name>{NAME})` FOREIGN KEY \(.+?\) REFERENCES `(?:{NAME}`\.`)?(?P<parent>{NAME})` \(.+?\)"
    r" *(?P<rules>.*?(?:CASCADE|SET NULL|SET DEFAULT).*?),?$",
    re.MULTILINE,
)


def _setting(name: str, wanted: str, absent: str, reason: str, since: str = "") -> Setting:
    """It has no SET PERSIST: a restart asks its configuration again."""
    also = f"/* and {name} = {wanted} under [mysqld] in its configuration */"
    return Setting(name, wanted, absent, reason, f"SET GLOBAL {name} = '{wanted}' {also};", since)


class MariaDB:
    title = "MariaDB"
    hides_cascades = "MariaDB"
    logs_replicated = ("log_slave_updates",)
    lists_replicas = "REPLICATION MASTER ADMIN"
    replication = ("SHOW ALL REPLICAS STATUS",)
    keep = (
        "SET GLOBAL binlog_expire_logs_seconds = {seconds} "
        "/* and binlog_expire_logs_seconds = {seconds} under [mysqld] in its configuration */;"
    )
    settings = (
        _setting("binlog_format", "ROW", "MIXED", "statements instead of rows cannot be followed"),
        _setting("binlog_row_image", "FULL", "FULL", "changes would lack columns"),
        _setting("binlog_row_metadata", "FULL", "NO_LOG", "the binlog would not name the columns", "10.5"),
    )

    def owns(self, version: str) -> bool:
        return "mariadb" in version.lower()

    def facts(self, cursor: Any) -> Facts | None:
        cursor.execute("SELECT @@server_id, @@version, @@lower_case_table_names")
        server_id, version, case = cursor.fetchone()
        uuid = _identity(cursor)
        cursor.execute("SHOW MASTER STATUS")
        status = cursor.fetchone()
        if status is None:
            return None
        cursor.execute("SHOW BINARY LOGS")
        first_file = cursor.fetchall()[0][0]
        file, pos = status[:2]
        cursor.execute("SELECT BINLOG_GTID_POS(%s, 4), BINLOG_GTID_POS(%s, %s)", (first_file, file, pos))
        purged, executed = cursor.fetchone()
        if executed is None:  # it tells of no position beyond 4 GiB; what was executed since comes on top, then
            cursor.execute("SELECT @@GLOBAL.gtid_binlog_pos")
            [executed] = cursor.fetchone()
        replicates = dump.replicates(cursor, *self.replication)
        before, until = MariaGtids.parse(purged or ""), MariaGtids.parse(executed or "")
        return Facts(server_id, uuid, version, before, until, file, pos, first_file, replicates, case != 0,
                     logs_cascades=False)  # fmt: skip

    def end(self, cursor: Any) -> End | None:
        uuid = _identity(cursor)
        cursor.execute("SHOW MASTER STATUS")
        status = cursor.fetchone()
        cursor.execute("SELECT @@GLOBAL.gtid_binlog_pos")  # BINLOG_GTID_POS may read the file from its beginning
        [executed] = cursor.fetchone()
        return status and End(uuid, status[0], status[1], MariaGtids.parse(executed or ""))

    def before(self, cursor: Any, file: str) -> GtidSet | None:
        cursor.execute("SELECT BINLOG_GTID_POS(%s, 4)", (file,))
        [position] = cursor.fetchone()
        return None if position is None else MariaGtids.parse(position)

    def lacks_gtid(self, cursor: Any, file: str, pos: int) -> bool:
        return False

    def request(self, connection: pymysql.Connection[Any], source: Source, start: GtidSet, reader: str) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SET @master_heartbeat_period = %s", (dump.heartbeat_nanoseconds(source),))
            cursor.execute("SET @master_binlog_checksum = @@GLOBAL.binlog_checksum")
            cursor.execute("SET @mariadb_slave_capability = %s", (GTID_CAPABLE,))
            cursor.execute("SET @slave_connect_state = %s", (str(start),))
            # Strict: a position that the server does not have is an error, not the next best place.
            cursor.execute("SET @slave_gtid_strict_mode = 1, @slave_gtid_ignore_duplicates = 0")
        dump.register(connection, source.server_id, dump.replica_uuid(source.server_id, reader))
        flags = SEND_STATEMENTS if source.statements else 0
        dump.send(connection, dump.COM_BINLOG_DUMP, pack("<IHI", dump.FIRST_POSITION, flags, source.server_id))

    def grants(self, ask: Ask, version: Version) -> Mapping[str, Rows | None]:
        """To list the replicas takes a privilege that reading the binlog does not, so it cannot be tried."""
        found = [row for row in ask("SHOW GRANTS") or [] if REPLICATION.search(str(row[0]))]
        return {"REPLICATION SLAVE": found or None, "REPLICATION CLIENT": ask("SHOW MASTER STATUS")}

    def replicas(self, ask: Ask, version: Version) -> Rows | None:
        """The server knows no UUID of them; a streamer gives its own as the name of its host."""
        found = ask("SHOW SLAVE HOSTS")
        return None if found is None else [row[:2] for row in found]

    def replicated(self, ask: Ask, variables: Mapping[str, str], version: Version) -> bool:
        """To list its channels takes a privilege that reading the binlog does not."""
        return bool(variables.get("gtid_slave_pos"))

    def filtered(self, ask: Ask, version: Version) -> tuple[Sequence[str], Sequence[str]]:
        return dump.filters(ask("SHOW MASTER STATUS"))

    def purged(self, ask: Ask, variables: Mapping[str, str]) -> GtidSet:
        files = ask("SHOW BINARY LOGS")
        [(position,)] = (files and ask("SELECT BINLOG_GTID_POS(%s, 4)", files[0][0])) or [("",)]
        return MariaGtids.parse(position or "")

    def executed(self, ask: Ask) -> GtidSet:
        [(text,)] = ask("SELECT @@GLOBAL.gtid_binlog_pos") or [("",)]
        return MariaGtids.parse(text)

    def keeps_seconds(self, variables: Mapping[str, str]) -> float:
        return float(variables.get("binlog_expire_logs_seconds", "0"))

    def logs_cascades(self, ask: Ask, version: Version, variables: Mapping[str, str]) -> bool:
        return False

    def cascades(self, ask: Ask, wanted: Wanted) -> Rows:
        """From each table's own statement: the list of all keys is empty for a user who may only read."""
        found: list[tuple[str, ...]] = []
        for db, table in ask(PARENTED) or []:
            if wanted(db, table):
                [(_, statement)] = ask(f"SHOW CREATE TABLE {quoted(db)}.{quoted(table)}") or [("", "")]
                keys = FOREIGN_KEY.finditer(statement)
                found += [(db, table, key["name"], key["parent"], key["rules"]) for key in keys]
        return found

    def unclear(self, ask: Ask) -> Rows:
        """As streamer/protocol/unclear.py tells it."""
        return ask(UNCLEAR) or ()


def _identity(cursor: Any) -> str:
    """What tells this server from others: older servers have no uid."""
    cursor.execute("SHOW GLOBAL VARIABLES LIKE 'server_uid'")
    if found := cursor.fetchone():
        return str(found[1])
    cursor.execute("SELECT CONCAT(@@server_id, '-', @@gtid_domain_id)")
    return str(cursor.fetchone()[0])
