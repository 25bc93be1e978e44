"""Whether a table may have been defined anew between a place in MariaDB's binlog and what the server has by now.

No clock tells: a session sets its events' times as it likes, and a second holds many statements. So the binlog itself
is read from the place on, by a connection of its own, for its statements alone.
"""

from __future__ import annotations

from collections.abc import Callable

from contract.gtid import GtidSet
from contract.pipeline import Source
from streamer.connection import BinlogConnection
from streamer.protocol import events as ev
from streamer.protocol import mariadb
from streamer.protocol.packets import Event, Packets, ServerAnswerError
from streamer.protocol.query import query

NO_REPLICA = 0  # the server id of a reader that is none: it takes no other one's place
Seen = Callable[[str, str, str], bool]  # (database of the session, statement, GTID) -> whether it is looked for


def any_statement(source: Source, behind: GtidSet, to: GtidSet, looked_for: Seen) -> bool:
    """Whether one that is looked for stands behind the transactions of `behind` and not behind those of `to`. Raises
    HeadraceError where the binlog cannot be read."""
    read = behind.copy()
    if read.issuperset(to):
        return False
    connection = BinlogConnection(source.model_copy(update={"server_id": NO_REPLICA, "statements": False}), behind)
    packets, gtid = Packets(), ""
    try:
        for chunk in connection.chunks():
            for event in packets.feed(chunk):
                kind, (d, o, _, header) = event[3][ev.TYPE], event
                if kind == ev.MARIADB_GTID:
                    if gtid:
                        read.add(gtid)
                        if read.issuperset(to):
                            return False
                    gtid = mariadb.gtid(d, o, header[ev.SERVER_ID])[0]
                elif kind in (ev.QUERY, ev.QUERY_COMPRESSED) and looked_for(*_statement(event), gtid):
                    return True
            if packets.ended or (not chunk and _whole(read, gtid, to)):
                return False
    except ServerAnswerError as error:
        raise connection.answered(error) from None
    finally:
        connection.close()
    raise AssertionError("a dump ends by its end or an error")


def _whole(read: GtidSet, gtid: str, to: GtidSet) -> bool:
    """The server has nothing more to send: the last transaction has come to its end, too."""
    if gtid:
        read.add(gtid)
    return read.issuperset(to)


def _statement(event: Event) -> tuple[str, str]:
    d, o, end, header = event
    _, db, statement = query(d, o, end)
    if header[ev.TYPE] == ev.QUERY_COMPRESSED:
        statement = mariadb.plain(statement, 0, len(statement))
    return db.decode(errors="replace"), statement.decode(errors="replace")
