"""Which statements leave a doubt about columns that the binlog does not tell."""

from __future__ import annotations

import pytest

from streamer.definitions import Statement


@pytest.mark.parametrize(
    "statement",
    [
        "analyze table orders",
        "optimize table orders",
        "repair table orders",
        "truncate table orders",
        "create index i on orders (x)",
        "drop index i on orders",
        "grant select on shop.orders to u",
        "create view v as select * from orders",
        "alter table orders add y int",
    ],
)
def test_columns_are_what_they_were(statement: str) -> None:
    assert Statement("shop", statement, 0).leaves(["id"])


@pytest.mark.parametrize(
    "statement",
    [
        "create or replace table orders (id binary(16))",
        "create table orders (id uuid)",
        "drop table orders",
        "rename table orders to o",
        "alter table orders modify id uuid",
        "alter table orders rename to o",
        "alter table orders exchange partition p with table o",
        "create or replace database shop",
        "set statement max_statement_time=1 for alter table orders modify id uuid",
        "nobody knows orders",
        "create index i on orders (x) " + "/* " + "long " * 3000 + "*/",
    ],
)
def test_columns_may_be_others(statement: str) -> None:
    assert not Statement("shop", statement, 0).leaves(["id"])
