"""Rows read from a replica, as soon as it has what the streamer had sent; and waits for a server that is busy."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pymysql
import pytest
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from spark.errors import LakeError
from spark.failures import message_of
from spark.snapshot.load import Load
from spark.snapshot.snapshot import Staging
from spark.source.row_texts import rows_of
from spark.source.source import Source
from spark.source.streamed import reading
from stack.database import Database
from stack.mysql import MySQL
from stack.ports import free_port
from streamer.preflight.replica import replica
from streamer.source import tables
from tests.integration import failover
from tests.integration.decoding import HOST, executed, run
from tests.integration.proxy import Proxy
from tests.integration.staging import Snapshots, pipeline
from tests.integration.test_failover import share_password

Another = Callable[..., Database]


@pytest.mark.soak_on("mysql80", "mariadb")
@pytest.mark.parametrize("server", ["mysql", "mysql80", "mariadb"], indirect=True)
def test_rows_are_read_from_the_replica_once_it_has_p0(
    spark: SparkSession, server: Database, another: Another, tmp_path: Path
) -> None:
    first, second = (another(failover.options(server.flavor), server_id=n) for n in (1, 2))
    failover.replicate(first, second)
    share_password(first, second)
    if server.flavor == "mariadb":
        run(first, "GRANT SLAVE MONITOR ON *.* TO headrace")
    run(first, "CREATE DATABASE read_there", "CREATE TABLE read_there.t (id int PRIMARY KEY)")
    failover.caught_up(second, executed(first))
    word = failover.replica(second)
    run(second, f"STOP {word} SQL_THREAD")
    run(first, "INSERT INTO read_there.t VALUES (1), (2)")

    asked = pipeline(first, tmp_path, "read_there.*", replica=f"{HOST}:{second.port}", max_replica_lag_seconds=600.0)
    snapshots = Snapshots(spark, first, asked)
    started = threading.Event()
    threading.Timer(1.5, lambda: (started.set(), run(second, f"START {word} SQL_THREAD"))).start()
    with Source(asked) as source, reading(source) as reader:
        assert reader.connection.port == second.port
        manifest = snapshots.run(reader=reader)
    assert started.is_set()
    assert snapshots.rows(manifest, "t") == ['{"id":1}', '{"id":2}']
    run(second, f"STOP {word}")
    with Source(asked) as source, reading(source) as reader:
        assert Load(asked.snapshot, reader)._busy() == f"{HOST}:{second.port} does not replicate"
        run(first, "CREATE TABLE read_there.late (id int PRIMARY KEY)")
        places: Any = SimpleNamespace(job="the snapshot")
        staging = Staging(spark, asked, snapshots.lake, source, places, reader, snapshots.told.append)
        assert [one.schema.table for one in staging.planned(source.tables(), named=False)] == ["t"]
    [told] = staging.refused.values()
    assert told.startswith(
        f"snapshot.replica, {HOST}:{second.port}, does not show read_there.late, which the source has"
    )
    assert staging.gone == set(), "of that one somebody is to hear"


@pytest.mark.soak_on("mysql80", "mariadb")
@pytest.mark.parametrize("server", ["mysql", "mysql80", "mariadb"], indirect=True)
def test_a_replica_that_is_behind_is_waited_for(server: Database, another: Another, tmp_path: Path) -> None:
    """Between two groups of chunks; behind the place that its rows are read at it is by then."""
    first, second = (another(failover.options(server.flavor), server_id=n) for n in (1, 2))
    failover.replicate(first, second)
    share_password(first, second)
    if server.flavor == "mariadb":
        run(first, "GRANT SLAVE MONITOR ON *.* TO headrace")
        failover.caught_up(second, executed(first))
    asked = pipeline(first, tmp_path, "behind.*", replica=f"{HOST}:{second.port}", max_replica_lag_seconds=2.0)
    told, limit = list[str](), "s behind, snapshot.max_replica_lag_seconds is 2"
    with Source(asked) as source, reading(source) as reader:
        load = Load(asked.snapshot, reader, told.append)
        load.wait()
        assert told == []
        failover.delay(second, 600)
        run(first, "CREATE DATABASE behind")
        until = time.monotonic() + 30
        while limit not in str(load._busy()):
            assert time.monotonic() < until, load._busy()
            time.sleep(0.2)
        mending = threading.Timer(2.5, failover.delay, (second, 0))
        mending.start()
        load.wait()
    mending.join()
    failover.caught_up(second, executed(first))
    assert limit in told[0]


@pytest.mark.parametrize("server", ["mysql", "mariadb"], indirect=True)
def test_a_table_that_the_replica_leaves_out_is_refused_and_others_are_read(
    spark: SparkSession, server: Database, another: Another, tmp_path: Path
) -> None:
    """Its missing rows would leave the lake, as if the source had removed them."""
    filters = ["replicate_ignore_db=other", "replicate_wild_ignore_table=read_part.t%"]
    options = failover.options(server.flavor)
    first, second = another(options, server_id=1), another([*options, *filters], server_id=2)
    failover.replicate(first, second)
    share_password(first, second)
    if server.flavor == "mariadb":
        failover.caught_up(second, executed(first))
        asked = pipeline(first, tmp_path, "read_part.*", replica=f"{HOST}:{second.port}")
        assert [one.next_step for one in replica(asked, [])] == ["GRANT SLAVE MONITOR ON *.* TO headrace;"]
        run(first, "GRANT SLAVE MONITOR ON *.* TO headrace")
    run(first, "CREATE DATABASE read_part", *(f"CREATE TABLE read_part.{name} (id int PRIMARY KEY)" for name in "tu"))
    run(first, "INSERT INTO read_part.t VALUES (1)", "INSERT INTO read_part.u VALUES (1)")
    failover.caught_up(second, executed(first))
    run(second, "SET sql_log_bin = 0", "CREATE TABLE read_part.t (id int PRIMARY KEY)")

    asked = pipeline(first, tmp_path, "read_part.*", replica=f"{HOST}:{second.port}")
    snapshots = Snapshots(spark, first, asked)
    with Source(asked) as source, reading(source) as reader:
        manifest = snapshots.run(reader=reader)
    assert manifest.counts == {"read_part.u": 1}
    told = next(line for line in snapshots.told if "left out" in line)
    assert f"snapshot.replica, {HOST}:{second.port}" in told
    assert "replicate-wild-ignore-table=read_part.t%" in told
    [checked] = replica(asked, tables(asked))
    assert (checked.level, "there read_part.t (replicate-wild-ignore-table=read_part.t%)" in checked.text) == (
        "error",
        True,
    )
    [well] = replica(asked, [("read_part", "u")])
    assert well.level == "ok"


def test_a_replica_that_cannot_be_asked_is_named(mysql: MySQL, tmp_path: Path) -> None:
    asked = pipeline(mysql, tmp_path, "any.*", replica=f"{HOST}:{free_port()}")
    told = pytest.raises(LakeError, match=r"snapshot\.replica, 127.*cannot be asked.*Start it")
    with Source(asked) as source, told, reading(source):
        pass


def test_a_snapshot_takes_no_more_of_the_server_than_it_may(spark: SparkSession, mysql: MySQL, tmp_path: Path) -> None:
    """It waits while many threads are at work, and reads no more rows a second than the file says."""
    numbers = "WITH RECURSIVE n (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n WHERE id < 300) SELECT id FROM n"
    made = f"CREATE TABLE spared.t (id int PRIMARY KEY) {numbers}"
    run(mysql, "DROP DATABASE IF EXISTS spared", "CREATE DATABASE spared", made)
    asked = pipeline(mysql, tmp_path, "spared.*", max_threads_running=4, max_rows_per_second=100, parallelism=1)
    snapshots, waited = Snapshots(spark, mysql, asked), list[float]()

    def work() -> None:
        """Until the snapshot says that it waits for that."""
        while not any("snapshot.max_threads_running is 4" in told for told in snapshots.told):
            run(mysql, "SELECT SLEEP(0.5)")
        waited.append(time.monotonic())

    workers = [threading.Thread(target=work, daemon=True) for _ in range(6)]
    for worker in workers:
        worker.start()
    manifest = snapshots.run()
    for worker in workers:
        worker.join(10)
    assert len(waited) == 6
    assert manifest.counts == {"spared.t": 300}
    assert time.monotonic() - max(waited) > 2, "of three groups of 100 rows the first two have a second each"


def test_a_connection_that_the_server_ended_is_made_anew(mysql: MySQL, tmp_path: Path) -> None:
    """As by wait_timeout, in the rest before the next read; with the session's settings."""
    with Source(pipeline(mysql, tmp_path, "any.*")) as source:
        run(mysql, f"KILL {source.value('SELECT connection_id()')}")
        with pytest.raises(pymysql.Error):
            source.value("SELECT 1")
        source.awake()
        assert source.row("SELECT @@session.time_zone, @@session.sql_mode") == ("+00:00", "")
        still = source.value("SELECT connection_id()")
        source.awake()
        assert source.value("SELECT connection_id()") == still


@pytest.mark.parametrize("server", ["mysql", "mariadb"], indirect=True)
def test_rows_come_from_one_server_alone_whatever_its_address_stands_for(
    spark: SparkSession, server: Database, another: Another, tmp_path: Path
) -> None:
    """Behind a balanced name another one may lack what the first was asked for."""
    first, second = (another([], server_id=n) for n in (1, 2))
    share_password(first, second)
    for one in (first, second):
        run(one, "CREATE DATABASE balanced", "CREATE TABLE balanced.t (id int PRIMARY KEY)")
        run(one, "INSERT INTO balanced.t VALUES (1), (2)")
    proxy = Proxy(first.port)
    asked = pipeline(first, tmp_path, "balanced.*", replica=f"{HOST}:{proxy.port}")
    with Source(asked) as source, reading(source) as reader:
        schema = reader.schema("balanced", "t")
        assert schema is not None
        rows = rows_of(spark, reader, schema, ["k0 < 2", "k0 >= 2"])
        assert rows.count() == 2
        proxy.server = second.port
        with pytest.raises(Py4JJavaError) as caught:
            rows.collect()
        now = rf"{proxy.port} is the server .* now, and rows were read of .*: an address"
        told = rf"another server answered at .*{proxy.port}.*than the one whose rows were read.*Name one server alone"
        assert re.match(told, message_of(caught.value, reader.pipeline))
        with pytest.raises(LakeError, match=now):
            reader.again()
        proxy.cut()
        proxy.mend()
        with pytest.raises(LakeError, match=now):
            reader.awake()
        proxy.server = first.port
        reader.awake()
        assert rows.count() == 2
    proxy.cut()
