"""A snapshot that is ahead of the lake: it ended at P1, and the lake's checkpoint has not come there. Its rows are as
fresh as the moment at which each was read, and the others as the checkpoint, so the table is as the source never was.
"""

from __future__ import annotations

from contract.checkpoint import Checkpoint
from contract.pipeline import Pipeline
from contract.status import LakeStatus, covered
from contract.steps import SNAPSHOT_TABLE, compaction
from spark.lake.applied import AppliedSnapshots
from spark.lake.lake import Lake
from spark.lake.manifests import manifests


def ahead(pipeline: Pipeline, checkpoint: Checkpoint | None, p1: str) -> str | None:
    """Why a table whose snapshot ended at `p1` is of different times in the lake of that checkpoint; None where it is
    not."""
    if covered(checkpoint, p1):
        return None
    return (
        "its snapshot is ahead of the lake's checkpoint, so its rows are of different times: they are of one again "
        f"when the lake has come to {p1}, where the snapshot ended. While the streamer runs, the next "
        f"compaction brings it there: {compaction(pipeline)}. Behind a failover to a server that never had these "
        f"transactions, {SNAPSHOT_TABLE}"
    )


def foretold(lake: Lake, last: LakeStatus) -> LakeStatus | None:
    """The last status as it is to be before the staged snapshots are applied, since who reads a table meanwhile, or
    behind a run that died, knows no other; None where that changes nothing."""
    snapshots, tables = AppliedSnapshots(lake), dict(last.tables)
    for manifest in manifests(lake):
        told = ahead(lake.pipeline, last.checkpoint, manifest.p1)
        for schema in manifest.tables if told else ():
            name = f"{schema.db}.{schema.table}"
            if lake.pipeline.changes_only(schema.db, schema.table):
                continue
            if name in tables and not snapshots.has((schema.db, schema.table), manifest.id):
                tables[name] = tables[name].model_copy(update={"ahead": told, "freshness_ms": None})
    return last.model_copy(update={"tables": tables}) if tables != last.tables else None
