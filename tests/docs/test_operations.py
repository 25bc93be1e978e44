"""docs/operations.md explains every kind of error that the streamer can end with, and no kind that is none."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from spark.lake.own_tables import FORGOTTEN, SECTION
from streamer import binlog_file, delivery_errors
from streamer.archive import errors as archive_errors
from streamer.cli.spark_driver import NoSparkError
from streamer.cli.sql import LakeQueryError
from streamer.crosscheck import errors as crosscheck_errors
from streamer.errors import HeadraceError
from streamer.seek import errors as seek_errors
from streamer.supervisor import errors as supervisor_errors

PAGE = Path(__file__).parents[2] / "docs" / "operations.md"
ABSTRACT = {"error"}


def kinds(error: type[HeadraceError]) -> Iterator[str]:
    yield error.kind
    for narrower in error.__subclasses__():
        yield from kinds(narrower)


def test_every_kind_of_error_is_explained() -> None:
    rooms = {
        seek_errors.SeekError,
        delivery_errors.TopicError,
        binlog_file.BinlogFileError,
        crosscheck_errors.PlaceError,
        archive_errors.NoArchiveError,
        NoSparkError,
        LakeQueryError,
        supervisor_errors.ServeError,
    }
    assert rooms < set(HeadraceError.__subclasses__())
    section = PAGE.read_text().split("## The streamer's errors")[1].split("\n## ")[0]
    rows = [row.split("|")[1] for row in section.splitlines() if row.startswith("| `")]
    documented = {kind for row in rows for kind in re.findall(r"`([a-z_]+)`", row)}
    assert documented == set(kinds(HeadraceError)) - ABSTRACT


def test_the_road_without_airflow_goes_past_every_job_of_the_schedules() -> None:
    """By these alone a lake is made, kept and proven: nothing else starts them."""
    road = PAGE.read_text().split("Without Airflow, a lake is made")[1].split("\n## ")[0]
    start = (PAGE.parents[1] / "README.md").read_text().split("Without Airflow")[1].split("\n## ")[0]
    for job in ("snapshot", "compact", "verify", "maintain"):
        assert f"headrace {job} " in road
        assert f"headrace {job} " in start


def test_the_unit_of_a_loop_starts_it_again() -> None:
    """It ends by itself where its store is away."""
    unit = PAGE.read_text().split("## The lake all the time")[1].split("```ini")[1].split("```")[0]
    assert {"Restart=always", "KillMode=mixed"} < set(unit.splitlines())


def test_the_way_back_is_told_of_each_of_the_lakes_own_tables() -> None:
    """Under the heading that the error names."""
    heading = re.fullmatch(r'"(.+)" in docs/operations\.md', SECTION)
    assert heading is not None
    section = PAGE.read_text().split(f"\n### {heading[1]}\n")[1].split("\n## ")[0]
    assert set(re.findall(r"^\| `(_\w+)` \|", section, re.MULTILINE)) == FORGOTTEN.keys()
