"""A start by other rules of what is sent than the run before it: whether the lake may lack changes then.

Behind its last checkpoint a streamer sends again what it sent before, and the lake cuts what is not above the last
record of its partition. That is exact where the same changes become the same records in the same partitions. By other
rules a change may be sent for the first time, and stand below what another run sent behind it.
"""

from __future__ import annotations

from collections.abc import Callable

import structlog

from contract import names, steps
from contract.checkpoint import Checkpoint, Place
from contract.gtid import GtidSet
from contract.pipeline import Pipeline

log = structlog.get_logger("streamer")
MEANING = "The lake takes a change that was left out before, or went elsewhere, for one that it has."
ELSEWHERE = "What the lake has not read of the topics of before, it may never read."
WAIT = "When the stream runs, {}; until then the lake tells of no snapshot and no freshness."


def marked(
    pipeline: Pipeline, checkpoint: Checkpoint, begin: Checkpoint, sends: str, end: Place, sent: Callable[[], GtidSet]
) -> Checkpoint:
    """`begin`, with every table counting as not snapshotted up to `end` where that may have happened.

    `checkpoint`: as it was read. `sends`: the fingerprint of what is sent now. `end`: of the server's binlog, with the
    epoch of `begin`. `sent`: asks for the transactions of which something stands in Kafka behind the checkpoint and
    is visible: of a run by Kafka transactions nothing, but it may have begun where one without them was killed.
    """
    if checkpoint.sends == sends or not pipeline.feeds_lake:
        return begin
    if not (again := sent()):
        return begin
    log.warning(
        "by other rules than before is sent what was sent in part",
        transactions=str(again),
        meaning=MEANING,
        next_step=WAIT.format(steps.snapshot(pipeline)),
    )
    return begin.without_snapshots(end)


def renamed(
    pipeline: Pipeline, checkpoint: Checkpoint, begin: Checkpoint, sends: str, end: Place, used: Callable[[], list[str]]
) -> Checkpoint:
    """The same where a version that did not say how topics were named sent changes, and all topics that the file names
    are empty: kafka.topic was edited, and nobody knows from what. `used`: asks for the topics that hold, or held,
    something; the rest as above."""
    if checkpoint.templates or not checkpoint.events or checkpoint.sends == sends or not pipeline.feeds_lake:
        return begin
    if names.event_topics(pipeline, used()):
        return begin
    log.warning(
        "changes were sent into topics that the file does not name",
        meaning=ELSEWHERE,
        next_step=WAIT.format(steps.snapshot(pipeline)),
    )
    return begin.without_snapshots(end)
