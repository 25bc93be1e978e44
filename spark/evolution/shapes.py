"""The shape that a table of the lake has by now."""

from __future__ import annotations

from contract.schema import TableSchema
from spark.evolution.renames import as_now, renames_of, since
from spark.lake.applied import AppliedSnapshots
from spark.lake.lake import Lake
from spark.lake.stopped import Name
from spark.tables.schema import Schemas


def shape_of(lake: Lake, schemas: Schemas, name: Name) -> TableSchema | None:
    """The newest that the schema topic has of the table. It has none of a table of which nothing was changed yet: that
    of its snapshot, then. None without one, and where an earlier version of Headrace applied that."""
    if versions := schemas.all(*name):
        return versions[-1]
    applied = AppliedSnapshots(lake).tables.get(name)
    if applied is None or applied.shape is None:
        return None
    return as_now(lake.pipeline.lake.lands(applied.shape), since(renames_of(lake), applied.shape, applied.floor))
