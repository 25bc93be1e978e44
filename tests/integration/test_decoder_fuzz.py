"""Some hundred random rows on each server; `make fuzz` tries many thousands."""

from __future__ import annotations

from contextlib import closing

from stack.database import Database
from tests.integration.fuzz import Fuzz

# Hypothesis takes the constants of what is imported into its examples, so that a seed's tables are not the same in each
# run; so it goes on until some of each kind were tried.
SEEDS = range(2026, 2046)
LEAST = 5


def test_random_rows_are_what_a_query_says(server: Database) -> None:
    """Of random tables under random names, and with random keys: inserted, changed and deleted."""
    with closing(Fuzz(server)) as fuzz:
        for number, seed in enumerate(SEEDS):
            if number >= LEAST and enough(fuzz):
                break
            fuzz.tries(seed)
        assert enough(fuzz)


def enough(fuzz: Fuzz) -> bool:
    """More than 16 columns: a third byte says which of them are NULL."""
    kinds = len(fuzz.columns) > 15 and len(fuzz.keys) > 10
    return kinds and fuzz.rows > 300 and fuzz.deleted > 20 and fuzz.widest > 16
