"""What the lake's snapshots need of the replica that the pipeline file names: that it answers, replicates, and leaves
out no change of a table. The streamer does not read it."""

from __future__ import annotations

from collections.abc import Iterator

from contract.pipeline import Pipeline
from contract.replica_filters import left_out
from streamer import source
from streamer.preflight.findings import Result

GRANT = {"mysql": "REPLICATION CLIENT", "mariadb": "SLAVE MONITOR"}


def replica(pipeline: Pipeline, chosen: list[tuple[str, str]]) -> Iterator[Result]:
    """Nothing where the file names none. Raises as source.facts."""
    if not pipeline.feeds_lake or pipeline.snapshot.replica is None:
        return
    there = pipeline.source.at(pipeline.snapshot.replica)
    channels = source.channels(there)
    if channels is None:
        what = f"{there.where} does not tell {there.user} how its replication stands, and a snapshot is to know"
        yield Result("error", "replica", what, f"GRANT {GRANT[there.flavor]} ON *.* TO {there.user};")
        return
    if not channels:
        what = f"{there.where} replicates from no server, and a snapshot would wait for changes that never come"
        yield Result("error", "replica", what, "Name another in snapshot.replica, or leave it out.")
        return
    server_id = source.facts(pipeline.source).server_id
    rows = [name for name in chosen if not pipeline.changes_only(*name)]
    lacking = [f"{db}.{table} ({found})" for db, table in rows if (found := left_out(channels, server_id, db, table))]
    if lacking:
        what = f"{there.where} leaves changes out, so that no snapshot reads there {', '.join(lacking)}"
        yield Result("error", "replica", what, "Name a replica that has all of them, or leave snapshot.replica out.")
        return
    yield Result("ok", "replica", f"{there.where} replicates, and leaves no table out")
