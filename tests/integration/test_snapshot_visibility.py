"""A transaction that stands in the binlog, where the streamer reads it, and is not visible yet is not lost."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from contract.gtid import GtidSet
from spark.source.source import Source
from stack.database import Database
from streamer.protocol.model import RowsBatch
from tests.integration.decoding import executed, items, run, source
from tests.integration.semi_sync import OPTIONS, held
from tests.integration.staging import Snapshots, pipeline, streamed

Another = Callable[..., Database]
ROW = '{"id":7,"v":"not yet"}'


@pytest.fixture
def waiting(another: Another, server: Database) -> Database:
    """A server that can wait for a replica that it does not have."""
    made = another(OPTIONS[server.flavor])
    run(made, "CREATE DATABASE unseen", "CREATE TABLE unseen.t (id int PRIMARY KEY, v varchar(20))",
        "INSERT INTO unseen.t VALUES (1, 'seen')")  # fmt: skip
    return made


def following(server: Database, begin: GtidSet) -> GtidSet:
    """With the next transaction."""
    return source(server).gtids(re.sub(r"\d+$", lambda n: str(int(n[0]) + 1), str(begin)))


@pytest.mark.soak_on("mariadb")
@pytest.mark.lacks("mysql80", "its package has no semi-synchronous plugin")
def test_what_is_in_the_binlog_and_not_visible_is_waited_for(
    spark: SparkSession, waiting: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshots = Snapshots(spark, waiting, pipeline(waiting, tmp_path, "unseen.*"))
    begin = executed(waiting)
    end = following(waiting, begin)
    with held(waiting, "INSERT INTO unseen.t VALUES (7, 'not yet')") as release:
        # The streamer has it, and could release it: then it is in P0, and no change behind P0 brings the row.
        sent = [row for item in items(waiting, begin, end) if isinstance(item, RowsBatch) for row in item.rows]
        assert [bytes(row).decode() for row in sent] == [ROW]
        p0 = streamed(waiting, str(end))
        with monkeypatch.context() as wrong:  # the rule that loses it
            wrong.setattr(Source, "wait_for", lambda *_: None)
            assert ROW not in snapshots.rows(snapshots.run(p0), "t")
        done = threading.Event()
        threading.Timer(1.5, lambda: (done.set(), release())).start()
        began = time.monotonic()
        manifest = snapshots.run(p0)
        assert done.is_set(), f"it read {time.monotonic() - began:.1f} s after its start, before the row was visible"
    assert snapshots.rows(manifest, "t") == ['{"id":1,"v":"seen"}', ROW]


@pytest.mark.soak_on("mysql")
@pytest.mark.lacks("mariadb", "it has no delay there")
def test_a_commit_that_waits_for_others_to_join_it_is_waited_for(another: Another, tmp_path: Path) -> None:
    """Without a plugin: where not each commit is synced, the binlog is sent before the delay, which is a second."""
    server = another(["sync_binlog=0", "binlog_group_commit_sync_delay=1000000"])
    run(server, "CREATE DATABASE unseen", "CREATE TABLE unseen.t (id int PRIMARY KEY, v varchar(20))")
    count = "SELECT COUNT(*) FROM unseen.t"
    with (
        Source(pipeline(server, tmp_path, "unseen.*")) as waits,
        Source(waits.pipeline) as looks,
        ThreadPoolExecutor(1) as pool,
    ):
        for n in range(1, 6):  # a busy machine may look when the second is over
            begin = executed(server)
            end = following(server, begin)
            commit = pool.submit(run, server, f"INSERT INTO unseen.t VALUES ({n}, 'not yet')")
            sent = [row for item in items(server, begin, end) if isinstance(item, RowsBatch) for row in item.rows]
            assert [bytes(row).decode() for row in sent] == [ROW.replace("7", str(n))]
            early = looks.value(count) < n  # what a read without the wait loses
            waits.wait_for(str(end), 30)
            assert looks.value(count) == n
            commit.result()
            if early:
                return
    pytest.fail("no row was in the binlog before it was visible, so nothing shows that the wait is needed")
