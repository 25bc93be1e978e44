"""A compaction that is killed between any two of its actions: nothing is lost, nothing is there twice, and the next run
mends it by itself.

`make faults` kills one at every point, at those of what is rare in test_lake_kills_rare.py; at two of them one is
killed in every test run, and at a third in the soaks.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from delta.tables import DeltaMergeBuilder, DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql.readwriter import DataFrameWriter

from spark import failpoints
from spark.compaction.compaction import compact
from spark.job import JobFailedError
from spark.lake.lake import Lake
from spark.merging import handoff, tables, tries
from stack.kafka import Kafka
from stack.s3 import S3
from tests.integration.faulty_lake import LATE, FaultyLake, assert_as_expected
from tests.integration.spark_jobs import SECONDS, killed_at
from tests.s3_server import s3_server

ALWAYS = ("changes written", "table merged:2", pytest.param("status written", marks=pytest.mark.soak))
LATER = ("changes written:2", "marks written:2", "table merged:2", "table merged:4")
FILES = tuple(f"file written:{time}" for time in range(1, 13))  # the first is that which proves the lake writable
ON_S3 = (
    "read topics kept", "changes written", "marks written:2", "snapshot written", "table merged:2", "part replaced",
    "status written",
)  # fmt: skip
EVERY = (*(point for point in failpoints.POINTS if point != "file written"), *LATER, *FILES)


@pytest.fixture(scope="module")
def faulty(spark: SparkSession, kafka: Kafka, tmp_path_factory: pytest.TempPathFactory) -> FaultyLake:
    made = FaultyLake(tmp_path_factory.mktemp("faults"), kafka)
    made.before(spark)
    for number in range(len(LATE) + 1):
        with pytest.raises(JobFailedError, match=r"faults\.waits: a change names schema version 1"):
            compact(spark, made.pipeline)
        made.between(number)
    made.after(spark)
    return made


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3]:
    with s3_server(tmp_path_factory.mktemp("s3"), "lakes") as server:
        yield server


@pytest.mark.parametrize("point", EVERY if os.environ.get("HEADRACE_FAULTS") else ALWAYS)
def test_a_driver_killed_between_two_actions(spark: SparkSession, faulty: FaultyLake, point: str) -> None:
    pipeline = faulty.copy(point.replace(" ", "-").replace(":", "-"))
    killed_at(point, Path(pipeline.path))
    with pytest.raises(JobFailedError, match=r"faults\.odd: a change names schema version 9"):
        compact(spark, pipeline)
    assert_as_expected(pipeline)


@pytest.mark.soak
@pytest.mark.parametrize("point", ON_S3)
def test_a_driver_killed_between_two_actions_on_s3(
    spark: SparkSession, faulty: FaultyLake, s3: S3, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    """There no write takes the place of a file by its name, no folder is renamed, and the slot is a lease of the one
    that died."""
    monkeypatch.setenv("S3_SECRET", s3.secret)
    stored, below = faulty.stored(f"s3-{point.replace(' ', '-').replace(':', '-')}", s3)
    killed_at(point, Path(stored.path))
    with pytest.raises(JobFailedError, match=r"faults\.odd: a change names schema version 9"):
        compact(spark, stored)
    assert_as_expected(below)


def test_a_point_is_behind_every_action(
    spark: SparkSession, faulty: FaultyLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a run to which everything happens: a point is between any two actions, and every point is reached."""
    seen: list[str] = []
    actions = {Lake: ("write", "delete"), DataFrameWriter: ("save",), DeltaMergeBuilder: ("execute",)}
    for owner, methods in {**actions, DeltaTable: ("delete",), SparkSession: ("sql",)}.items():
        for method in methods:
            monkeypatch.setattr(owner, method, noted(owner, method, seen))
    monkeypatch.setattr(tables, "THREADS", 1)
    monkeypatch.setattr(tries, "QUICK", SECONDS)  # no try is so slow, on whichever machine, that it is noted
    monkeypatch.setattr(handoff, "THREADS", 1)
    pipeline = faulty.copy("whole")
    with failpoints.hooked(seen.append), pytest.raises(JobFailedError, match="odd"):
        compact(spark, pipeline)
    assert_as_expected(pipeline)
    assert set(failpoints.POINTS) == {entry for entry in seen if not entry.startswith("done: ")}
    # "file written" is in the middle of a write, and so is not behind the action before it.
    for action, following in pairwise(seen):
        assert not action.startswith("done: ") or following in set(failpoints.POINTS) - {"file written"}, action


def noted(owner: type, method: str, seen: list[str]) -> Callable[..., Any]:
    """The method, which says when it has changed the lake."""
    original = getattr(owner, method)

    def call(self: Any, *given: Any, **named: Any) -> Any:
        result = original(self, *given, **named)
        about = str(given[0]) if given else ""
        reads = method == "sql" and not re.match("CREATE|ALTER", about)
        if not reads and "/.probe-" not in about:
            seen.append(f"done: {owner.__name__}.{method} {about}")
        return result

    return call
