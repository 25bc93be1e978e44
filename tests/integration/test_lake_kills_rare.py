"""A compaction that is killed where it does what is rare: the next run ends as if nothing had been killed.

`make faults` kills one at each of these points; the others are in test_lake_kills.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark import failpoints
from spark.compaction.compaction import compact
from spark.job import JobFailedError
from spark.merging import tries
from stack.kafka import Kafka
from tests.integration.rare_lake import AHEAD, FIRST, LACKS, NAME, ROWS, SECOND, SET, STOPPED, THIRD, RareLake, standing
from tests.integration.spark_jobs import COMPACT, killed_at

pytestmark = pytest.mark.soak

POINTS = (
    *failpoints.LOSS, *failpoints.AHEAD, *failpoints.UNDONE, *failpoints.BEGUN, *failpoints.REFUSED, *failpoints.SLOW,
    *failpoints.CLEANED,
)  # fmt: skip
EVERY = (*POINTS, "loss noted:2")  # first of the records, then of the statements
SLOW = """\
import runpy
from spark.merging import tries
tries.QUICK = -1.0  # so each try is a slow one, as of a table for which much waits
runpy.run_path({}, None, "__main__")
"""


@pytest.fixture(scope="module")
def rare(spark: SparkSession, kafka: Kafka, tmp_path_factory: pytest.TempPathFactory) -> RareLake:
    made = RareLake(spark, tmp_path_factory.mktemp("rare"), kafka)
    made.make()
    return made


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("script") / "compact.py"
    made.write_text(SLOW.format(repr(str(COMPACT))))
    return made


@pytest.fixture(scope="module")
def whole(spark: SparkSession, rare: RareLake) -> tuple[dict[str, Any], list[str]]:
    """How the lake stands behind a run that nobody kills, and the points that it came by."""
    seen, pipeline = list[str](), rare.copy("whole")
    with pytest.MonkeyPatch.context() as slow, failpoints.hooked(seen.append):
        slow.setattr(tries, "QUICK", -1.0)
        ended(spark, pipeline)
    return standing(pipeline), seen


def ended(spark: SparkSession, pipeline: Any) -> None:
    with pytest.raises(JobFailedError, match=f"{STOPPED}: a change names schema version 9"):
        compact(spark, pipeline)


def test_a_run_that_nobody_kills_comes_by_each_point(whole: tuple[dict[str, Any], list[str]]) -> None:
    found, seen = whole
    assert set(POINTS) <= set(seen)
    assert seen.count("loss noted") == 2
    assert {table: [*map(tuple, rows)] for table, rows in found["rows"].items()} == ROWS
    landed = [change for change in (*FIRST, *SECOND, *THIRD) if change != THIRD[0]]
    assert found["changes"] == sorted([f"{NAME}.{table}", pos] for table, pos, _ in landed)
    assert [name for name, told in found["tables"].items() if told["ahead"]] == [AHEAD]
    lacking = [name for name, told in found["tables"].items() if told["unread"]]
    assert lacking == sorted({LACKS, SET, STOPPED}), "statements of any table may be lost"
    assert {told["freshness_ms"] for told in found["tables"].values()} == {None}
    assert (found["foreign"], found["repairs"], found["left"]) == ([], 0, [])
    assert "delta.appendOnly" in found["parts"]["3"]["refused"]


@pytest.mark.parametrize("point", EVERY)
def test_a_driver_killed_where_something_rare_is_done(
    spark: SparkSession, rare: RareLake, script: Path, whole: tuple[dict[str, Any], list[str]], point: str
) -> None:
    pipeline = rare.copy(point.replace(" ", "-").replace(":", "-").replace("'", ""))
    killed_at(point, Path(pipeline.path), script)
    ended(spark, pipeline)
    assert standing(pipeline) == whole[0]
