"""Binlog event types, by number, and what happens to each.

Source: MySQL's source documentation, `mysql::binlog::event::Log_event_type`, and MariaDB's, "Binlog event types", whose
own ones have numbers that MySQL does not use.
"""

from __future__ import annotations

from struct import Struct

# One packet that holds one event: packet length and sequence number, the OK byte, then the event's header
# of timestamp (s), type, server id, size, end position (low 32 bits) and flags.
FRAME = Struct("<IBIBIIIH")
PACKET = 5  # bytes before the event: 4 of the packet's header, the OK byte
HEADER = 19
TIMESTAMP, TYPE, SERVER_ID, SIZE, POSITION, FLAGS = 2, 3, 4, 5, 6, 7  # places in FRAME's tuple

QUERY = 2
STOP = 3
ROTATE = 4
INTVAR = 5
RAND = 13
USER_VAR = 14
FORMAT_DESCRIPTION = 15
XID = 16
BEGIN_LOAD_QUERY = 17
EXECUTE_LOAD_QUERY = 18
TABLE_MAP = 19
WRITE_ROWS_V1, UPDATE_ROWS_V1, DELETE_ROWS_V1 = 23, 24, 25
INCIDENT = 26
HEARTBEAT = 27
IGNORABLE = 28
ROWS_QUERY = 29
WRITE_ROWS, UPDATE_ROWS, DELETE_ROWS = 30, 31, 32
GTID = 33
ANONYMOUS_GTID = 34
PREVIOUS_GTIDS = 35
TRANSACTION_CONTEXT = 36
VIEW_CHANGE = 37
XA_PREPARE = 38
PARTIAL_UPDATE_ROWS = 39
TRANSACTION_PAYLOAD = 40
HEARTBEAT_V2 = 41
GTID_TAGGED = 42
ANNOTATE_ROWS = 160
BINLOG_CHECKPOINT = 161
MARIADB_GTID = 162
GTID_LIST = 163
START_ENCRYPTION = 164
QUERY_COMPRESSED = 165
WRITE_ROWS_COMPRESSED_V1, UPDATE_ROWS_COMPRESSED_V1, DELETE_ROWS_COMPRESSED_V1 = 166, 167, 168
WRITE_ROWS_COMPRESSED, UPDATE_ROWS_COMPRESSED, DELETE_ROWS_COMPRESSED = 169, 170, 171

NAMES = {value: name for name, value in list(globals().items()) if name.isupper() and isinstance(value, int)}
NAMES |= {number: NAMES[number] for number in (2, 3, 4, 5)}
# Without these a replay is the same: they carry no data, only advice to other readers.
NEUTRAL = (
    STOP, INTVAR, RAND, USER_VAR, IGNORABLE, ROWS_QUERY, PREVIOUS_GTIDS, TRANSACTION_CONTEXT, VIEW_CHANGE,
    ANNOTATE_ROWS, BINLOG_CHECKPOINT, GTID_LIST,
)  # fmt: skip
MAY_BE_IGNORED = 0x80  # flag: a reader that does not know this event's type may skip it
OF_A_THREAD = 0x04  # flag: the statement used a table that its session alone sees
ARTIFICIAL = 0x20  # flag: made by the server for this connection, not in the file


def name_of(kind: int) -> str:
    return NAMES.get(kind, f"type {kind}")
