"""docs/debezium.md lists what the comparisons allow, no more and no less."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest
import yaml

from contract.pipeline_records import DebeziumModes
from contract.schema import Column
from stack import versions
from streamer.crosscheck.values import EVENTS, KNOWN
from tests.integration.debezium_differences import (
    BESIDE_VALUES,
    DIFFERENCES,
    FORMED_DIFFERENCES,
    OURS_ALONE,
    TAKEN_FOR,
    THEIRS_ALONE,
)

TEXT = (Path(__file__).parents[2] / "docs" / "debezium.md").read_text()


def rows(heading: str) -> dict[str, str]:
    """The table's rows under a heading: the rest by the first cell."""
    part = TEXT.partition(heading)[2].partition("\n## ")[0]
    cells = re.findall(r"^\| (.+?) \| (.*) \|$", part, re.MULTILINE)
    return dict(cells[1:])


def test_every_difference_that_the_test_allows_is_printed_with_its_reason() -> None:
    found = rows("## Where values differ")
    assert list(found) == list(DIFFERENCES)
    for rest in found.values():
        assert all(cell.strip() for cell in rest.split(" | "))
    assert all(name in found["character sets"] for name in TAKEN_FOR)


def test_so_is_every_one_in_debeziums_form() -> None:
    found = rows("### Where it differs from Debezium's own")
    assert set(found) == {*FORMED_DIFFERENCES, *BESIDE_VALUES}
    for rest in found.values():
        assert all(cell.strip() for cell in rest.split(" | "))


def test_the_example_is_what_is_left_out_and_the_ways_are_those_that_there_are() -> None:
    [example] = re.findall(r"```yaml\n(records:.*?)```", TEXT, re.DOTALL)
    assert DebeziumModes.model_validate(yaml.safe_load(example)["records"]["debezium"]) == DebeziumModes()
    told = rows("## Debezium's JSON with schema")
    for name, info in DebeziumModes.model_fields.items():
        setting, ways = told[f"`{name}`"].split(" | ")
        assert setting == f"`{info.description}`"
        assert set(get_args(info.annotation)) <= set(re.findall(r"`([\w-]+)`", ways))


JSON = Column(name="d", type="json")


@pytest.mark.parametrize(
    ("ours", "theirs", "allows"),
    [
        ('["-01:02:03.500000"]', '["02:0-3:0-4.00000-5"]', True),
        ('["-01:02:03.500000"]', '["01:02:03.5"]', False),
        ('["12:00:00.500000"]', '["12:00:00.5"]', True),
        ('["12:00:00.500000"]', '["12:00:01.5"]', False),
        ('["2024-01-01 00:00:00.000000"]', '["2024-01-01 00:00:00"]', True),
        ('["2024-01-01 00:00:00.000000"]', '["2024-01-02 00:00:00"]', False),
        ('{"k": "base64:type15:AP8="}', '{"k":"AP8="}', True),
        ('{"k": "base64:type15:AP8="}', '{"k":"AP9="}', False),
        ('["a", 1]', '["b",1]', False),
        ('["a", 1]', '["a",2]', False),
        ('{"k": "2024-02-29"}', '{"l":"2024-02-29"}', False),
        ('{"k": "2024-02-29"}', '["2024-02-29"]', False),
        ('["a"]', '["a", "b"]', False),
    ],
)
def test_inside_json_only_what_debezium_prints_of_the_very_value_is_allowed(
    ours: str, theirs: str, allows: bool
) -> None:
    assert DIFFERENCES["dates, times and binary data inside JSON"](JSON, ours, theirs) is allows


def test_the_fields_that_one_has_alone_are_named() -> None:
    part = TEXT.partition("## Where records differ")[2]
    assert all(f"`{name}`" in part for name in OURS_ALONE | THEIRS_ALONE)


def test_the_versions_are_those_compared_with() -> None:
    told = re.findall(r"Debezium (\d+\.\d+\.\d+)", TEXT)
    assert set(told) == {version.removesuffix(".Final") for version in versions.DEBEZIUM.values()}


def test_every_known_defect_of_mysql_replication_is_printed() -> None:
    assert rows("## A second opinion") == {name: text for name, (_, text) in KNOWN.items()} | EVENTS
