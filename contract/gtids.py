"""GTID sets of either kind of server."""

from __future__ import annotations

from contract.gtid import GtidSet
from contract.gtid_mariadb import MariaGtids

KINDS: dict[str, type[GtidSet]] = {"mysql": GtidSet, "mariadb": MariaGtids}


def parse(text: str) -> GtidSet:
    """Of the kind that the text is; an empty one is as good as any to compare with. Raises ValueError."""
    return MariaGtids.parse(text) if text.strip() and ":" not in text else GtidSet.parse(text)
