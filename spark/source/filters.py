"""Of a table that a replica leaves out by its filters it lacks rows, and a snapshot would take them out of the lake, as
if the source had removed them."""

from __future__ import annotations

from contract.replica_filters import left_out
from spark.errors import TableStoppedError
from spark.source.source import Source


def refuse_filtered(replica: Source, source: Source, db: str, table: str) -> None:
    """Raises TableStoppedError where the replica may lack rows that the source has."""
    pipeline, where = source.pipeline, replica.pipeline.source.where
    status = replica.channels(f"leave snapshot.replica out of {pipeline.path}: its filters are to be known")
    source.awake()
    if found := left_out(status, source.value("SELECT @@server_id"), db, table):
        raise TableStoppedError(
            f"snapshot.replica, {where}, leaves changes of {db}.{table} out ({found}), so that rows which it lacks "
            f"would leave the lake: name a replica in {pipeline.path} that has all of them, or leave "
            "snapshot.replica out"
        )
