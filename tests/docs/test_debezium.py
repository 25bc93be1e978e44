"""docs/debezium.md lists what the comparisons allow, no more and no less."""

from __future__ import annotations

import re
from pathlib import Path

from stack import versions
from streamer.crosscheck.values import EVENTS, KNOWN
from tests.integration.debezium_differences import DIFFERENCES, OURS_ALONE, TAKEN_FOR, THEIRS_ALONE

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


def test_the_fields_that_one_has_alone_are_named() -> None:
    part = TEXT.partition("## Where records differ")[2]
    assert all(f"`{name}`" in part for name in OURS_ALONE | THEIRS_ALONE)


def test_the_version_is_the_one_compared_with() -> None:
    assert f"Debezium {versions.DEBEZIUM.removesuffix('.Final')}" in TEXT


def test_every_known_defect_of_mysql_replication_is_printed() -> None:
    assert rows("## A second opinion") == {name: text for name, (_, text) in KNOWN.items()} | EVENTS
