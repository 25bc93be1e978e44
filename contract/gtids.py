"""GTID sets of either kind of server, and what stands for them where a server has none."""

from __future__ import annotations

from contract.gtid import GtidSet
from contract.gtid_mariadb import MariaGtids
from contract.gtid_places import MARK, UpTo

KINDS: dict[str, type[GtidSet]] = {"mysql": GtidSet, "mariadb": MariaGtids}


def parse(text: str) -> GtidSet:
    """Of the kind that the text is; an empty one is as good as any to compare with. Raises ValueError."""
    if text.startswith(MARK):
        return UpTo.parse(text)
    return MariaGtids.parse(text) if text.strip() and ":" not in text else GtidSet.parse(text)
