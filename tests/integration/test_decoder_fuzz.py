"""Some hundred random rows on each server; `make fuzz` tries many thousands."""

from __future__ import annotations

from contextlib import closing

from stack.database import Database
from tests.integration.fuzz import Fuzz

EXAMPLES, SEED = 30, 2026  # tables; the same in each run


def test_random_rows_are_what_a_query_says(server: Database) -> None:
    with closing(Fuzz(server)) as fuzz:
        fuzz.tries(EXAMPLES, SEED)
        assert fuzz.rows > 100
        assert len(fuzz.columns) > 10
