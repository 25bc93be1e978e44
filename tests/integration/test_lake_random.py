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
from collections.abc import Iterator
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

COUNT = os.environ.get("HEADRACE_STEPS", "")
SEED = os.environ.get("HEADRACE_SEED", "")
MORE = "snapshot: {chunk_rows: 100}\nquality: {wait_seconds: 120}\n"
FEW = 5  # steps
DRAWN = int(SEED or random.randrange(10**6))
# The server, the seed and how many steps.
FORM = [
    pytest.param("mysql", 346, FEW, id="mysql"),
    *(
        pytest.param(name, DRAWN if COUNT else 20, int(COUNT or 9), id=f"{name}-longer", marks=pytest.mark.soak)
        for name in SERVERS
    ),
]
QUIET = ("write", "alter", "rearrange", "maintain", "kill", "foreign", "restart")  # the lake is behind the source
STEPS = {
    "write": 6, "alter": 5, "rearrange": 3, "snapshot": 3, "compact": 3, "verify": 2, "mend": 1, "rebuild": 3,
    "maintain": 1, "kill": 9, "erase": 4, "foreign": 4, "meanwhile": 3, "changes_harmed": 1, "restart": 4,
}  # fmt: skip


@pytest.fixture
def names(seed: int, count: int) -> list[str]:
    """Of the steps."""
    return random.Random(f"steps {seed}").choices([*STEPS], [*STEPS.values()], k=count)


@pytest.fixture
def days(
    request: pytest.FixtureRequest, spark: SparkSession, server: Database, kafka: Kafka, names: list[str], seed: int,
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Days]:  # fmt: skip
    """Longer ones have a server of their own, whose binlog they may begin anew, and more forms of tables."""
    long, chance = len(names) > FEW, random.Random(seed)
    print(f"\nSTEPS={len(names)} SEED={seed} on {server.name}", flush=True)
    server = request.getfixturevalue("another")() if long else server
    monkeypatch.setenv("TEST_PASSWORD", server.password)
    monkeypatch.setattr(unfinished, "SILENT", unfinished.BEATS + 1)
    name = f"random{server.name}{len(names)}"
    run(server, f"DROP DATABASE IF EXISTS {name}", f"CREATE DATABASE {name}")
    delivery = chance.choice(["exactly_once", "at_least_once"]) if long else "exactly_once"
    streamer = Streamer(tmp_path, server, kafka, name, delivery=delivery)
    streamer.file.write_text(streamer.file.read_text() + MORE + RULES.format(db=name))
    yield Days(spark, streamer, chance, long, ["a", *chance.sample([*FORMS][1:], k=3 if long else 1)])
    streamer.close()


@pytest.mark.parametrize(("server", "seed", "count"), FORM, indirect=["server"])
@pytest.mark.usefixtures("without_expectations")
def test_what_is_not_told_is_equal(days: Days, names: list[str]) -> None:
    claims = Claims(days)
    days.streamer.started()
    days.write()
    snapshot(days.spark, days.pipeline, [])
    days.compact()
    claims.remember()
    for name in names:
        days.note(name.upper())
        getattr(days, name)()
        if name not in QUIET:
            claims.hold()
            if days.chance.random() < 0.25:
                claims.remember()
    days.compact()
    claims.hold()
    if len(names) > FEW:
        claims.history()
    settled(days, claims)


def settled(days: Days, claims: Claims) -> None:
    """Whatever is told is mended by a snapshot."""
    if any(days.told.values()) or days.loose:
        snapshot(days.spark, days.pipeline, [])
        days.loose.clear()
    days.verify()  # behind a compaction
    there = {f"{days.db}.{table}" for table in days.source.tables()}
    assert {name: told for name, told in days.told.items() if told and name in there} == {}, days.shown()
    claims.hold()
    claims.history()
