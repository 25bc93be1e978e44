"""The streamer and the lake mean the same by a DDL record."""

from __future__ import annotations

from contract.ddl_record import UNSEEN
from streamer.ddl import statement


def test_the_lake_knows_every_kind_that_changes_rows_unseen() -> None:
    assert {*UNSEEN, "truncate"} == set(statement.CHANGES_ROWS)
