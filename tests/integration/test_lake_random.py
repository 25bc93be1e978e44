"""A lake's days at random, on each server: writes, statements that change tables, all jobs in any order, some of them
killed, rows erased, what others do to the lake, and restarts of the streamer.

Behind every step these things hold: a table of which nothing is told has, row by row, what the source has, and no check
says that such a table differs; each change is there once; nothing that was erased comes again; the past is what it was.
At the end whatever is told is mended by what it says: a snapshot.

`make soak-lake STEPS=200 SEED=7` takes more of them; the seed is drawn and printed where none is given, and so is each
step. The same seed draws the same steps.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark.jobs.snapshot import snapshot
from spark.lake import unfinished
from stack.database import Database
from stack.kafka import Kafka
from tests.integration.conftest import SERVERS
from tests.integration.decoding import run
from tests.integration.lake_claims import Claims
from tests.integration.lake_days import Days
from tests.integration.lake_source import FORMS, RULES
from tests.integration.streaming import Streamer

STEPS = os.environ.get("HEADRACE_STEPS", "")
SEED = os.environ.get("HEADRACE_SEED", "")
MORE = "snapshot: {chunk_rows: 100}\nquality: {wait_seconds: 120}\n"
FEW = 6  # steps
# The server, the seed and how many steps.
SHORT = pytest.param("mysql", 137, FEW, id="mysql")
LONGER = [pytest.param(name, 20, 9, id=f"{name}-longer", marks=pytest.mark.soak) for name in SERVERS]
QUIET = ("write", "alter", "rearrange", "maintain", "kill", "foreign", "restart")  # the lake is behind the source
Step = Callable[[], None]


@pytest.fixture
def days(
    request: pytest.FixtureRequest, spark: SparkSession, server: Database, kafka: Kafka, seed: int, count: int,
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Days]:  # fmt: skip
    """Longer ones have a server of their own, whose binlog they may begin anew, and more forms of tables."""
    long = bool(STEPS) or count > FEW
    seed = int(SEED or random.randrange(10**6)) if STEPS else seed
    print(f"\nSEED={seed} on {server.name}", flush=True)
    chance = random.Random(seed)
    server = request.getfixturevalue("another")() if long else server
    monkeypatch.setenv("TEST_PASSWORD", server.password)
    monkeypatch.setattr(unfinished, "SILENT", unfinished.BEATS + 1)
    name = f"random{server.name}{count}"
    run(server, f"DROP DATABASE IF EXISTS {name}", f"CREATE DATABASE {name}")
    delivery = chance.choice(["exactly_once", "at_least_once"]) if long else "exactly_once"
    streamer = Streamer(tmp_path, server, kafka, name, delivery=delivery)
    streamer.file.write_text(streamer.file.read_text() + MORE + RULES.format(db=name))
    yield Days(spark, streamer, chance, long, ["a", *chance.sample([*FORMS][1:], k=3 if long else 1)])
    streamer.close()


@pytest.mark.parametrize(("server", "seed", "count"), [SHORT, *LONGER], indirect=["server"])
@pytest.mark.usefixtures("without_expectations")
def test_what_is_not_told_is_equal(days: Days, count: int) -> None:
    steps: dict[Step, int] = {
        days.write: 6, days.source.alter: 5, days.source.rearrange: 3, days.snapshot: 3, days.compact: 3,
        days.verify: 2, days.mend: 1, days.rebuild: 3, days.maintain: 1, days.kill: 9, days.erase: 4, days.foreign: 4,
        days.meanwhile: 3, days.changes_harmed: 1, days.restart: 4,
    }  # fmt: skip
    claims = Claims(days)
    days.streamer.started()
    days.write()
    snapshot(days.spark, days.pipeline, [])
    days.compact()
    claims.hold()
    claims.remember()
    for step in days.chance.choices([*steps], [*steps.values()], k=int(STEPS or count)):
        days.note(f"{step.__name__}".upper())
        step()
        if step.__name__ not in QUIET:
            claims.hold()
            if len(days.log) % 4 == 0:
                claims.remember()
    days.compact()
    claims.hold()
    claims.history()
    settled(days, claims)


def settled(days: Days, claims: Claims) -> None:
    """Whatever is told is mended by a snapshot."""
    snapshot(days.spark, days.pipeline, [])
    days.compact()
    there = {f"{days.db}.{table}" for table in days.source.tables()}
    assert {name: told for name, told in days.told.items() if told and name in there} == {}, days.shown()
    days.loose.clear()
    claims.hold()
    days.verify()
    claims.history()
