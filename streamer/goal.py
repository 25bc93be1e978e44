"""Where a oneshot run ends: behind every transaction that the server had when the run began."""

from __future__ import annotations

from contract.gtid import GtidSet
from contract.gtid_places import UpTo
from streamer.delivery_errors import WrongServerError
from streamer.flavors.port import Facts
from streamer.protocol.model import Commit


class Reached(Exception):  # noqa: N818  a way out, no error
    """The transaction that ended just now was the last one wanted."""


class Goal:
    """`wanted`: the transactions of the run and of those before it. `done`: those that were taken in, to be added to
    by `passed`."""

    def __init__(self, wanted: GtidSet, done: GtidSet) -> None:
        self.wanted = wanted
        self._done = done.copy()

    @property
    def reached(self) -> bool:
        return self._done.issuperset(self.wanted)

    def passed(self, end: Commit) -> None:
        """A transaction was taken in as a whole. Raises Reached where it was the last one wanted."""
        if isinstance(self.wanted, UpTo):
            self.rested(end.file, end.pos)
        elif not self._done.contains(end.gtid):  # one that is read again would set a MariaDB position back
            self._done.add(end.gtid)
        if self.reached:
            raise Reached

    def rested(self, file: str, pos: int) -> None:
        """Nothing stands before that place any more that was not taken in, as far as the server gave it. Of places: a
        binlog may end behind a rotation, with no transaction there. Raises Reached."""
        if isinstance(self.wanted, UpTo) and file:
            self._done = self._done.union(UpTo.place(file, pos))
            if self.reached:
                raise Reached

    def elsewhere(self, facts: Facts, where: str) -> None:
        """Another server goes on. Raises WrongServerError where it never gets what is still wanted."""
        missing = self.wanted.subtract(facts.executed)
        if missing and facts.replicates is False:
            raise WrongServerError(
                "going on with the oneshot run from",
                where,
                f"it lacks transactions that the server before it had when the run began: {missing}",
                "What it has was delivered and checkpointed as far as it was read. Run it again where this server is "
                "the source from now on: that run ends at this server's own position.",
            )
