"""The one table that a statement changes, and whether it is certain that it changes no other's rows."""

from __future__ import annotations

import pytest

from streamer.ddl.target import is_plain, target
from streamer.ddl.tokens import Tokens, scan


def read(text: str) -> tuple[tuple[str, str] | None, bool]:
    tokens = Tokens(scan(text), "shop")
    return target(tokens), is_plain(tokens)


@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO t VALUES (1, NOW()), (2, CONCAT('a', UPPER('(b)')))",
        "insert into shop.`t` (id, v) value (1, f)",
        "REPLACE t SET id = 1, v = (2 + 3) * 4",
        "INSERT IGNORE INTO t (id) VALUES (1) ON DUPLICATE KEY UPDATE id = VALUES(id) + 1",
        "UPDATE LOW_PRIORITY t SET v = COALESCE(v, 'f(x)') WHERE id IN (1, 2) AND (v = 1 OR NOT (v = 2))",
        "DELETE FROM t",
        "DELETE QUICK FROM t WHERE id = (1)",
        "/*!80000 DELETE */ FROM t /* f(1) */ WHERE id = 1;",
    ],
)
def test_it_changes_this_table_alone(text: str) -> None:
    assert read(text) == (("shop", "t"), True)


@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO t VALUES (f(1))",
        "INSERT INTO t VALUES (shop.count(1))",
        "INSERT INTO t VALUES (`now`())",
        "INSERT INTO t VALUES (_f())",
        "INSERT INTO t VALUES (1, $f ( 2 ))",
        "INSERT INTO t SELECT 1",
        "INSERT INTO t (id) SELECT * FROM v",
        "INSERT INTO t TABLE v",
        "INSERT INTO t WITH v AS (VALUES ROW(1)) TABLE v",
        "UPDATE t SET v = (SELECT 1)",
        "DELETE FROM t WHERE f(id)",
    ],
)
def test_a_users_function_or_a_view_may_change_others(text: str) -> None:
    assert read(text) == (("shop", "t"), False)


@pytest.mark.parametrize(
    "text",
    [
        "UPDATE t, u SET t.v = 1", "UPDATE t AS x SET v = 1", "UPDATE t JOIN u SET u.v = 1", "DELETE t FROM t, u",
        "DELETE FROM t USING t, u", "DELETE FROM t, u", "LOAD DATA INFILE 'x' INTO TABLE t", "CALL t()", "",
    ],
)  # fmt: skip
def test_it_may_change_several_or_none(text: str) -> None:
    assert read(text)[0] is None
