"""What the lake's status says against a table, and up to where the lake is complete."""

from __future__ import annotations

import pytest

from contract.status import Foreign, TableStatus, covered
from tests.checkpoints import SOURCE, checkpoint

TABLE = TableStatus(db="shop", table="items", rows=2, changes=2)


def test_what_speaks_against_a_table_is_told_the_worst_first() -> None:
    assert TABLE.doubts() == []
    marks = {
        "ahead": "its snapshot is ahead",
        "foreign": Foreign(reason="somebody else wrote", at=1),
        "stopped": "no key",
    }
    assert TABLE.model_copy(update=marks).doubts() == ["no key", "its snapshot is ahead", "somebody else wrote"]


def test_a_table_whose_rows_are_not_what_its_changes_say_has_no_past() -> None:
    assert TABLE.no_past() is None
    assert TABLE.model_copy(update={"unread": "rows of before were not read"}).no_past() is None
    ahead = TABLE.model_copy(update={"ahead": "its snapshot is ahead"})
    assert ahead.no_past() == "has no past for now: its snapshot is ahead"
    stopped = ahead.model_copy(update={"stopped": "no key"}).no_past()
    assert stopped == "is stopped, so that it is not what its changes say: no key"


@pytest.mark.parametrize(
    ("has", "wanted", "whole"),
    [
        (f"{SOURCE}:1-9", f"{SOURCE}:1-9", True),
        (f"{SOURCE}:1-9", f"{SOURCE}:1-10", False),
        ("0-1-9,1-1-3", "0-2-9", True),
        ("0-1-9", "0-1-9,1-1-1", False),
        (f"{SOURCE}:1-9", "", True),
        (None, "", True),
        (None, f"{SOURCE}:1", False),
    ],
)
def test_what_the_lake_is_complete_up_to(has: str | None, wanted: str, whole: bool) -> None:
    """Of MySQL, of MariaDB, and of a source that has written nothing."""
    assert covered(None if has is None else checkpoint(gtid_set=has), wanted) is whole
