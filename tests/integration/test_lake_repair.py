"""A damaged lake is repaired from the check's own findings while the source is written to, and proven equal."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from contract import status
from contract.pipeline import Pipeline, load
from spark.compaction.compaction import compact
from spark.errors import LakeError
from spark.job import JobFailedError
from spark.jobs.repair import repair
from spark.jobs.snapshot import snapshot
from spark.jobs.verify import verify
from spark.lake.lake import Lake
from stack.database import Database
from stack.kafka import Kafka
from tests.faults import kit
from tests.integration import foreign_keys
from tests.integration.conftest import SERVERS
from tests.integration.decoding import run
from tests.integration.streaming import Streamer
from tests.integration.test_lake_servers import beside, compacting

pytestmark = pytest.mark.usefixtures("without_expectations")

ROWS = 60
# The server, and whether compactions follow it all the while, instead of those that a job waits for.
FORMS = [
    pytest.param("mysql", False, id="mysql", marks=pytest.mark.soak),  # what is wrong is found: test_lake_faults.py
    pytest.param("mariadb", False, id="mariadb"),
    *(pytest.param(name, True, id=f"{name}-followed", marks=pytest.mark.soak) for name in SERVERS),
]


@pytest.fixture
def streamer(
    server: Database, kafka: Kafka, followed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Streamer]:
    monkeypatch.setenv("TEST_PASSWORD", server.password)
    items = [f"({n}, {n}, 'b{n}')" for n in range(1, ROWS + 1)]
    codes = [f"('{'äbCß'[n % 4]}{n}', {n}, now())" for n in range(1, ROWS + 1)]
    name = f"repaired{server.name}{int(followed)}"  # the topics are of one Kafka
    run(
        server, f"CREATE DATABASE {name}", f"USE {name}",
        "CREATE TABLE items (id int PRIMARY KEY, a int, b varchar(20))",
        "CREATE TABLE codes (code varchar(20) CHARACTER SET latin1 PRIMARY KEY, v int, at datetime)",
        f"INSERT INTO items VALUES {', '.join(items)}", f"INSERT INTO codes VALUES {', '.join(codes)}",
    )  # fmt: skip
    foreign_keys.make(server, name)
    made = Streamer(tmp_path, server, kafka, name)
    followed_by = f'exclude: ["*.hidden*"], cascades: ["{name}.owned", "{name}.linked"]'
    text = made.file.read_text().replace('exclude: ["*.hidden*"]', followed_by)
    assert followed_by in text
    made.file.write_text(text + "snapshot: {chunk_rows: 100}\nquality: {wait_seconds: 300}\n")
    yield made
    made.close()


def writing(server: Database, db: str, stop: threading.Event) -> None:
    """To every third row of one table, and every fourth of the other: what is wrong in the lake is right then by
    itself."""
    n = 0
    with server.connect(database=db, autocommit=True) as connection, connection.cursor() as cursor:
        while not stop.wait(0.05):
            n += 1
            cursor.execute(f"UPDATE items SET a = a + 1 WHERE id = {n * 3 % ROWS + 1}")
            cursor.execute(f"UPDATE codes SET v = v + 1 WHERE code LIKE 'ä%{n % 10}'")
            cursor.execute(f"REPLACE INTO items VALUES ({1000 + n % 7}, {n}, 'new')")
            cursor.execute(f"DELETE FROM items WHERE id = {1000 + n % 5}")
            cursor.execute(f"UPDATE linked SET v = {n} WHERE id = {foreign_keys.STILL}")


def damage(spark: SparkSession, server: Database, pipeline: Pipeline) -> None:
    db = pipeline.name
    kit.damage(spark, pipeline, f"{db}.items", [
        kit.missing("id", 4), kit.missing("id", 5), kit.extra("id", 8, 9001), kit.duplicate("id", 11),
        kit.changed("id", 14, "b", "string"), kit.truncated_chunk("id", range(30, 40)),
    ])  # fmt: skip
    kit.damage(spark, pipeline, f"{db}.codes", [
        kit.missing("code", "b1"), kit.extra("code", "b5", "B5"), kit.charset_damage("code", "ß3", "code"),
    ])  # fmt: skip
    kit.unlogged(server, f"DELETE FROM {db}.items WHERE id = 20", f"UPDATE {db}.codes SET v = -1 WHERE v = 50")
    foreign_keys.change_parents(server, db)


def mended(pipeline: Pipeline, report: dict[str, dict[str, str]]) -> None:
    """Returns once the lake has taken all parts."""
    until = time.monotonic() + 120
    while time.monotonic() < until:
        known = status.read(pipeline)
        if known and set(report["parts"]) <= set(known.parts):
            assert not any(part.refused for part in known.parts.values())
            return
        time.sleep(0.2)
    raise AssertionError("the parts were not taken")


@pytest.mark.parametrize(("server", "followed"), FORMS, indirect=["server"])
def test_what_a_check_found_is_mended_under_writes_and_proven(
    spark: SparkSession, server: Database, streamer: Streamer, followed: bool
) -> None:
    db, itself = streamer.name, "" if followed else "yes"
    silent = set(foreign_keys.unlogged(server, db))
    wrong = ["items", "codes", *(foreign_keys.CHILDREN if silent else [])]
    streamer.started()
    pipeline = load(streamer.file)
    snapshot(spark, pipeline, [])
    compact(spark, pipeline)
    damage(spark, server, pipeline)
    following = partial(compacting, spark, pipeline) if followed else threading.Event.wait
    with beside(partial(writing, server, streamer.name)), beside(following):
        with pytest.raises(JobFailedError, match=f"{len(wrong)} of 5 tables"):
            verify(spark, pipeline, [], compact=itself)
        assert kit.found(spark, pipeline, [f"{db}.{name}" for name in foreign_keys.CHILDREN]) == silent
        report = repair(spark, pipeline, [], by="a test", compact=itself)
        assert set(report["tables"]) == {f"{db}.{name}" for name in wrong}
        mended(pipeline, report)
        told = verify(spark, pipeline, [], compact=itself)["tables"]
    assert all(table["equal"] for table in told.values())
    rows = spark.read.format("delta").load(Lake(spark, pipeline).at("_repairs"))
    kinds = {(row["tbl"], row["kind"]) for row in rows.where("since is not null and `check` is not null").collect()}
    of_items = {(f"{db}.items", kind) for kind in ("missing", "extra", "duplicate", "changed")}
    assert of_items <= kinds
    assert {kind for table, kind in kinds if table == f"{db}.codes"} == {"missing", "extra", "changed"}
    children = [f"{db}.{name}" for name in foreign_keys.CHILDREN]
    assert {one for one in kinds if one[0] in children} == {(one.table, one.kind) for one in silent}
    foreign_keys.assert_followed(spark, pipeline, db)
    for given, says in (
        ({"from": "9", "to": "3"}, "the wrong way round"), ({"keys": '["x"]'}, "key 1 .* is no value of .*items.id"),
        ({"keys": "[1]", "to": "3"}, "choose one"),
    ):  # fmt: skip
        with pytest.raises(LakeError, match=says):
            repair(spark, pipeline, [f"{db}.items"], **given)
    lake = Lake(spark, pipeline)
    assert lake.list(lake.at("_parts")) == []
    assert repair(spark, pipeline, [f"{db}.items"], **{"from": "1", "to": "12"})["tables"] == {
        f"{db}.items": {"part": "id from 1 to 12", "read": 12}
    }
