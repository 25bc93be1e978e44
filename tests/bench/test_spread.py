"""A load over several tables takes each in turn, and each row of it."""

from __future__ import annotations

from itertools import islice

from bench.spread import pieces, tables


def test_each_table_gets_its_turn_and_each_of_its_rows() -> None:
    names = tables(3)
    assert names == ["orders", "orders_1", "orders_2"]
    found = list(islice(pieces(names, 20, 10), 9))
    assert found[:3] == [("bench.orders", 0), ("bench.orders_1", 0), ("bench.orders_2", 0)]
    assert [first for table, first in found if table == "bench.orders_2"] == [0, 10, 0]
