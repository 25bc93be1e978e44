"""A compaction of a lake on S3 that is killed between two of its actions: the next run mends it there as in a folder.

There no write takes the place of a file by its name, no folder is renamed, and the slot is a lease of the one that
died.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark.compaction.compaction import compact
from spark.job import JobFailedError
from stack.kafka import Kafka
from stack.s3 import S3
from tests.integration.faulty_lake import FaultyLake, assert_as_expected
from tests.integration.spark_jobs import killed_at
from tests.integration.test_lake_kills import filled
from tests.s3_server import s3_server

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1200)]

POINTS = (
    "read topics kept", "changes written", "marks written:2", "snapshot written", "table merged:2", "part replaced",
    "status written",
)  # fmt: skip


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3]:
    with s3_server(tmp_path_factory.mktemp("s3"), "lakes") as server:
        yield server


@pytest.fixture(scope="module")
def faulty(spark: SparkSession, kafka: Kafka, tmp_path_factory: pytest.TempPathFactory) -> FaultyLake:
    return filled(spark, FaultyLake(tmp_path_factory.mktemp("faults"), kafka))


@pytest.mark.parametrize("point", POINTS)
def test_a_driver_killed_between_two_actions_on_s3(
    spark: SparkSession, faulty: FaultyLake, s3: S3, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    monkeypatch.setenv("S3_SECRET", s3.secret)
    stored, below = faulty.stored(point.replace(" ", "-").replace(":", "-"), s3)
    killed_at(point, Path(stored.path))
    with pytest.raises(JobFailedError, match=r"faults\.odd: a change names schema version 9"):
        compact(spark, stored)
    assert_as_expected(below)
