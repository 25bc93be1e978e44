"""Tables as MySQL's own answers describe them."""

from __future__ import annotations

import pytest

from contract import information_schema


@pytest.mark.parametrize(
    ("kind", "spelled", "unsigned"),
    [
        ("int", "int unsigned", True),
        ("int", "int", False),
        ("enum", "enum('signed','unsigned')", False),
        ("set", "set('unsigned')", False),
    ],
)
def test_a_member_called_unsigned_makes_no_column_so(kind: str, spelled: str, unsigned: bool) -> None:
    said = "unsigned" in spelled  # as the statement asks
    row = ("shop", "t", "c", kind, said, None, None, None, None, None, 1, spelled)
    made = information_schema.table("shop", "t", [row], [])
    assert made is not None
    assert made.columns[0].unsigned is unsigned
