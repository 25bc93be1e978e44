"""Whether a binlog from which nothing comes is still the server's own.

A server that is reset (RESET BINARY LOGS AND GTIDS, RESET MASTER) goes on in a new binlog, and a dump that is open may
wait in the old one for ever: heartbeats come, changes do not. So while nothing comes the server is asked where its
binlog ends, in a thread of its own, and that is held against what was read. A server that is merely ahead is no sign:
what it has more may be on its way.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from contract.gtid import GtidSet
from contract.gtid_mariadb import MariaGtids
from contract.gtid_places import UpTo
from contract.pipeline import Source
from contract.sequence import file_number
from streamer.errors import ConnectionLostError, HeadraceError
from streamer.flavors.port import End, Facts

EVERY_SECONDS = 10.0  # at most; a source with short heartbeats is asked sooner
IN_VAIN = 32  # times as long at most, where a new connection brought nothing

Place = tuple[str, int]  # binlog file, 64-bit position


class Resting:
    """Of one stream, over all its connections. `ask` may wait, and raise HeadraceError."""

    def __init__(self, ask: Callable[[Source], End | None]) -> None:
        self._ask = ask
        self._source: Source | None = None  # none before the first connection
        self._in_vain = 1

    def connected(self, source: Source, facts: Facts, now: float) -> None:
        """A connection begins. `now`: monotonic seconds."""
        self._source, self._uuid, self._executed = source, facts.server_uuid, facts.executed
        self._every = min(EVERY_SECONDS, 2 * source.heartbeat_seconds)
        self._question: _Question | None = None
        self._ahead: tuple[Place, GtidSet] | None = None  # what the server had beyond that place when it was last asked
        self._due = now + self._every * self._in_vain

    def look(self, now: float, place: Place, taken: Callable[[], GtidSet]) -> None:
        """To be called while nothing comes, between two transactions. `place`: up to where was read; `taken`: the whole
        transactions. Raises ConnectionLostError where the server has another binlog by now."""
        if self._source is None or not place[0]:
            return
        if self._question is None:
            if now >= self._due:
                self._question = _Question(self._ask, self._source, place)
            return
        if self._question.open:
            return
        asked, end = self._question.place, self._question.answer
        self._question, self._due = None, now + self._every * self._in_vain
        if end is not None and isinstance(self._executed, UpTo):
            end = end.by_place()
        if end is not None and end.server_uuid == self._uuid:  # another one answers behind a proxy: it tells nothing
            self._refuse_less(end, asked)
            self._refuse_kept_back(end, place, taken())

    def _refuse_less(self, end: End, asked: Place) -> None:
        """The server's own answers never go back, but for the last number of a domain of MariaDB's. What was read may
        be ahead of what is executed there: a commit waits for its replicas (semi-synchronous replication)."""
        if (file_number(end.file), end.pos) < (file_number(asked[0]), asked[1]):
            raise self._other(f"it ends at {end.file}:{end.pos} now, though {asked[0]}:{asked[1]} was read")
        lost = self._executed.subtract(end.executed)
        if lost and not isinstance(lost, MariaGtids):
            raise self._other(f"it no longer has {lost}")
        self._executed = end.executed

    def _refuse_kept_back(self, end: End, place: Place, taken: GtidSet) -> None:
        """What was there when the server was last asked has not come, nor anything else."""
        before, self._ahead = self._ahead, None
        if (end.file, end.pos) == place or not end.executed.subtract(taken):
            self._in_vain = 1
            return
        self._ahead = place, end.executed
        if before is not None and before[0] == place and (missing := before[1].subtract(taken)):
            self._in_vain = min(2 * self._in_vain, IN_VAIN)
            raise self._other(f"it has {missing}, which did not come")

    def _other(self, told: str) -> ConnectionLostError:
        assert self._source is not None
        cause = f"the server's binlog seems to be another one than the one that is open (RESET?): {told}"
        return ConnectionLostError(
            "read", f"the binlog of {self._source.where}", cause, "The streamer connects again by itself"
        )


class _Question:
    """`place`: up to where was read when it was asked. `answer`: once it is no longer `open`; None where there was
    none: that the server is away, the dump itself tells."""

    def __init__(self, ask: Callable[[Source], End | None], source: Source, place: Place) -> None:
        self.place = place
        self.answer: End | None = None
        self._thread = threading.Thread(target=self._run, args=(ask, source), name="binlog-end", daemon=True)
        self._thread.start()

    @property
    def open(self) -> bool:
        return self._thread.is_alive()

    def _run(self, ask: Callable[[Source], End | None], source: Source) -> None:
        try:
            self.answer = ask(source)
        except HeadraceError:
            return
