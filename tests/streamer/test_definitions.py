"""Which statements leave a doubt about columns that the binlog does not tell."""

from __future__ import annotations

import pytest

from streamer.ddl.redefined import statement


def redefined(text: str) -> bool:
    return statement("shop", text, 0, "0-1-1").redefines("shop", "orders", ["id"])


@pytest.mark.parametrize(
    "text",
    [
        "analyze table orders",
        "optimize table orders",
        "repair table orders",
        "truncate table orders",
        "create index i on orders (x)",
        "drop index i on orders",
        "drop index `primary` on orders",
        "alter table orders repair partition p0",
        "grant select on shop.orders to u",
        "create view v as select * from orders",
        "alter table orders add y int",
        "alter table orders add index (id)",
        "alter table orders engine=aria",
        "create table o2 like orders",
        "create table o2 (x int, foreign key (x) references orders (id))",
        "alter table o2 add foreign key (id) references orders (id)",
        "create trigger tr after insert on orders for each row insert into o2 values (new.id)",
        "drop table o2 /* once orders */",
        "set statement max_statement_time=1 for optimize table orders",
    ],
)
def test_columns_are_what_they_were(text: str) -> None:
    assert statement("shop", text, 0, "0-1-1").is_of("shop", "orders")
    assert not redefined(text)


@pytest.mark.parametrize(
    "text",
    [
        "create or replace table orders (id binary(16))",
        "create table orders (id uuid)",
        "drop table orders",
        "rename table orders to o",
        "alter table orders modify id uuid",
        "alter table orders rename to o",
        "alter table orders exchange partition p with table o",
        "set statement max_statement_time=1 for alter table orders modify id uuid",
        "nobody knows orders",
        "rename table o wait 5 to orders",
        "alter table o rename orders",
        "drop database shop -- with orders",
        "alter table o exchange partition p with table orders",
        "alter table o convert partition p to table orders",
        "create index i on orders (x) " + "/* " + "long " * 3000 + "*/",
    ],
)
def test_columns_may_be_others(text: str) -> None:
    assert redefined(text)
