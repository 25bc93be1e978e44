"""An ALTER TABLE that does nothing but define columns is known as such, and in doubt none is."""

from __future__ import annotations

import pytest

from spark.evolution.defines import defined


@pytest.mark.parametrize(
    ("statement", "columns"),
    [
        ("ALTER TABLE items MODIFY name varchar(9) DEFAULT 'x'", ("name",)),
        ("alter table `s`.`t` modify column `A``b` int not null default -1 comment 'it''s, (x' after z;", ("a`b",)),
        ("ALTER ONLINE TABLE IF EXISTS s.t CHANGE COLUMN IF EXISTS a A int", ("a",)),
        ("ALTER TABLE t CHANGE `a` a enum('x,','AS') CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", ("a",)),
        ("/* the app's */ ALTER TABLE t MODIFY d decimal(10,2) DEFAULT 1.5, MODIFY e float", ("d", "e")),
        ('ALTER TABLE t MODIFY "a" int COMMENT "as it -- was"', ("a",)),
        ("ALTER TABLE t MODIFY ts timestamp(6) NOT NULL DEFAULT now(6) ON UPDATE now(6), LOCK=NONE", ("ts",)),
        ("ALTER TABLE t MODIFY a int, ALGORITHM = INPLACE, MODIFY b bit(1) DEFAULT b'0'", ("a", "b")),
    ],
)
def test_its_columns_are_told(statement: str, columns: tuple[str, ...]) -> None:
    assert defined(statement) == columns


@pytest.mark.parametrize(
    "statement",
    [
        "", "ALTER", "ALTER TABLE", "ALTER TABLE t", "ALTER TABLE t MODIFY", "ALTER TABLE t MODIFY a",
        "ALTER TABLE t MODIFY a int,", "ALTER TABLE t.", "REPAIR TABLE t", "ALTER TABLE t ENGINE=BLACKHOLE",
        "ALTER IGNORE TABLE t MODIFY a int", "ALTER TABLE t CHANGE a b int",
        "ALTER TABLE t CHANGE a b int, CHANGE b a int",
        "ALTER TABLE t MODIFY a int AUTO_INCREMENT", "ALTER TABLE t MODIFY a SERIAL DEFAULT VALUE",
        "ALTER TABLE t MODIFY a int AS (b)", "ALTER TABLE t MODIFY a int DEFAULT (`b`)",
        "ALTER TABLE t MODIFY a int KEY",
        "ALTER TABLE t MODIFY a float(7,2)", "ALTER TABLE t MODIFY a double precision (7,2)",
        "ALTER TABLE t MODIFY a int, DROP b", "ALTER TABLE t MODIFY a int, ADD b int",
        "ALTER TABLE t MODIFY a int, UNION=(u)",
        "ALTER TABLE t MODIFY a int, ENGINE=BLACKHOLE", "ALTER TABLE t MODIFY a int, ALGORITHM=COPY",
        "ALTER TABLE t MODIFY a int PARTITION BY HASH (a)",
        "ALTER TABLE t MODIFY a int, CONVERT TO CHARACTER SET latin1",
        "ALTER TABLE t MODIFY a int /*!80000 AUTO_INCREMENT */", "ALTER TABLE t MODIFY a int /*M! AUTO_INCREMENT */",
        "ALTER TABLE t MODIFY a int DEFAULT '\\', MODIFY b float(7,2) COMMENT '", "ALTER TABLE t MODIFY a int -- it's",
        "ALTER TABLE t MODIFY a int # it's", "ALTER TABLE t /* it's */ MODIFY b float(7,2) COMMENT 'x'",
        "ALTER TABLE t MODIFY a varchar(9) COMMENT 'cut",
    ],
)  # fmt: skip
def test_in_doubt_there_are_none(statement: str) -> None:
    assert defined(statement) == ()
