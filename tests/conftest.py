"""What every test has: an Airflow home of its own, made before anything imports Airflow.

And how tests are shared out with `-n`: file by file, the longest first. One half of the workers begins with those that
have a Spark session, which would else take the cores from each other, the other half with those that have none and
wait for servers most of the time; so of two workers one has a session until little is left. Each worker starts servers
of its own, on free ports, so nothing of one worker's is seen by another's tests.
"""

from __future__ import annotations

import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings
from xdist.scheduler import LoadFileScheduling

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# How long an example takes is the machine's load, not the code's fault: a busy one failed tests without this.
settings.register_profile("headrace", deadline=None)
settings.load_profile("headrace")
# Airflow reads its home once, when it is first imported, and would else write into the user's own.
AIRFLOW_HOME = tempfile.mkdtemp(prefix="headrace-airflow-")
os.environ["AIRFLOW_HOME"] = AIRFLOW_HOME
os.environ.setdefault("AIRFLOW__CORE__LOAD_EXAMPLES", "False")
SPARK_SECONDS = 1200  # twice the others': on a slow machine a query's plan alone takes minutes
# Files of more than half a minute, the longest first: begun last, one of them would keep a worker busy alone.
LONG = (
    "test_airflow", "test_by_command", "test_kills", "test_lake_faults", "test_lake_names", "test_lake_repair",
    "test_lake_random", "test_lake_breaks", "test_lake_servers", "test_lake_disk", "test_lake_evolution", "test_lake",
    "test_lake_kills", "test_lake_kills_rare", "test_erasing", "test_lake_backfill", "test_lake_ways_back",
    "test_lake_changes_only",
    "test_transforms", "test_serve", "test_keys", "test_away", "test_high_availability", "test_exactly_once",
    "test_seek", "test_oneshot", "test_oversized", "test_lake_loop",
    "test_tables", "test_handoff", "test_streamer_starts", "test_failover", "test_stack_cli", "test_lake_order",
    "test_streamer", "test_lake_refusals", "test_streamer_restarts", "test_streamer_source", "test_debezium",
    "test_first_start", "test_streamer_broker", "test_changes", "test_decoder_charsets", "test_decoder_connection",
)  # fmt: skip


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()) and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(SPARK_SECONDS))
    if hasattr(config, "workerinput"):
        items.sort(key=place_of(items))


def place_of(items: list[pytest.Item]) -> Callable[[pytest.Item], tuple[bool, int]]:
    """Of an item in the queue of files, which is taken from both ends: in front those with a Spark session, behind them
    those without one. At either end are the longest, in the middle the short ones, which nobody waits for."""
    places = {name: place for place, name in enumerate(LONG)}
    spark = {item.path for item in items if "spark" in getattr(item, "fixturenames", ())}

    def place(item: pytest.Item) -> tuple[bool, int]:
        found = places.get(item.path.stem, len(LONG))
        return (False, found) if item.path in spark else (True, -found)

    return place


class FromBothEnds(LoadFileScheduling):
    """A worker is given whole files, since their tests share what they start: every second worker the last ones."""

    def _assign_work_unit(self, node: Any) -> None:
        if self.nodes.index(node) % 2:
            self.workqueue.move_to_end(next(reversed(self.workqueue)), last=False)
        super()._assign_work_unit(node)


@pytest.fixture(scope="session")
def spark() -> SparkSession:
    """The one of this process."""
    from tests.spark.sessions import local_session

    return local_session()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    if "spark" in getattr(item, "fixturenames", ()):
        from tests.spark.sessions import forget_tables

        forget_tables()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    if call.excinfo is not None and "pytest-timeout" in str(call.excinfo.value) and "pyspark" in sys.modules:
        from tests.spark.sessions import forget_answer

        forget_answer()
    return (yield)


def pytest_report_header() -> str:
    free = shutil.disk_usage(tempfile.gettempdir()).free / 2**30
    return f"disk: {free:.0f} GiB free in {tempfile.gettempdir()}"


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadFileScheduling:
    config.option.loadscopereorder = False  # it would order files by their numbers of tests
    return FromBothEnds(config, log)


def pytest_unconfigure() -> None:
    shutil.rmtree(AIRFLOW_HOME, ignore_errors=True)
    # Spark's gateway logs while the interpreter ends, when pytest has closed the output that it logs to.
    logging.raiseExceptions = False
