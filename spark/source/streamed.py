"""Which of the pipeline's servers the streamer reads: snapshots and checks ask that one, and no other.

A checkpoint's place is in that server's binlog, so a place of another one says nothing beside it, though it has all
of the transactions.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pymysql

from contract.checkpoint import Checkpoint
from contract.pipeline import Pipeline
from spark.errors import LakeError, PassingError
from spark.failures import passing
from spark.source.source import Source

WITHOUT_GTIDS = (
    "the streamer of {} goes by file and position, for its server has no GTIDs, and without them nothing tells up to "
    "where in the binlog a query sees it. Run SET PERSIST enforce_gtid_consistency = ON; SET PERSIST gtid_mode = "
    "OFF_PERMISSIVE; SET PERSIST gtid_mode = ON_PERMISSIVE; SET PERSIST gtid_mode = ON; on the server, and when the "
    "streamer has no lag restart it: it goes by GTID then. Compaction needs none"
)


def streamed(pipeline: Pipeline, checkpoint: Checkpoint) -> Source:
    """The checkpoint's server, of source.host and source.failover; `Source.pipeline` has it alone.

    Raises LakeError where none of them is it, or it has no GTIDs, and what the server said where there is one alone.
    """
    if checkpoint.by_place:
        raise LakeError(WITHOUT_GTIDS.format(pipeline.name))
    others: list[str] = []
    failures: list[pymysql.MySQLError] = []
    for server in pipeline.source.servers():
        try:
            source = Source(pipeline.model_copy(update={"source": server}))
        except pymysql.MySQLError as error:
            failures.append(error)
            others.append(f"{server.where} cannot be asked ({error.args[-1]})")
            continue
        if source.identity == checkpoint.server_uuid:
            return source
        source.connection.close()
        others.append(f"{server.where} is {source.identity}")
    if len(failures) == len(others) == 1:
        raise failures[0]
    raise LakeError(
        f"the streamer reads the server {checkpoint.server_uuid}, and none of the servers in {pipeline.path} is it: "
        f"{'; '.join(others)}. Write that server's address in source.host, or add it to source.failover; if the "
        "streamer is about to move, run this again when it has"
    )


@contextmanager
def reading(source: Source) -> Iterator[Source]:
    """The server whose rows a snapshot reads: the replica that the pipeline file names, else the streamer's own.

    Raises LakeError where the replica cannot be asked.
    """
    address = source.pipeline.snapshot.replica
    if address is None:
        yield source
        return
    pipeline = source.pipeline.model_copy(update={"source": source.pipeline.source.at(address)})
    try:
        replica = Source(pipeline, replica=True)
    except pymysql.MySQLError as error:
        kind = PassingError if passing(error) else LakeError
        raise kind(
            f"snapshot.replica, {pipeline.source.where}, cannot be asked: {error.args[-1]}. Start it, give the user "
            f"{pipeline.source.user} its rights there, or leave snapshot.replica out of {pipeline.path}"
        ) from None
    with replica:
        yield replica
