"""The tables of which a snapshot's rows are read, or staged, and not in the lake yet."""

from __future__ import annotations

from contract.checkpoint import Place
from spark.lake.lake import Lake
from spark.lake.manifests import manifests
from spark.lake.stopped import Name
from spark.lake.unfinished import unfinished


def in_staging(lake: Lake) -> dict[Name, Place]:
    """Each with a place that is not behind the first of its reads. None is missed that becomes whole meanwhile."""
    plans = [plan for one in unfinished(lake) if (plan := one.plan)]
    found: dict[Name, Place] = {}
    for manifest in manifests(lake):
        found |= {(table.db, table.table): manifest.begun(table).place for table in manifest.tables}
    for plan in plans:
        for db, _, table in (name.partition(".") for name in plan.tables):
            found[db, table] = min(found.get((db, table), plan.place), plan.place)
    return found
